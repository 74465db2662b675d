"""Imports spreadsheets, CSV, Parquet and JSON of any shape; a mapping of columns turns records into rows.

If a column names the model, the records of one question form one row with an answer per model. They may be anywhere in
the file; rows are in the order in which their questions first appear.
"""

import json
from collections.abc import Sequence
from itertools import count
from typing import Any

from datasets.core.detect import guess_from_beginning
from datasets.core.imports.batches import are_joined, joined_tables
from datasets.core.imports.chat import chat, chat_in_json
from datasets.core.imports.collector import Collector, collected, with_reference
from datasets.core.imports.columns import Columns, Record, guess, number, parse
from datasets.core.imports.json_records import first_records
from datasets.core.imports.model import (
    BrokenRecord,
    Imported,
    Note,
    NotUsable,
    Options,
    Place,
    Source,
    SourceFile,
)
from datasets.core.imports.tables import (
    CellError,
    SourceTable,
    csv_table,
    first_header,
    is_parquet,
    json_table,
    json_value,
    parquet_table,
    seems_csv,
)
from datasets.core.imports.xlsx import is_xlsx, xlsx_table

_RESERVED = ("messages", "model_outputs", "ref_answer", "conversation")


def open_table(file: SourceFile, options: Options) -> SourceTable:
    """Open the file as a table; raises NotUsable."""
    if is_parquet(file):
        return parquet_table(file, options.limits)
    if is_xlsx(file):
        return xlsx_table(file, options.limits, options.sheet)
    if any(isinstance(value, dict) for value in first_records(file, 1)):
        return json_table(file, options.limits)
    if len(first_header(file)) > 1:
        return csv_table(file, options.limits)
    raise NotUsable("no_table", file=file.name)


def open_tables(files: Sequence[SourceFile], options: Options) -> list[tuple[str, SourceTable]]:
    """(name, table) of each file; batch requests and their responses are joined. Raises NotUsable."""
    if are_joined(files):
        return joined_tables(files, options.limits)
    return [(file.name, open_table(file, options)) for file in files]


def is_native(file: SourceFile) -> bool:
    """Whether the file starts like one of the four native formats, which need no import."""
    with file.upload() as upload:
        if guess_from_beginning(upload) is not None:
            return True
    first = first_records(file, 1)
    if first:
        return isinstance(first[0], dict) and any(name in first[0] for name in ("messages", "conversation"))
    return {"prompt", "response"} <= {name.strip().lower() for name in first_header(file)}


def recognise(files: Sequence[SourceFile]) -> bool:
    """Whether all files are tables with the same columns; native formats are not recognised."""
    try:
        alone = len(files) == 1 or are_joined(files)
        return all(map(_seems_table, files)) and (alone or len({_columns(file) for file in files}) == 1)
    except (NotUsable, OSError):
        return False


def _seems_table(file: SourceFile) -> bool:
    """Whether the file looks like a table. A single column counts only in spreadsheets or if it is a question."""
    if is_parquet(file) or is_xlsx(file):
        return True
    if is_native(file):
        return False
    first = [value for value in first_records(file) if isinstance(value, dict)]
    if not first:
        return seems_csv(file)
    names = list(dict.fromkeys(name for value in first for name in value))
    mapping = guess(names, first)
    return len(names) > 1 or bool(mapping.question or mapping.messages)


def _columns(file: SourceFile) -> tuple[str, ...]:
    return () if is_xlsx(file) else tuple(sorted(open_table(file, Options()).columns))


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    """Import the files; raises NotUsable, also during iteration."""
    return read_tables(open_tables(files, options), options)


def read_tables(tables: Sequence[tuple[str, SourceTable]], options: Options) -> Imported:
    """Import tables that are already open, given with their names."""
    table = tables[0][1]
    columns = mapping_of(table, options)
    columns.checked(table.columns)

    def collect(_files: Sequence[SourceFile], found: Collector) -> None:
        reader = _Reader(columns, table.columns, found)
        for name, one in tables:
            for line, record in one.records():
                reader.take(Place(name, line, one.sheet), record)

    return collected((), options, collect, notes_of(columns, table.columns))


def mapping_of(table: SourceTable, options: Options) -> Columns:
    """The chosen mapping, else a guess; raises NotUsable if the chosen one cannot be parsed."""
    return parse(options.columns) if options.columns else table.mapping or guess(table.columns, table.first())


