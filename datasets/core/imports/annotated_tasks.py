"""Shared by annotation tool imports: a task's data becomes a row with answers, its annotations become verdicts."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasets.core.imports.chat import answer, chat, content_of
from datasets.core.imports.collector import Collector, fields
from datasets.core.imports.columns import Columns, guess
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
            known = [one for one in self.answers if re.search(rf"(?<!\w){re.escape(one)}(?!\w)", name)]
            known = known or [one for one in self.answers if name.endswith(one)]
            known = known or [one for one in self.answers if _side(one) and _side(one) == _side(name)]
            if len(known) == 1:
                return self.answers[known[0]]
        return None


def _side(name: str) -> str:
    """The number or letter at the end of a name, as `rating_a` refers to `response_a`; '' if there is none."""
    found = _OF_SIDE.fullmatch(name)
    return (found[1] or found[2]).lower() if found else ""


def columns_of(tasks: Sequence[Mapping[str, Any]]) -> Columns:
    """Guess a project's columns from the data of its first tasks; numbered answer fields form pairs."""
    names = list(dict.fromkeys(name for task in tasks for name in task))
    sides = [name for name in names if (found := _SIDE.fullmatch(name)) and _ANSWER.fullmatch(found[1])]
    rest = [name for name in names if len(sides) < 2 or name not in sides]
    columns = replace(guess(rest, [dict(task) for task in tasks]), scores=())
    if len(sides) < 2:
        return columns
    pairs = tuple((name, name) for name in sides)
    return Columns(columns.question, columns.messages, columns.system, columns.reference, answers=pairs)


def task_notes(prefix: str, tasks: Sequence[Mapping[str, Any]]) -> list[Note]:
    """What each data field of the tasks becomes; `prefix` is the name of the task data in the file, or ''."""
    columns, prefix = columns_of(tasks), f"{prefix}." if prefix else ""
    rest = dict.fromkeys(name for task in tasks for name in task if name not in columns.used)
    named = [Note(becomes, f"{prefix}{name}") for becomes, name in columns.roles]
    return named + [Note("field", f"{prefix}{name}") for name in rest]


def take_task(
    found: Collector, place: Place, name: object, data: dict[str, Any], columns: Columns, more: dict[str, Any]
) -> Task | None:
    """Import a task as a row with its answers; None if it has no question."""
    asked = data.get(columns.messages) if columns.messages else None
    messages, dropped = chat(asked or "\n\n".join(content_of(data.get(one)).text for one in columns.question))
    if not any(one["content"].strip() for one in messages):
        found.leave_out(place, "no_question")
        return None
    if columns.system and isinstance(data.get(columns.system), str):
        messages = [{"role": "system", "content": data[columns.system]}, *messages]
    rest = {one: value for one, value in data.items() if one not in columns.used or one == columns.model}
    key, row = [name, messages], {"id": name, "messages": messages, **fields(rest | more, "data")}
    found.row(key, row, place, reference=data.get(columns.reference))
    found.leave_out_parts(place, dropped)
    return Task(key, _answers(found, place, key, data, columns))


def _answers(
    found: Collector, place: Place, key: object, data: Mapping[str, Any], columns: Columns
) -> dict[str, tuple[str, int]]:
    """Import the answers of a task, skipping ones already imported: tools repeat a task for each annotator."""
    alone = ((str(data.get(columns.model) or UNNAMED), columns.answer),) if columns.answer else ()
    answers: dict[str, tuple[str, int]] = {}
    taken: dict[str, set[int]] = defaultdict(set)
    for given, field in (*columns.answers, *alone):
        if data.get(field) is None:
            found.leave_out(place, "no_answer", field)
            continue
        side = _SIDE.fullmatch(field)
        named = [data.get(f"{one}{side[2]}") for one in ("model_", "model", "model_name_")] if side else []
        model = str(next((one for one in named if isinstance(one, str) and one), given))
        number = found.same_answer(key, model, answer(data[field])[0], place, taken[model])
        taken[model].add(number)
        answers[field] = (model, number)
    return answers


def is_comment(name: str, value: Any) -> bool:
    """Whether a text is a comment on the verdicts next to it rather than a verdict."""
    named = re.split(r"[\W_]+", name.lower())[-1] in _COMMENTS
    return isinstance(value, str) and (named or len(value) > LONGEST_LABEL)


def verdict_value(value: Any) -> str | float | bool | None:
    """A label, number or boolean; multiple choices are joined. None for anything else."""
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value if isinstance(value, bool | int | float | str) and value != "" else None
