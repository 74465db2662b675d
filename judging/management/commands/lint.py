"""manage.py lint: check a template against all rows and answers of a file, without a database."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from datasets.core.reader import UploadReading, read
from datasets.core.variables import row_and_response, row_data
from datasets.management.commands.validate import progress
from evalsite.terminal import terminal_language
from judging.core.lint import Answer, Lint, LintFinding, is_of_pairs, lint, subjects
from judging.core.metric_definition import Script
from judging.management.command_line import (
    HAS_ERRORS,
    WRONG_USAGE,
    add_json_option,
    json_line,
    refusals,
    script_hints,
    text_of,
)
from judging.messages import lint_sentence
from judging.sandboxes import shared_sandbox


class Command(BaseCommand):
    help = "Check the template file TEMPLATE against all rows of FILE."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("template", type=Path, metavar="TEMPLATE")
        parser.add_argument("--preprocess", type=Path, metavar="SCRIPT")
        add_json_option(parser)

    def handle(self, *, file: Path, template: Path, preprocess: Path | None, **options: Any) -> None:
        source = text_of(template)
        script = None if preprocess is None else text_of(preprocess)
        with translation.override(terminal_language()):
            for hint in script_hints("preprocess", script or ""):
                self.stderr.write(hint)
            result = lint_file(file, source, script)
            if options["json"]:
                self.stdout.write(json_line(document(result)))
                for line in in_words(pgettext("finding", "error"), result.errors):
                    self.stderr.write(line)
            else:
                self.stdout.write("\n".join(readable(result)))
        if result.errors:
            sys.exit(HAS_ERRORS)


def lint_file(file: Path, source: str, script: str | None) -> Lint:
    """Lint the template. Raises CommandError (status 2) if the file has no valid rows or can't be read, or if the
    sandbox is not available."""
    with refusals():
        sandbox = shared_sandbox()
        with read(file, digest=False, progress=progress()) as reading:
            of_pairs = is_of_pairs(sandbox, source)
            scripts = () if script is None else (Script(kind="preprocess", source=script),)
            linted = subjects(sandbox, answers(file, reading), scripts, of_pairs=of_pairs)
            return lint(sandbox, source, linted, of_pairs=of_pairs)


def answers(file: Path, reading: UploadReading) -> Iterator[Answer]:
    """Yield all answers of all valid rows. The answer is None for rows without any."""
    fmt, any_row = reading.detection.format, False
    for row in reading:
        if row.valid and fmt is not None:
            any_row = True
            data = row_data(row.data, fmt)
            for _model, _index, text in row.responses or (("", 0, ""),):
                yield row.line, *(row_and_response(data, text) if text else (data, None))
    if not any_row:
        raise CommandError(f"{file} has no valid row.", returncode=WRONG_USAGE)


def document(result: Lint) -> dict[str, Any]:
    """The JSON document, whose keys are specified."""
    return {
        "errors": [_finding_document(finding) for finding in result.errors],
        "warnings": [_finding_document(finding) for finding in result.warnings],
        "longest": asdict(result.longest) if result.longest else None,
    }


def _finding_document(finding: LintFinding) -> dict[str, Any]:
    return {name: value for name, value in asdict(finding).items() if name != "message"}


def readable(result: Lint) -> Iterator[str]:
    """Readable output: a line per finding, then the longest prompt."""
    yield from in_words(pgettext("finding", "error"), result.errors)
    yield from in_words(pgettext("finding", "warning"), result.warnings)
    if not result.errors and not result.warnings:
        yield _("No problems found in the template.")
    if result.longest:
        yield _(
            "Longest prompt: %(characters)s characters, about %(tokens)s tokens (row at line %(line)s)"
        ) % asdict(result.longest)


def in_words(severity: str, findings: tuple[LintFinding, ...]) -> Iterator[str]:
    for finding in findings:
        yield f"{severity} {finding.code}: {_place(finding)}{lint_sentence(finding)}{_rows(finding)}"


def _place(finding: LintFinding) -> str:
    return _("line %(line)s: ") % {"line": finding.line} if finding.line else ""


def _rows(finding: LintFinding) -> str:
    if not finding.first_rows or finding.code in ("unknown_name", "syntax"):
        return ""
    shown = ", ".join(map(str, finding.first_rows)) + (" …" if finding.rows > len(finding.first_rows) else "")
    return " " + _("[rows at lines %(lines)s]") % {"lines": shown}
