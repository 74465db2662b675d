"""manage.py validate: validate and repair a file without a database."""

from __future__ import annotations

import json
import shlex
import sys
import unicodedata
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from datasets.core.decode import Unreadable
from datasets.core.findings import CODES, Finding
from datasets.core.formats import model_key
from datasets.core.imports.model import SourceFile
from datasets.core.imports.registry import recognise
from datasets.core.imports.table import is_native
from datasets.core.lines import pieces_at
from datasets.core.reader import Progress, Summary, read
from datasets.core.repair.apply import Repair, repair_file
from datasets.core.repair.kinds import REPAIRS, WITHOUT_VALUE
from datasets.messages import message
from datasets.uploads import limits
from evalsite.command_line import PROGRAM
from evalsite.terminal import terminal_language

WRONG_USAGE = 2
HAS_ERRORS = 1
SHOWN_PER_CODE = 10
EXCERPT = 60
LONGEST_KEPT = 100_000


class Command(BaseCommand):
    help = "Validate a file like an upload, and optionally write a repaired copy."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--fix", type=Path, metavar="OUT", help="file for the repaired copy")
        parser.add_argument(
            "--repair",
            nargs="+",
            action="extend",
            metavar="NAME[=VALUE]",
            help=f"only these repairs: {', '.join(REPAIRS)} (default: all that need no value)",
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="one JSON document")

    def handle(
        self, *, file: Path, fix: Path | None, repair: list[str] | None, as_json: bool, **options: Any
    ) -> None:
        with translation.override(terminal_language()):
            summary, fixed, sources = self._validated(file, fix, repair)
            hint = "" if summary.valid_rows else import_hint(file)
            if as_json:
                shown = document(summary, fixed, hint)
                self.stdout.write(json.dumps(shown, ensure_ascii=not _writes_unicode()))
            else:
                self.stdout.write(_encodable(readable(file.name, summary, fixed, sources, hint)))
        if summary.errors:
            sys.exit(HAS_ERRORS)

    def _validated(
        self, file: Path, fix: Path | None, repair: list[str] | None
    ) -> tuple[Summary, Summary | None, dict[int, str]]:
        try:
            repairs = wanted_repairs(fix, repair)
            summary, sources = read_through(file, progress())
            if fix is None:
                return summary, None, sources
            check_choices(repairs, summary)
            if fix.exists() and fix.samefile(file):
                raise ValueError(_("OUT is the file itself; name another one."))
            repair_file(file, fix, repairs, limits())
            return summary, read_through(fix, None)[0], sources
        except OSError as error:
            where = file if error.filename in (None, str(file)) else fix or error.filename
            raise CommandError(f"{where}: {error.strerror or error}", returncode=WRONG_USAGE) from None
        except Unreadable as error:
            raise CommandError(message(error.finding), returncode=WRONG_USAGE) from None
        except ValueError as error:
            raise CommandError(str(error), returncode=WRONG_USAGE) from None


def wanted_repairs(fix: Path | None, named: list[str] | None) -> list[Repair]:
    """The requested repairs; raises ValueError with a message for an invalid name or value."""
    if named is None:
        return [Repair(name) for name in WITHOUT_VALUE]
    if fix is None:
        raise ValueError(_("--repair needs --fix OUT, the path of the repaired file."))
    repairs = []
    for text in named:
        name, _equals, value = text.partition("=")
        if name not in REPAIRS:
            unknown = _("There is no repair “%(name)s”; there are: %(names)s.")
            raise ValueError(unknown % {"name": name, "names": ", ".join(REPAIRS)})
        if REPAIRS[name].needs_value and not value.strip():
            raise ValueError(_("“%(name)s” needs a value: %(name)s=NAME.") % {"name": name})
        if not REPAIRS[name].needs_value and value.strip():
            raise ValueError(_("“%(name)s” takes no value.") % {"name": name})
        repairs.append(Repair(name, value))
    return repairs


def check_choices(repairs: list[Repair], summary: Summary) -> None:
    """Raise ValueError if a name to unify to resembles none of the file's names."""
    keys = {model_key(name) for name in summary.models}
    for repair in repairs:
        if repair.name == "unify_model_names" and model_key(repair.value) not in keys:
            raise ValueError(
                _("No model of this file is called “%(name)s” or alike; there are: %(names)s.")
                % {"name": repair.value, "names": ", ".join(summary.models) or "–"}
            )


