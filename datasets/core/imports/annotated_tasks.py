"""Shared by annotation tool imports: a task's data becomes a row with answers, its annotations become verdicts."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from datasets.core.imports.chat import answer, chat, content_of
from datasets.core.imports.collector import Collector, fields
from datasets.core.imports.columns import Columns, Look, guess
from datasets.core.imports.model import Note, Place

_SIDE = re.compile(r"(.*?)[ _-]?([1-9a-h])", re.IGNORECASE | re.DOTALL)
_ANSWER = re.compile(
    r"(?:model[ _-]?)?(?:answer|response|output|completion|reply|generation|text)s?", re.IGNORECASE
)
_OF_SIDE = re.compile(r".*[^\W\d_](?:[ _-]([1-9a-h])|([1-9]))", re.IGNORECASE | re.DOTALL)
UNNAMED = "model"
LONGEST_LABEL = 80
"""A longer text is a comment, not a label."""
_COMMENTS = (
    *("comment", "comments", "feedback", "reason", "rationale", "explanation"),
    *("notes", "note", "correction"),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task imported as a row: its key, and {answer field: (model, number)}."""

    key: object
    answers: Mapping[str, tuple[str, int]]

    def about(self, *names: str) -> tuple[str, int] | None:
        """The answer that one of these names refers to, or the only answer. None if it is ambiguous."""
        if len(self.answers) == 1:
            return next(iter(self.answers.values()))
        for name in names:
            fields = [field for field in self.answers if re.search(rf"(?<!\w){re.escape(field)}(?!\w)", name)]
            fields = fields or [field for field in self.answers if name.endswith(field)]
            fields = fields or [
                field for field in self.answers if _side(field) and _side(field) == _side(name)
            ]
            if len(fields) == 1:
                return self.answers[fields[0]]
        return None


def _side(name: str) -> str:
    """The number or letter at the end of a name, as `rating_a` refers to `response_a`; '' if there is none."""
    match = _OF_SIDE.fullmatch(name)
    return (match[1] or match[2]).lower() if match else ""


def looks_of_tasks(tasks: Iterable[Mapping[str, Any]]) -> dict[str, Look]:
    """What each field of the tasks' data holds, also of those that are always empty."""
    looks: dict[str, Look] = {}
    for task in tasks:
        for name, value in task.items():
            look = looks.setdefault(name, Look())
            if value is not None and value != "":
                look.add(value)
    return looks


def columns_of(looks: Mapping[str, Look]) -> Columns:
    """Guess a project's columns from the data of its tasks; numbered answer fields form pairs."""
    names = list(looks)
    sides = [name for name in names if (match := _SIDE.fullmatch(name)) and _ANSWER.fullmatch(match[1])]
    rest = [name for name in names if len(sides) < 2 or name not in sides]
    columns = replace(guess(rest, looks), scores=(), rubric="")
    if len(sides) < 2:
        return columns
    pairs = tuple((name, name) for name in sides)
    return Columns(columns.question, columns.messages, columns.system, columns.reference, answers=pairs)


def task_notes(prefix: str, looks: Mapping[str, Look]) -> list[Note]:
    """What each data field of the tasks becomes; `prefix` is the name of the task data in the file, or ''."""
    columns, prefix = columns_of(looks), f"{prefix}." if prefix else ""
    named = [Note(becomes, f"{prefix}{name}") for becomes, name in columns.roles]
    return named + [Note("field", f"{prefix}{name}") for name in looks if name not in columns.used]


def import_task(
    collector: Collector,
    place: Place,
    name: object,
    data: dict[str, Any],
    columns: Columns,
    more: dict[str, Any],
) -> Task | None:
    """Import a task as a row with its answers; None if it has no question."""
    conversation = data.get(columns.messages) if columns.messages else None
    messages, dropped = chat(
        conversation or "\n\n".join(content_of(data.get(column)).text for column in columns.question)
    )
    if not any(message["content"].strip() for message in messages):
        collector.leave_out(place, "no_question")
        return None
    if columns.system and isinstance(data.get(columns.system), str):
        messages = [{"role": "system", "content": data[columns.system]}, *messages]
    rest = {
        field: value for field, value in data.items() if field not in columns.used or field == columns.model
    }
    key, row = [name, messages], {"id": name, "messages": messages, **fields(rest | more, "data")}
    collector.row(key, row, place, reference=data.get(columns.reference))
    collector.leave_out_parts(place, dropped)
    return Task(key, _answers(collector, place, key, data, columns))


def _answers(
    collector: Collector, place: Place, key: object, data: Mapping[str, Any], columns: Columns
) -> dict[str, tuple[str, int]]:
    """Import the answers of a task, skipping ones already imported: tools repeat a task for each annotator."""
    alone = ((str(data.get(columns.model) or UNNAMED), columns.answer),) if columns.answer else ()
    answers: dict[str, tuple[str, int]] = {}
    taken: dict[str, set[int]] = defaultdict(set)
    for label, field in (*columns.answers, *alone):
        if data.get(field) is None:
            collector.leave_out(place, "no_answer", field)
            continue
        side = _SIDE.fullmatch(field)
        named = (
            [data.get(f"{prefix}{side[2]}") for prefix in ("model_", "model", "model_name_")] if side else []
        )
        model = str(
            next((candidate for candidate in named if isinstance(candidate, str) and candidate), label)
        )
        number = collector.same_answer(key, model, answer(data[field])[0], place, taken[model])
        taken[model].add(number)
        answers[field] = (model, number)
    return answers


def is_comment(name: str, value: Any) -> bool:
    """Whether a text is a comment on the verdicts next to it rather than a verdict."""
    named = re.split(r"[\W_]+", name.lower())[-1] in _COMMENTS
    return isinstance(value, str) and (named or len(value) > LONGEST_LABEL)


def verdict_value(value: Any) -> str | float | bool | None:
    """A label, number or boolean; multiple choices are joined. None for anything else."""
    if isinstance(value, list) and value and all(isinstance(choice, str) for choice in value):
        return ", ".join(value)
    return value if isinstance(value, bool | int | float | str) and value != "" else None
