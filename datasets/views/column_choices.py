"""The form for the meaning of each column: created from a mapping and converted back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasets.core.imports.chat import text_in
from datasets.core.imports.columns import Columns, Score
from datasets.core.imports.tables import SourceTable
from datasets.messages import becomes_label
from evalsite.truncation import truncate

SHOWN = 100
EXAMPLES, EXAMPLE = 2, 60  # example values shown per column, and characters of each
NAMED = ("answer", "reply", "verdict", "field")
ANSWERS = ("answer", "reply")
TEXTS = ("question", "system", "model", "answer")
ROLES = (
    *("question", "messages", "reply", "system", "reference", "rubric", "model", "answer", "outputs"),
    *("verdict", "field", "left_out"),
)
"""What a column may become; a `reply` is messages of which the last is an answer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a column becomes, and its name: of a model, a field or a score's metric.

    `in_json`: it becomes a text, but holds JSON. `of` is the model whose answer a score is about, '' if there is only
    one.
    """

    column: str
    becomes: str
    name: str = ""
    of: str = ""
    number: int = 0
    examples: Sequence[str] = ()
    in_json: bool = False

    @property
    def is_answer(self) -> bool:
        return self.becomes in ANSWERS

    @property
    def named(self) -> bool:
        return self.becomes in NAMED


def choices(table: SourceTable, columns: Columns) -> list[Choice]:
    """The meaning of each of the first columns."""
    first = table.first()
    chosen = [_choice(column, columns, table.columns) for column in table.columns[:SHOWN]]
    return [
        replace(
            choice,
            number=number,
            examples=_examples(choice.column, first),
            in_json=choice.becomes in TEXTS and any(_is_json(row.get(choice.column)) for row in first),
        )
        for number, choice in enumerate(chosen)
    ]


def _is_json(value: Any) -> bool:
    """Whether a value is an object or a list that holds no text, or a text of one."""
    if isinstance(value, str):
        return value.lstrip()[:1] in ("[", "{") and isinstance(_parsed(value), dict | list)
    return isinstance(value, dict | list) and text_in(value) is None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def roles() -> list[tuple[str, str]]:
    return [(role, becomes_label(role)) for role in ROLES]


def _examples(column: str, first: Sequence[Mapping[str, Any]]) -> list[str]:
    values = [row[column] for row in first if row.get(column) not in (None, "")]
    return [excerpt(value) for value in values[:EXAMPLES]]


def _choice(column: str, columns: Columns, names: Sequence[str]) -> Choice:
    """What a column becomes in a mapping of a table with these column names."""
    if column in columns.question:
        return Choice(column, "question")
    reply = next((model for model, answer in columns.answers if answer == column), "")
    if column == columns.messages and (reply or column == columns.answer):
        return Choice(column, "reply", reply)
    for role in ("messages", "outputs", "system", "reference", "rubric", "model"):
        if getattr(columns, role) == column:
            return Choice(column, role)
    if column == columns.answer:
        return Choice(column, "answer", "" if columns.model else column)
    for model, answer in columns.answers:
        if answer == column:
            return Choice(column, "answer", model)
    for score in columns.scores:
        if score.column == column:
            return Choice(column, "verdict", score.metric, score.model)
    field = next((name for name, own in columns.fields_of(names) if own == column), None)
    return Choice(column, "left_out", column) if field is None else Choice(column, "field", field)


def as_text(value: Any) -> str:
    """A value for display; dates are not JSON values and use str()."""
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def excerpt(value: Any) -> str:
    """The first characters of a value."""
    return truncate(as_text(value), EXAMPLE - 1)


def from_form(sent: Mapping[str, str], table: SourceTable, before: Columns) -> Columns:
    """The submitted mapping; columns not in the form keep their previous meaning."""
    chosen = [
        _submitted(sent, number, _choice(column, before, table.columns))
        for number, column in enumerate(table.columns)
    ]
    by_role = {role: [choice for choice in chosen if choice.becomes == role] for role in ROLES}

    def single(role: str) -> str:
        return next((choice.column for choice in by_role[role]), "")

    model = single("model")
    answers = [(choice.name or choice.column, choice.column) for choice in chosen if choice.is_answer]
    alone = bool(model) and bool(answers)
    models = {name for name, _column in answers}
    scores = [
        Score(
            choice.name or choice.column,
            choice.column,
            (choice.of if choice.of in models else answers[0][0]) if len(answers) > 1 else "",
        )
        for choice in by_role["verdict"]
        if answers
    ]
    fields = [(choice.name or choice.column, choice.column) for choice in by_role["field"]]
    columns = Columns(
        question=tuple(choice.column for choice in by_role["question"]),
        messages=single("messages") or single("reply"),
        outputs=single("outputs"),
        system=single("system"),
        reference=single("reference"),
        rubric=single("rubric"),
        model=model,
        answer=answers[0][1] if alone else "",
        answers=() if alone else tuple(answers),
        scores=tuple(scores),
    )
    if columns.fields_of(table.columns) == fields:
        return columns
    return replace(columns, fields=tuple(fields))


def _submitted(sent: Mapping[str, str], number: int, before: Choice) -> Choice:
    becomes = sent.get(f"becomes-{number}", before.becomes)
    if becomes not in ROLES:
        becomes = before.becomes
    name, of = sent.get(f"name-{number}", before.name), sent.get(f"of-{number}", before.of)
    return Choice(before.column, becomes, name.strip()[:200], of)
