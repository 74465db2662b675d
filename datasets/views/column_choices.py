"""The form for the meaning of each column: created from a mapping and converted back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasets.core.imports.columns import Columns, Score
from datasets.core.imports.tables import Table
from datasets.import_messages import becomes_label

SHOWN = 100
EXAMPLES, EXAMPLE = 2, 60  # example values shown per column, and characters of each
NAMED = ("answer", "verdict", "field")
ROLES = ("question", "messages", "system", "reference", "model", "answer", "verdict", "field", "left_out")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a column becomes, and its name: of a model, a field or a score's metric.

    `of` is the model whose answer a score is about, '' if there is only one.
    """

    number: int
    column: str
    examples: list[str]
    becomes: str
    name: str
    of: str

    @property
    def named(self) -> bool:
        return self.becomes in NAMED


def choices(table: Table, columns: Columns) -> list[Choice]:
    """The meaning of each of the first columns."""
    first = table.first()
    return [_choice(number, name, columns, table, first) for number, name in enumerate(table.columns[:SHOWN])]


def roles() -> list[tuple[str, str]]:
    return [(role, becomes_label(role)) for role in ROLES]


def _choice(
    number: int, column: str, columns: Columns, table: Table, first: Sequence[Mapping[str, Any]]
) -> Choice:
    becomes, name, of = _role(column, columns, table.columns)
    held = [row[column] for row in first if row.get(column) not in (None, "")]
    return Choice(number, column, [excerpt(value) for value in held[:EXAMPLES]], becomes, name, of)


def _role(column: str, columns: Columns, names: Sequence[str]) -> tuple[str, str, str]:
    if column in columns.question:
        return "question", "", ""
    for role in ("messages", "system", "reference", "model"):
        if getattr(columns, role) == column:
            return role, "", ""
    if column == columns.answer:
        return "answer", "" if columns.model else column, ""
    for model, answer in columns.answers:
        if answer == column:
            return "answer", model, ""
    for score in columns.scores:
        if score.column == column:
            return "verdict", score.metric, score.model
    field = next((name for name, own in columns.fields_of(names) if own == column), None)
    return ("left_out", column, "") if field is None else ("field", field, "")


def as_text(value: Any) -> str:
    """A value for display; dates are not JSON values and use str()."""
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def excerpt(value: Any) -> str:
    """The first characters of a value."""
    text = as_text(value)
    return text[: EXAMPLE - 1] + "…" if len(text) > EXAMPLE else text


def from_form(sent: Mapping[str, str], table: Table, before: Columns) -> Columns:
    """The submitted mapping; columns not in the form keep their previous meaning."""
    made = [
        (column, *_sent(sent, number, _role(column, before, table.columns)))
        for number, column in enumerate(table.columns)
    ]
    of_role = {role: [row for row in made if row[1] == role] for role in ROLES}

    def single(role: str) -> str:
        return next((row[0] for row in of_role[role]), "")

    model, answers = single("model"), [(row[2] or row[0], row[0]) for row in of_role["answer"]]
    alone = bool(model) and bool(answers)
    known = {name for name, _column in answers}
    scores = [
        Score(metric or column, column, (of if of in known else answers[0][0]) if len(answers) > 1 else "")
        for column, _role_, metric, of in of_role["verdict"]
        if answers
    ]
    fields = [(row[2] or row[0], row[0]) for row in of_role["field"]]
    columns = Columns(
        question=tuple(row[0] for row in of_role["question"]),
        messages=single("messages"),
        system=single("system"),
        reference=single("reference"),
        model=model,
        answer=answers[0][1] if alone else "",
        answers=() if alone else tuple(answers),
        scores=tuple(scores),
    )
    if columns.fields_of(table.columns) == fields:
        return columns
    return replace(columns, fields=tuple(fields))


def _sent(sent: Mapping[str, str], number: int, before: tuple[str, str, str]) -> tuple[str, str, str]:
    becomes = sent.get(f"becomes-{number}", before[0])
    if becomes not in ROLES:
        becomes = before[0]
    return becomes, sent.get(f"name-{number}", before[1]).strip()[:200], sent.get(f"of-{number}", before[2])
