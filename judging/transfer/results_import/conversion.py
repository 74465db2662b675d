"""Files of other tools as results files: their verdicts, as verdicts on answers of another version."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from datasets.core.answer_file import prompt_hash
from datasets.core.imports.collector import encoded
from datasets.core.imports.model import Imported, LeftOut, Options, Source, SourceFile
from datasets.core.imports.registry import SOURCES
from datasets.core.imports.table import SOURCE as TABLE
from datasets.core.variables import messages_of
from datasets.models import Row, Version
from datasets.selectors import format_of
from datasets.uploads import limits
from judging.core.results_file.verdicts import row_name
from judging.records import json_text

_ROWS = 2_000  # read at a time
_PREFIX = re.compile(r".*[^\w]|.*_", re.DOTALL)


@contextmanager
def results_file(path: Path, name: str, version: Version) -> Iterator[tuple[Path, list[LeftOut]]]:
    """A results file as it is; or the verdicts in a file of another tool as one about the version's rows, and what was
    left out. Raises NotUsable."""
    file = SourceFile.of(path, name)
    source = tool_of(file)
    if source is None:
        yield path, []
        return
    contents = source.read([file], Options(limits=limits()))
    with tempfile.NamedTemporaryFile() as verdicts:
        write_verdicts(contents, version, verdicts)
        verdicts.flush()
        yield Path(verdicts.name), contents.left_out


def tool_of(file: SourceFile) -> Source | None:
    """The tool that wrote the file; None for tables, including results files."""
    return next((source for source in SOURCES if source is not TABLE and source.recognise([file])), None)


def write_verdicts(imported: Imported, version: Version, out: IO[bytes]) -> None:
    """Write a tool's verdicts as a results file about a version's rows. Raises NotUsable."""
    for record in _about(imported, version):
        out.write(encoded(record) + b"\n")


def _about(imported: Imported, version: Version) -> Iterator[dict[str, Any]]:
    """Yield the verdicts with line numbers of the version's rows, matched by prompt, or else by id.

    Verdicts without a match keep the tool's id, so that they are refused under that id.
    """
    own: dict[int, tuple[int, str]] = {}
    for line, row in enumerate(imported.rows, 1):
        own[line] = (prompt_hash(messages_of(row.data, "judge_only")), row_name_or_none(row.data.get("id")))
    rows = _Rows(version)
    for record in imported.verdicts:
        prompt, name = own.get(record.pop("line", 0), (None, row_name_or_none(record.pop("id", None))))
        line = rows.line(prompt, name)
        yield record | ({"line": line} if line else {"id": name or "?"})


def row_name_or_none(value: Any) -> str:
    return "" if isinstance(value, bool | list | dict) else row_name(value)


class _Rows:
    """Line numbers of a version's rows by prompt and by id; 0 if ambiguous."""

    def __init__(self, version: Version) -> None:
        self._prompts: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._endings: dict[str, int] = {}
        form = format_of(version)
        rows = Row.objects.filter(version=version, valid=True).values_list("line", "raw")
        for line, raw in rows.iterator(_ROWS):
            data = json_text.loads(raw)
            _put(self._prompts, prompt_hash(messages_of(data, form)), line)
            if name := row_name_or_none(data.get("id")):
                _put(self._names, name, line)
                _put(self._endings, _PREFIX.sub("", name), line)

    def line(self, prompt: int | None, name: str) -> int:
        """The line of a row; 0 if unknown or ambiguous. Prefixes added by tools are ignored: `mtbench-81` is 81."""
        line = self._prompts.get(prompt, 0) if prompt is not None else 0
        return line or self._names.get(name, 0) or (self._endings.get(name, 0) if prompt is None else 0)


def _put(lines: dict[Any, int], key: Any, line: int) -> None:
    lines[key] = 0 if key in lines else line
