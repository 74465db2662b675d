"""manage.py verify: check an evidence file and compute its report again, without the database."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from datasets import uploads
from datasets.core.imports.model import NotUsable, SourceFile
from datasets.messages import not_usable_sentence
from judging.evidence.comparing import Difference
from judging.evidence.container import BadKey, Evidence, public_key
from judging.evidence.verifying import FILE, Verification, verify
from judging.management.command_line import HAS_ERRORS, WRONG_USAGE, add_json_option, json_line

MOST_PRINTED = 20


def line_of(difference: Difference) -> str:
    """A difference for readers. Its place is the file where nothing could be computed."""
    if difference.place == FILE:
        return f"The report {difference.computed}"
    inside, computed = (
        "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
        for value in (difference.inside, difference.computed)
    )
    return f"{difference.place}: {inside} in the file, {computed} computed"


class Command(BaseCommand):
    help = (
        "Verify an evidence file: hashes, signature, and the report computed again. Nothing in it is executed and "
        "nothing is stored. The exit status is 1 for a difference, a broken hash or a wrong signature."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--key", metavar="PUBLIC_KEY", help="the Ed25519 key: a PEM file, or hexadecimal or Base64 text"
        )
        add_json_option(parser)

    def handle(self, *, file: Path, key: str | None, **options: Any) -> None:
        try:
            given_key = None if key is None else public_key(key)
            with closing(Evidence(SourceFile.of(file), uploads.limits())) as evidence:
                verification = verify(evidence, given_key)
        except BadKey as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from None
        except NotUsable as error:
            sentence = not_usable_sentence(error.code, error.params)
            raise CommandError(sentence, returncode=WRONG_USAGE) from None
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}.", returncode=WRONG_USAGE) from None
        if options["json"]:
            self.stdout.write(json_line(verification.document()))
        else:
            self._print(verification)
        for note in verification.notes:
            self.stderr.write(note)
        if not verification.passed:
            sys.exit(HAS_ERRORS)

    def _print(self, verification: Verification) -> None:
        yes_no = {True: "yes", False: "no", None: "no key was given"}
        self.stdout.write(f"Intact: {yes_no[verification.intact]}")
        self.stdout.write(f"Signed: {yes_no[verification.signed]} {verification.key or ''}".rstrip())
        self.stdout.write(f"Signed by the given key: {yes_no[verification.signed_by_given_key]}")
        self.stdout.write(f"Recomputed: {yes_no[verification.recomputed]}")
        self.stdout.write(f"Version: {verification.version}")
        for difference in verification.differences[:MOST_PRINTED]:
            self.stdout.write(line_of(difference))
        more = len(verification.differences) - MOST_PRINTED
        if more > 0:
            self.stdout.write(f"… and {more} more")
