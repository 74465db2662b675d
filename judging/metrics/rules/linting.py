"""The program held against the reference of every row. metrics.linting keeps it, and leaves many rows to a worker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, cast

import msgspec

from datasets.core.formats import Format
from datasets.core.variables import reference_data, reference_in, row_and_response, row_data
from datasets.models import Response, Row, Version
from judging.core.jail.pool import Jail
from judging.core.rules.check import read_program
from judging.core.rules.code import run_code
from judging.core.rules.lint import Lint, References
from judging.core.rules.values import exact_json
from judging.core.scripts import run_preprocess

AT_ONCE = 5_000  # references that a page may wait for
_ROWS = 500  # looked at together

from_json = msgspec.json.Decoder(Lint).decode
Progress = Callable[[int], None]


def to_json(found: Lint) -> str:
    """Half characters, which a reference's escapes may name, become question marks."""
    text = json.dumps(msgspec.to_builtins(found), ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def needs_jail(source: str, preprocess: str) -> bool:
    program = read_program(source).program
    rules = program.rules if program else ()
    return bool(preprocess.strip()) or any(rule.function.by == "code" for rule in rules)


def lint_references(
    version: Version,
    source: str,
    preprocess: str = "",
    jail: Jail | None = None,
    progress: Progress | None = None,
) -> Lint:
    """Every reference of the version, as preprocess leaves it. `progress` is told how many were looked at."""
    program = read_program(source).program
    if program is None:  # only programs without errors are looked at
        return Lint(0, 0, [])
    references = References(program, partial(run_code, jail) if jail else None)
    rest, done = references_of(version, preprocess, jail), 0
    while batch := list(islice(rest, _ROWS)):
        references.add(batch)
        done += len(batch)
        if progress:
            progress(done)
    return references.found()


def references_of(version: Version, preprocess: str, jail: Jail | None) -> Iterator[tuple[int, Any]]:
    """The line and the reference of every valid row in their order."""
    form, last = cast(Format, version.format), 0
    rows = Row.objects.filter(version=version, valid=True).order_by("line")
    while batch := list(rows.filter(line__gt=last).values_list("pk", "line", "raw")[:_ROWS]):
        last = batch[-1][1]
        found = [reference_data(raw, form, exact_json) for _pk, _line, raw in batch]
        if preprocess.strip() and jail:
            changed = _changed_by(jail, preprocess, [(pk, row_data(raw, form)) for pk, _line, raw in batch])
            found = [data | fields for data, fields in zip(found, changed, strict=True)]
        for (_pk, line, _raw), data in zip(batch, found, strict=True):
            yield line, reference_in(data)


def _changed_by(jail: Jail, preprocess: str, rows: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """What preprocess changes in each row's data, called with its first answer; nothing where that fails."""
    answers: dict[int, str] = {}
    stored = Response.uploaded.filter(row__in=[row for row, _data in rows]).order_by(
        "row", "candidate", "number"
    )
    for row, raw in stored.values_list("row_id", "raw"):
        answers.setdefault(row, raw)
    items = [row_and_response(data, answers.get(row, "")) for row, data in rows]
    return [outcome.changed.get("data", {}) for outcome in run_preprocess(jail, preprocess, items)]
