"""Downloads of a version's valid rows: a legacy CSV that can be uploaded again, or a CSV, Excel or Parquet table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _

from datasets.core.formats import LEGACY_COLUMNS, Format, structural_keys
from datasets.core.own_exports import EXCLUDED_ROWS, ROW_COLUMNS
from datasets.core.stats import LONGEST_NAME
from datasets.core.texts import Text, gettext_noop
from datasets.core.variables import (
    EARLIER,
    computed,
    conversation_for,
    earlier_of,
    messages_of,
    response_data,
)
from datasets.models import Candidate, Row, Version
from datasets.selectors import format_of
from datasets.versions.row_writer import WholeRow, free_name, whole_rows, with_answers
from evalsite.cells import clean_text
from evalsite.table_files import Sheet, csv_blocks, csv_of, parquet_of, xlsx_of

FIELDS = 100
"""How many of the most frequent custom fields have their own column; the others share one."""
LOOKED_AT = 100  # first lines searched for a row, from which a page decides what to offer


UNFIT: dict[str, Text] = {
    "answers": gettext_noop("it has model answers."),
    "turns": gettext_noop("it is not exactly one prompt with one response."),
    "field": gettext_noop(
        "“%(name)s” is not a string, is missing from some rows, or has a name that cannot be a column."
    ),
}
"""Why a row cannot be in a legacy CSV."""


class Unfit(ValueError):
    """A row that a legacy CSV cannot contain without loss; `why` is a code of UNFIT."""

    def __init__(self, line: int, why: str, name: str = "") -> None:
        super().__init__(f"{line}: {why} {name}")
        self.line, self.why, self.name = line, why, name


def legacy_csv(version: Version) -> Iterator[bytes]:
    """The valid rows as prompts and responses, texts unchanged; raises Unfit if `unfit` is not None."""
    return csv_blocks(_with_header(_records(version)))


def _with_header(records: Iterator[dict[str, str]]) -> Iterator[Sequence[str]]:
    for number, record in enumerate(records):
        if number == 0:
            names = list(record)
            yield names
        yield [record[name] for name in names]


def unfit(version: Version) -> Unfit | None:
    """The first row that prevents a legacy CSV; reads all rows unless the version is one already."""
    if version.format == "legacy_csv":
        return None
    try:
        for _ in _records(version):
            pass
    except Unfit as misfit:
        return misfit
    return None


def seems_fit(version: Version) -> bool:
    """Whether the first valid row fits a legacy CSV."""
    if version.models_found:
        return False
    rows = Row.objects.filter(version=version, valid=True, line__lte=LOOKED_AT).order_by("line")
    try:
        return any(_record(row, format_of(version)) for row in with_answers(list(rows[:1])))
    except Unfit:
        return False


def _records(version: Version) -> Iterator[dict[str, str]]:
    names = None
    for row in whole_rows(version, only_valid=True):
        record = _record(row, format_of(version))
        names = names or record.keys()
        if record.keys() != names:
            raise Unfit(row.line, "field", min(record.keys() ^ names))
        yield record


def _record(row: WholeRow, form: Format) -> dict[str, str]:
    """The row as a record that reads back as the same messages and fields; raises Unfit."""
    values: dict[str, Any] = json.loads(row.raw)
    if form == "legacy_csv":
        return values
    if row.answers:
        raise Unfit(row.line, "answers")
    messages = messages_of(values, form)
    record = _one_turn(messages)
    if not record["prompt"].strip() or messages_of(record, "legacy_csv") != messages:
        raise Unfit(row.line, "turns")
    for name, value in values.items():
        if name not in structural_keys(form):
            if not isinstance(value, str) or not _names_a_column(name):
                raise Unfit(row.line, "field", name)
            record[name] = value
    return record


def _one_turn(messages: list[dict[str, Any]]) -> dict[str, str]:
    """The conversation as a legacy CSV record: an optional system text, a question, an answer."""
    texts = [message["content"] for message in messages[:3]]
    system = texts.pop(0) if messages[0]["role"] == "system" else ""
    return {"system": system, "prompt": texts[0] if texts else "", "response": texts[1] if texts[1:] else ""}


def _names_a_column(name: str) -> bool:
    return name == name.strip() != "" and name.isprintable() and name.lower() not in LEGACY_COLUMNS


def table_csv(version: Version) -> Iterator[bytes]:
    """One record per answer (or row without answers), each with the row's values; safe to open in a spreadsheet."""
    return csv_of(*_table(version))


