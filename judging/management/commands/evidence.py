"""manage.py evidence: write one file that proves a run's report."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.storage import data_dir
from judging.evidence.container import BadKey, private_key
from judging.evidence.services import evidence_write
from judging.evidence.writing import StillOpen
from judging.management.command_line import HAS_ERRORS, WRONG_USAGE, add_json_option, json_line, run_named
from judging.reports.labels import left_out_sentences
from judging.reports.services import left_out


class Command(BaseCommand):
    help = (
        "Write a zip with a run's data, requests, raw replies, ratings, settings and report, with hashes and, if "
        "EVIDENCE_KEY_FILE is set, a signature. `verify` computes the report again from it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="run name or number")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE")
        parser.add_argument(
            "--hashes-only", action="store_true", help="hold rows, answers and requests as SHA-256 only"
        )
        add_json_option(parser)

    def handle(self, *, run: str, out: Path, hashes_only: bool, **options: Any) -> None:
        data_dir.prepare()
        named_run = run_named(run)
        key_file = settings.CONFIG.evidence_key_file
        try:
            key = private_key(Path(key_file)) if key_file else None
            evidence_write(run=named_run, path=out, hashes_only=hashes_only, key=key, user=None)
        except StillOpen as refusal:
            raise CommandError(str(refusal), returncode=HAS_ERRORS) from None
        except BadKey as error:
            raise CommandError(f"EVIDENCE_KEY_FILE: {error}", returncode=WRONG_USAGE) from None
        except OSError as error:
            raise CommandError(
                f"{out} cannot be written: {error.strerror}.", returncode=WRONG_USAGE
            ) from None
        for sentence in left_out_sentences(left_out(named_run)):
            self.stderr.write(f"Excluded: {sentence}")
        self.stderr.write(f"Wrote {out}, {'signed' if key else 'not signed'}.")
        if options["json"]:
            with out.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self.stdout.write(json_line({"file": str(out), "sha256": digest, "signed": key is not None}))