def read_through(file: Path, progress: Progress | None) -> tuple[Summary, dict[int, str]]:
    """The file's summary, and {line: source} of the first invalid JSON rows, for display."""
    with read(file, limits=limits(), progress=progress, digest=False) as reading:
        summary = reading.summary
        shown = [finding.line for finding in summary.findings if finding.code == "json.invalid"][
            :SHOWN_PER_CODE
        ]
        sources: dict[int, str] = {}
        if summary.why == "spread" and summary.encoding:
            places = [(line or 0, 1) for line in shown]
            texts = pieces_at(file, summary.encoding, places, LONGEST_KEPT, limits())
            return summary, {line: text for (line, _), text in texts.items() if len(text) < LONGEST_KEPT}
        for row in reading if shown else ():
            if row.line in shown and len(row.source) <= LONGEST_KEPT:
                sources[row.line] = row.raw
            if row.line >= (shown[-1] or 0):
                break
        return summary, sources


def import_hint(file: Path) -> str:
    """A sentence with the command that imports the file, if it is a table or another tool's; else ''."""
    source = SourceFile.of(file)
    if is_native(source) or recognise([source]) is None:
        return ""
    sentence = _("“import_dataset” takes this file: %(command)s")
    return sentence % {"command": f"{PROGRAM} import_dataset {shlex.quote(str(file))}"}


def document(summary: Summary, fixed: Summary | None, hint: str = "") -> dict[str, Any]:
    """The output of --json; its keys are part of the spec. `hint` ends the message of the first error."""
    hinted = next((finding for finding in summary.findings if finding.severity == "error"), None)
    return {
        "format": summary.format,
        "encoding": summary.encoding,
        "rows": summary.rows,
        "valid_rows": summary.valid_rows,
        "counts": summary.counts,
        "findings": [_as_json(finding, hint if finding is hinted else "") for finding in summary.findings],
        "models": summary.models,
        "fields": summary.fields,
        "fixed": {"rows": fixed.rows, "valid_rows": fixed.valid_rows} if fixed else None,
    }


def _as_json(finding: Finding, hint: str) -> dict[str, Any]:
    return {
        "line": finding.line,
        "column": finding.column,
        "path": finding.path,
        "code": finding.code,
        "severity": finding.severity,
        "message": f"{message(finding)} {hint}".rstrip(),
        "repair": finding.repair,
    }


def readable(
    name: str, summary: Summary, fixed: Summary | None, sources: dict[int, str], hint: str = ""
) -> str:
    """The same for people: a summary, the findings by code, the result of the repair, and the hint."""
    lines = [
        _("%(name)s: format %(format)s, %(encoding)s, %(valid)s of %(rows)s rows valid")
        % {
            "name": name,
            "format": summary.format or _("unknown"),
            "encoding": summary.encoding or _("no text"),
            "valid": summary.valid_rows,
            "rows": summary.rows,
        }
    ]
    for code, count in summary.counts.items():
        lines += [
            "",
            *_section(
                code, count, [finding for finding in summary.findings if finding.code == code], sources
            ),
        ]
    if fixed:
        text = _("The repaired file: %(valid)s of %(rows)s rows valid")
        lines += ["", text % {"valid": fixed.valid_rows, "rows": fixed.rows}]
    if hint:
        lines += ["", hint]
    return "\n".join(lines)


def _section(code: str, count: int, findings: list[Finding], sources: dict[int, str]) -> list[str]:
    is_error = CODES[code].severity == "error"
    severity = pgettext("finding", "error") if is_error else pgettext("finding", "warning")
    lines = [f"{severity} {code} × {count}"]
    for finding in findings[:SHOWN_PER_CODE]:
        repair = f" [--repair {finding.repair}]" if finding.repair else ""
        lines += [f"  {_place(finding)}{message(finding)}{repair}", *_caret(finding, sources)]
    if count > SHOWN_PER_CODE:
        lines.append("  " + _("… and %(more)s more") % {"more": count - SHOWN_PER_CODE})
    return lines


def _place(finding: Finding) -> str:
    place = ":".join(str(part) for part in (finding.line, finding.column) if part is not None)
    named = [part for part in (place, finding.path) if part]
    return f"{' '.join(named)}: " if named else ""


def _caret(finding: Finding, sources: dict[int, str]) -> list[str]:
    """The source around invalid JSON, with a caret below the position."""
    if finding.code != "json.invalid" or finding.line not in sources or finding.column is None:
        return []
    text = "".join(sign if sign.isprintable() else " " for sign in sources[finding.line])
    start = max(0, finding.column - 1 - EXCERPT // 2)
    before = text[start : finding.column - 1]
    width = sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in before)
    return ["    " + text[start : start + EXCERPT].rstrip(), "    " + " " * width + "^"]


def progress() -> Progress | None:
    """A function that shows the percentage done on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, whole: int) -> None:
        sys.stderr.write(f"\r{done * 100 // max(1, whole)} %" + ("\r     \r" if done >= whole else ""))
        sys.stderr.flush()

    return show


def _writes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _encodable(text: str) -> str:
    """Escape the characters that the terminal's encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