def table_xlsx(version: Version) -> Iterator[bytes]:
    """The same as an Excel file."""
    return xlsx_of(Sheet(_("Rows"), *_table(version)))


def table_parquet(version: Version) -> Iterator[bytes]:
    """The same as a Parquet file with untruncated texts; other values are JSON, as a field's type may vary."""
    columns, rows = _table(version)
    whole = {name: int for name in ("line", "number", EXCLUDED_ROWS) if name in columns}
    at = {columns.index(name) for name in whole}
    cells = ([value if n in at else _as_text(value) for n, value in enumerate(row)] for row in rows)
    return parquet_of(columns, cells, whole)


def _as_text(value: Any) -> str | None:
    if value is None:
        return None
    return clean_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _table(version: Version) -> tuple[list[str], Iterator[Sequence[Any]]]:
    """The columns and the unformatted rows."""
    fields, all_of_them = fields_with_columns(version)
    answered = Candidate.uploaded.filter(version=version).exists()
    columns = [
        *ROW_COLUMNS,
        *fields,
        *([] if all_of_them else [_REST]),
        *(_ANSWER if answered else ()),
        EXCLUDED_ROWS,
    ]

    def rows() -> Iterator[Sequence[Any]]:
        for row in whole_rows(version, only_valid=True):
            for response, answer in _answers(row):
                *values, rest = _row(row, format_of(version), fields, response)
                cells = values if all_of_them else [*values, rest]
                yield [*cells, *(answer if answered else ()), version.bad_rows]

    return _unique(columns), rows()


_REST = "other_fields"
_PARTS = ("content", "reasoning_content", "tool_calls")
_ANSWER = ("model", "number", *_PARTS, "other_keys")


def fields_with_columns(version: Version) -> tuple[list[str], bool]:
    """The custom fields that get a column, `id` first, and whether these are all."""
    counts = [(name, rows) for name, rows in version.fields_found.items() if name != "ref_answer"]
    names = [name for name, _rows in sorted(counts, key=lambda pair: (pair[0] != "id", -pair[1], pair[0]))]
    whole = [name for name in names if len(name) < LONGEST_NAME and "\\" not in name]  # not truncated
    return whole[:FIELDS], len(whole) == len(names) <= FIELDS


def _unique(names: Iterable[str]) -> list[str]:
    """Make the names unique by appending `_2`, …"""
    taken: list[str] = []
    for name in names:
        taken.append(free_name(name, taken))
    return taken


def _row(row: WholeRow, form: Format, fields: list[str], response: dict[str, Any]) -> Iterator[Any]:
    """The cells for `ROW_COLUMNS`, the fields and the remaining fields, using the response's own conversation."""
    values: dict[str, Any] = json.loads(row.raw)
    messages = conversation_for(messages_of(values, form), response)
    variables = computed(messages)
    question, gt = variables["question"], variables["gt"]
    plain = [{"role": "user", "content": question}, {"role": "assistant", "content": gt}]
    yield from (row.line, question, gt, values.pop("ref_answer", None), variables["history"])
    yield None if messages == plain[: 1 if gt is None else 2] else messages
    for name in structural_keys(form):
        values.pop(name, None)
    yield from (values.pop(name, None) for name in fields)
    yield values or None


def _answers(row: WholeRow) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield each answer with its cells for `_ANSWER`; one set of empty cells if there is none."""
    numbers = Counter[str]()
    for model, raw in row.answers:
        numbers[model] += 1
        response = response_data(raw)
        parts = [response[name] for name in _PARTS]
        # Earlier messages are shown in the conversation.
        hidden = _PARTS if earlier_of(response) is None else (*_PARTS, EARLIER)
        others = {name: value for name, value in response.items() if name not in hidden}
        yield response, [model, numbers[model], *parts, others or None]
    if not row.answers:
        yield {}, [None] * len(_ANSWER)
