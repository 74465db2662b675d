"""Imports spreadsheets, CSV, Parquet and JSON of any shape; a mapping of columns turns records into rows.

If a column names the model, the records of one question form one row with an answer per model. They may be anywhere in
the file; rows are in the order in which their questions first appear.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count
from typing import Any

from datasets.core.detect import guess_from_beginning, misspells_format
from datasets.core.imports.batches import are_joined, joined_tables
from datasets.core.imports.cells import CellKeys
from datasets.core.imports.chat import answer, chat, chat_in_json, text_in
from datasets.core.imports.choices import CHOICES, in_json, letter_number
from datasets.core.imports.collector import Collector, collected, with_reference
from datasets.core.imports.columns import Columns, Record, guess, is_whole, looks_of, number, parse
from datasets.core.imports.json_records import first_records
from datasets.core.imports.model import (
    BrokenRecord,
    Imported,
    MendedRecord,
    Note,
    NotUsable,
    Options,
    Place,
    Source,
    SourceFile,
)
from datasets.core.imports.outputs import Output, outputs_in
from datasets.core.imports.tables import (
    CellError,
    EmptyCell,
    SourceTable,
    csv_table,
    every_at,
    first_header,
    is_parquet,
    json_table,
    json_value,
    parquet_table,
    seems_csv,
)
from datasets.core.imports.wrapped import wrapper_of
from datasets.core.imports.xlsx import is_xlsx, xlsx_table
from datasets.core.rubric import RUBRIC, lines_of

_RESERVED = ("messages", "model_outputs", "ref_answer", "conversation")


def open_table(file: SourceFile, options: Options) -> SourceTable:
    """Open the file as a table; raises NotUsable."""
    if is_parquet(file):
        return parquet_table(file, options.limits)
    if is_xlsx(file):
        return xlsx_table(file, options.limits, options.sheet)
    if any(isinstance(value, dict) for value in first_records(file, 1)):
        return json_table(file, options.limits)
    with file.upload() as upload:
        if kind := upload.other_kind():
            raise NotUsable("other_kind", kind=kind, file=file.name)
    if options.columns or seems_csv(file):
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
        ours = isinstance(first[0], dict) and any(name in first[0] for name in ("messages", "conversation"))
        return ours or misspells_format(first[0])
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
    mapping = guess(names, looks_of(first))
    return len(names) > 1 or bool(mapping.question or mapping.messages) or wrapper_of(file) is not None


def _columns(file: SourceFile) -> tuple[str, ...]:
    """What files of one table have in common: their columns, or of JSON, those of the question."""
    if is_xlsx(file):
        return ()
    table = open_table(file, Options())
    if not any(isinstance(value, dict) for value in first_records(file, 1)):
        return tuple(sorted(table.columns))
    mapping = guess(table.columns, table.looks())
    return (*mapping.question, mapping.messages)


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    """Import the files; raises NotUsable, also during iteration."""
    return read_tables(open_tables(files, options), options)


def read_tables(tables: Sequence[tuple[str, SourceTable]], options: Options) -> Imported:
    """Import tables that are already open, given with their names."""
    table = whole_table([table for _name, table in tables])
    columns = mapping_of(table, options)
    if not (columns.question or columns.messages) and (lists := _lists_in(table)):
        raise NotUsable("lists_differ", file=tables[0][0], lists=lists)
    columns.checked(table.columns)

    def collect(_files: Sequence[SourceFile], collector: Collector) -> None:
        reader = _Reader(columns, table, collector)
        for name, source in tables:
            for line, text in source.above:
                collector.leave_out(Place(name, line, source.sheet), "above_header", text)
            for sheet in source.others:
                collector.leave_out(Place(name, None, sheet), "other_sheet")
            if source.lists:
                collector.leave_out(Place(name), "several_lists", source.lists)
            for use in source.key_uses:
                collector.add_key_use(use)
            for line, record in source.records():
                reader.import_record(Place(name, line, source.sheet), record)

    return collected((), options, collect, notes_of(columns, table.columns))


def _lists_in(table: SourceTable) -> str:
    """The names of the lists of records in a table of a single record; '' if there are not several."""
    first = table.first(2)
    lists = [name for name, value in first[0].items() if _holds_records(value)] if len(first) == 1 else []
    return ", ".join(lists) if len(lists) > 1 else ""


def _holds_records(value: Any) -> bool:
    is_list = isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    return is_list and not chat(value)[0]


def whole_table(tables: Sequence[SourceTable]) -> SourceTable:
    """The first table with the columns of all of them."""
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for table in tables for name in table.columns)
    looks = cache(lambda: looks_of(chain.from_iterable(table.whole_records() for table in tables)))
    return replace(tables[0], columns=list(names), looks=looks)


def mapping_of(table: SourceTable, options: Options) -> Columns:
    """The chosen mapping, else a guess; raises NotUsable if the chosen one cannot be parsed."""
    return parse(options.columns) if options.columns else table.mapping or guess(table.columns, table.looks())


def notes_of(columns: Columns, names: Sequence[str]) -> list[Note]:
    """What each column becomes, in display order."""
    notes = [Note(becomes, column) for becomes, column in columns.roles]
    notes += [Note("field", column) for _name, column in columns.fields_of(names)]
    taken = {note.origin for note in notes}
    own = [name for name in names if "." not in name or name.split(".")[0] not in names]
    return notes + [Note("left_out", name) for name in own if name not in taken]


class _Reader:
    """Creates rows, answers and scores from records; records of one question are merged if a column names the model."""

    def __init__(self, columns: Columns, table: SourceTable, collector: Collector) -> None:
        self.columns, self.collector, self._looks = columns, collector, table.looks
        names = table.columns
        self.fields = columns.fields_of(names)
        self.answers = list(columns.answers) or ([(columns.answer, columns.answer)] if columns.answer else [])
        self.choices = next((name for name in names if name.lower() == CHOICES), "")
        self._wanted = list(dict.fromkeys([*columns.used, *(column for _name, column in self.fields)]))
        self._roles = frozenset(columns.used) - {columns.rubric}
        self._parsed = frozenset((columns.messages, columns.outputs, columns.rubric))
        self._keys = CellKeys(collector.key_use(), names, self._wanted)
        self._numbers = count(1)

    def import_record(self, place: Place, record: Record | BrokenRecord) -> None:
        if isinstance(record, BrokenRecord):
            self.collector.leave_out(place, record.code, record.detail)
            return
        if isinstance(record, MendedRecord):
            self.collector.leave_out(place, record.code, record.detail)
        self._keys.count(place, record)
        self._report_empty(place, record)
        value = {
            name: self._value(place, name, record)
            for name in self._wanted
            if record.get(name) not in (None, "")
        }
        messages = self._messages(place, value)
        if not messages:
            code = "messages_unreadable" if self.columns.messages else "no_question"
            self.collector.leave_out(place, code, self.columns.messages or ", ".join(self.columns.question))
            return
        reference = self._reference(place, value, record)
        row = {"messages": messages} | with_reference(reference)
        row |= {RUBRIC: value[self.columns.rubric]} if self.columns.rubric in value else {}
        row |= {_field_name(name): value[column] for name, column in self.fields if column in value}
        key = [messages, reference] if self.columns.model else next(self._numbers)
        for name in self.collector.merged_row(key, row, place):
            self.collector.leave_out(place, "field_differs", name)
        self._answers(key, place, value, record)

    def _report_empty(self, place: Place, record: Record) -> None:
        for name in self._wanted:
            if isinstance(cell := record.get(name), EmptyCell):
                self.collector.leave_out(place, cell.code, name)

    def _value(self, place: Place, name: str, record: Record) -> Any:
        value = record[name]
        if type(value) is str and name not in self._parsed:
            return value
        if isinstance(value, CellError):
            self.collector.leave_out(place, "cell_error", f"{name}: {value}")
            return None
        if isinstance(value, float) and math.isinf(value):
            self.collector.leave_out(place, "no_number", f"{name}: {value}")
        try:
            value = json_value(value)
        except ValueError:
            self.collector.leave_out(place, "binary", name)
            return None
        if name == self.columns.messages and isinstance(value, str):
            value = chat_in_json(value) or value
        elif name == self.columns.outputs:
            value = in_json(value)
        elif name == self.columns.rubric and isinstance(value, str):
            value = lines_of(value)
        return self._keys.noting(place, name, value) if name in self._roles else value

    def _messages(self, place: Place, value: Record) -> list[dict[str, Any]]:
        """The messages of a record; [] if it has no question."""
        if self.columns.messages:
            messages = self._conversation(place, value.get(self.columns.messages))
        else:
            messages = self._question_messages(place, value)
        system = self._text(place, self.columns.system, value)
        if messages and system.strip() and messages[0]["role"] != "system":
            messages = [{"role": "system", "content": system}, *messages]
        return messages

    def _conversation(self, place: Place, conversation: Any) -> list[dict[str, Any]]:
        """A list of messages or the user's text; without the last reply if that is an answer."""
        if isinstance(conversation, str) and (conversation.lstrip().startswith("[") or not self._is_mixed()):
            conversation = None
        messages, dropped = chat(conversation)
        self.collector.leave_out_parts(place, dropped)
        is_answer = self.columns.messages in (column for _model, column in self.answers)
        if is_answer and messages and messages[-1]["role"] == "assistant":
            messages.pop()
        return messages

    def _is_mixed(self) -> bool:
        """Whether the column of messages holds lists in other records, so that a text is a message of the user."""
        look = self._looks().get(self.columns.messages)
        return look is not None and look.conversations

    def _question_messages(self, place: Place, value: Record) -> list[dict[str, Any]]:
        """The question's texts in one message; a question that is a list of messages is taken as it is."""
        first = value.get(self.columns.question[0])
        if len(self.columns.question) == 1 and isinstance(first, list) and (messages := chat(first)[0]):
            return messages
        texts = [self._text(place, name, value) for name in self.columns.question]
        question = "\n\n".join(text for text in texts if text.strip())
        return [{"role": "user", "content": question}] if question else []

    def _reference(self, place: Place, value: Record, record: Record) -> Any:
        """The reference; if it is the number or letter of one of the choices beside it, that choice's text."""
        reference, choices = value.get(self.columns.reference), record.get(self.choices)
        if not self.choices or self.columns.reference.lower() != "answer" or reference is None:
            return reference
        choices = in_json(choices)
        if not isinstance(choices, list) or self._are_texts():
            return reference
        chosen = int(number(reference) or 0) if is_whole(reference) else letter_number(reference)
        if chosen is None or (
            isinstance(reference, str) and not is_whole(reference) and reference in choices
        ):
            return reference
        if 0 <= chosen < len(choices):
            return _text(choices[chosen])
        self.collector.leave_out(place, "no_such_choice", f"{self.columns.reference}: {_text(reference)}")
        return None

    def _are_texts(self) -> bool:
        """Whether all references are texts of choices, though some may look like the number or letter of another."""
        look = self._looks().get(self.columns.reference)
        return look is not None and look.all_choice_texts

    def _text(self, place: Place, name: str, value: Record) -> str:
        """The text of a cell; of another object or list its JSON, with a warning."""
        cell = value.get(name)
        if isinstance(cell, str):
            return cell
        if isinstance(cell, dict | list) and text_in(cell) is None:
            self.collector.leave_out(place, "text_as_json", name)
        return _text(cell)

    def _answers(self, key: object, place: Place, value: Record, record: Record) -> None:
        named = _text(value.get(self.columns.model)).strip()
        if self.columns.model and not named and self.answers:
            self.collector.leave_out(place, "no_model", self.columns.model)
            return
        numbers: dict[str, list[int]] = {}
        for column_model, column in self.answers:
            model = named or column_model
            for response in self._responses(place, column, value, record):
                if response["content"].strip() or "tool_calls" in response:
                    numbers.setdefault(model, []).append(self.collector.answer(key, model, response, place))
                else:
                    self.collector.leave_out(place, "no_answer", model)
        for model, response in self._outputs(place, value):
            numbers.setdefault(model, []).append(self.collector.answer(key, model, response, place))
        self._scores(key, place, value, named, numbers)

    def _responses(
        self, place: Place, column: str, value: Record, record: Record
    ) -> Iterator[dict[str, Any]]:
        """The answers in a column: one, or those of all items of a list on the path to it."""
        if column == self.columns.messages:
            yield _last_reply(value.get(column))
            return
        if "." not in column and isinstance(text := value.get(column), str):
            yield {"content": text}
            return
        several = every_at(record, column) if "." in column and column in value else []
        several = [self._keys.noting(place, column, answer_value) for answer_value in several]
        cells = [{column: answer_value} for answer_value in several] if len(several) > 1 else [value]
        for cell in cells:
            text = self._text(place, column, cell)
            yield _as_response(cell.get(column)) | {"content": text}

    def _outputs(self, place: Place, value: Record) -> list[Output]:
        """The answers of several models in one cell."""
        if not self.columns.outputs:
            return []
        outputs = outputs_in(value.get(self.columns.outputs))
        if outputs is None:
            code = "outputs_unreadable" if self.columns.outputs in value else "no_answer"
            self.collector.leave_out(place, code, self.columns.outputs)
        return outputs or []

    def _scores(
        self, key: object, place: Place, value: Record, named: str, numbers: dict[str, list[int]]
    ) -> None:
        """Import scores: the n-th score of a metric and model belongs to the model's n-th answer in the record."""
        left: dict[tuple[str, str], list[int]] = {}
        for score in self.columns.scores:
            model = score.model or named or (self.answers[0][0] if self.answers else "")
            answers = left.setdefault((score.metric, model), list(numbers.get(model, ())))
            response = answers.pop(0) if answers else None
            cell = value.get(score.column)
            if cell in (None, ""):
                continue
            if number(cell) is None:
                self.collector.leave_out(place, "score_not_number", f"{score.column}: {_text(cell)[:80]}")
            elif response is None:
                self.collector.leave_out(place, "score_without_answer", score.column)
            else:
                verdict = {"model": model, "response": response, "metric": score.metric}
                self.collector.verdict(key, {**verdict, "value": number(cell), "judge": place.file}, place)


def _last_reply(conversation: Any) -> dict[str, Any]:
    """A conversation's last message as an answer if it is the assistant's; else one without text."""
    messages = chat(conversation)[0]
    if not messages or messages[-1]["role"] != "assistant":
        return {"content": ""}
    return _as_response(conversation[-1]) | {"content": messages[-1]["content"]}


def _as_response(cell: Any) -> dict[str, Any]:
    """The reasoning and tool calls beside the text of an answer that is an object."""
    if not isinstance(cell, dict) or "content" not in cell or "text" in cell:
        return {}
    return answer(cell)[0] if cell["content"] is None or text_in(cell) is not None else {}


def _text(value: Any) -> str:
    """The text of a cell value, or its JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    text = text_in(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def _field_name(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


SOURCE = Source("table", recognise, read)