def notes_of(columns: Columns, names: Sequence[str]) -> list[Note]:
    """What each column becomes, in display order."""
    notes = [Note(becomes, column) for becomes, column in columns.roles]
    notes += [Note("field", column) for _name, column in columns.fields_of(names)]
    taken = {note.origin for note in notes}
    own = [name for name in names if "." not in name or name.split(".")[0] not in names]
    return notes + [Note("left_out", name) for name in own if name not in taken]


class _Reader:
    """Creates rows, answers and scores from records; records of one question are merged if a column names the model."""

    def __init__(self, columns: Columns, names: Sequence[str], found: Collector) -> None:
        self.columns, self.found = columns, found
        self.fields = columns.fields_of(names)
        self.answers = list(columns.answers) or ([(columns.answer, columns.answer)] if columns.answer else [])
        self._wanted = [*columns.used, *(column for _name, column in self.fields)]
        self._numbers = count(1)

    def take(self, place: Place, record: Record | BrokenRecord) -> None:
        if isinstance(record, BrokenRecord):
            self.found.leave_out(place, record.code, record.detail)
            return
        value = {
            name: self._value(place, name, record)
            for name in self._wanted
            if record.get(name) not in (None, "")
        }
        messages = self._messages(place, value)
        if not messages:
            code = "messages_unreadable" if self.columns.messages else "no_question"
            self.found.leave_out(place, code, self.columns.messages or ", ".join(self.columns.question))
            return
        reference = value.get(self.columns.reference)
        row = {"messages": messages} | with_reference(reference)
        row |= {_field_name(name): value[column] for name, column in self.fields if column in value}
        key = [messages, reference] if self.columns.model else next(self._numbers)
        for name in self.found.merged_row(key, row, place):
            self.found.leave_out(place, "field_differs", name)
        self._answers(key, place, value)

    def _value(self, place: Place, name: str, record: Record) -> Any:
        value = record[name]
        if isinstance(value, CellError):
            self.found.leave_out(place, "cell_error", f"{name}: {value}")
            return None
        try:
            return json_value(value)
        except ValueError:
            self.found.leave_out(place, "binary", name)
            return None

    def _messages(self, place: Place, value: Record) -> list[dict[str, Any]]:
        """The messages of a record; [] if it has no question."""
        if self.columns.messages:
            given = value.get(self.columns.messages)
            messages, dropped = chat(chat_in_json(given) if isinstance(given, str) else given)
            for kind in dropped:
                self.found.leave_out(place, "part_dropped", kind)
        else:
            texts = [_text(value.get(name)) for name in self.columns.question]
            asked = "\n\n".join(text for text in texts if text.strip())
            messages = [{"role": "user", "content": asked}] if asked else []
        system = _text(value.get(self.columns.system))
        if messages and system.strip() and messages[0]["role"] != "system":
            messages = [{"role": "system", "content": system}, *messages]
        return messages

    def _answers(self, key: object, place: Place, value: Record) -> None:
        named = _text(value.get(self.columns.model)).strip()
        if self.columns.model and not named and self.answers:
            self.found.leave_out(place, "no_model", self.columns.model)
            return
        numbers: dict[str, list[int]] = {}
        for column_model, column in self.answers:
            model, text = named or column_model, _text(value.get(column))
            if text.strip():
                number_of = self.found.answer(key, model, {"content": text}, place)
                numbers.setdefault(model, []).append(number_of)
            else:
                self.found.leave_out(place, "no_answer", model)
        self._scores(key, place, value, named, numbers)

    def _scores(
        self, key: object, place: Place, value: Record, named: str, numbers: dict[str, list[int]]
    ) -> None:
        """Import scores: the n-th score of a metric and model belongs to the model's n-th answer in the record."""
        left: dict[tuple[str, str], list[int]] = {}
        for score in self.columns.scores:
            model = score.model or named or (self.answers[0][0] if self.answers else "")
            answers = left.setdefault((score.metric, model), list(numbers.get(model, ())))
            response = answers.pop(0) if answers else None
            given = value.get(score.column)
            if given in (None, ""):
                continue
            if number(given) is None:
                self.found.leave_out(place, "score_not_number", f"{score.column}: {_text(given)[:80]}")
            elif response is None:
                self.found.leave_out(place, "score_without_answer", score.column)
            else:
                verdict = {"model": model, "response": response, "metric": score.metric}
                self.found.verdict(key, {**verdict, "value": number(given), "judge": place.file}, place)


def _text(value: Any) -> str:
    """The text of a cell value."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _field_name(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


SOURCE = Source("table", recognise, read)
