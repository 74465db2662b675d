"""The filter of a run's judgements, as pages, downloads and saved views name it (conditions.py applies it)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.db.models import Q
from django.http import HttpRequest
from django.utils.http import urlencode

from evalsite.hooks import HookTable
from judging.filters.row_filters import RowFilter
from judging.records.models import JudgementState, Run

CURRENT, OLDER, ALL = "current", "older", "all"
ATTEMPTS = (CURRENT, OLDER, ALL)
LOWER = "lower"
RULE_SCORES = ("1", "2", "3", "4", "5", LOWER)
YES, NO = "yes", "no"
FIELD = ("field", "field_is", "field_has", "field_from", "field_to")
UNSCORED = tuple(state for state in JudgementState.values if state != JudgementState.SCORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherFilter:
    """A filter by data stored outside the judgements. One entry covers lists, exports, re-judging and the filter menu.

    `name`: the query parameter. `label`: the label of the menu field and the chip. `field`: the form field for the
    value; its cleaned value is converted to text. `condition`: matches the run's judgements with that value, of any
    attempt; an index must find them (`Q(pk__in=…)`). `offered`: whether the run has any matches. `hidden`: whether the
    filter must be hidden from the request's user in this run.
    """

    name: str
    label: Any
    field: Callable[[Run], forms.Field]
    condition: Callable[[Run, str], Q]
    offered: Callable[[Run], bool] = lambda run: True
    hidden: Callable[[HttpRequest, Run], bool] = lambda request, run: False


FURTHER: HookTable[FurtherFilter] = HookTable("judging.filters.judgement_filter.FURTHER")
"""The further filters by name, in menu order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The values of a filter; '' and None match anything. Candidate and metric are names, so that URLs are readable.
    State, value and score are those in force, including overrides; `overridden` is `yes` or `no`.

    `rule`: the number of a rule program line that scored `rule_score` (1 to 5, or `lower` than 5) on some field.
    `least` ≤ score ≤ `most`, score < `below`. `value`: a category, true, false or a number. `question`, `q`, `reply`:
    text in the question, the answer or a judge's reply. `field`: a custom field of the rows that equals `field_is`,
    contains `field_has`, or is a number from `field_from` to `field_to`. `spread`: the minimum disagreement between a
    metric's judges. `form`: how a judge's reply stated its verdict (core/reading/forms.py). `further`: {name of a
    FurtherFilter: value}.
    """

    candidate: str = ""
    metric: str = ""
    state: str = ""
    reason: str = ""
    flag: str = ""
    value: str = ""
    overridden: str = ""
    least: float | None = None
    most: float | None = None
    below: float | None = None
    line: int | None = None
    rule: str = ""
    rule_score: str = ""
    attempts: str = CURRENT
    question: str = ""
    q: str = ""
    reply: str = ""
    field: str = ""
    field_is: str = ""
    field_has: str = ""
    field_from: float | None = None
    field_to: float | None = None
    spread: float | None = None
    form: str = ""
    further: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sort: str = "position"

    @property
    def active(self) -> dict[str, Any]:
        """{parameter: value} of the active filters, in query string order."""
        named = {name: getattr(self, name) for name in self.__slots__ if name != "further"}
        active = {name: value for name, value in named.items() if value != getattr(ANYTHING, name)}
        return active | dict(self.further)

    def without(self, *names: str) -> Filters:
        """A copy that matches anything for these parameters."""
        plain = {name: getattr(ANYTHING, name) for name in names if name not in FURTHER}
        rest = {name: value for name, value in self.further.items() if name not in names}
        return replace(self, **plain, further=rest)

    def replaced(self, name: str, value: Any) -> Filters:
        """A copy with another value for a parameter."""
        if name in FURTHER:
            return replace(self, further={**self.further, name: value})
        return replace(self, **{name: value})

    @property
    def sorted_by(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def falling(self) -> bool:
        return self.sort.startswith("-")

    def query(self, **more: object) -> str:
        """The query string in its shortest form: '' or '?…'."""
        parameters = self.active | {name: value for name, value in more.items() if value not in (None, "")}
        return "?" + urlencode(parameters) if parameters else ""

    @property
    def unscored(self) -> bool:
        """Whether no match can have a score."""
        return self.state in UNSCORED or bool(self.reason or (self.value and self.category is not None))

    @property
    def of_row(self) -> RowFilter:
        """The conditions on rows."""
        return RowFilter(
            question=self.question,
            field=self.field,
            equals=self.field_is,
            part=self.field_has,
            low=self.field_from,
            high=self.field_to,
        )

    @property
    def valued(self) -> float | None:
        """`value` as a score; None for a category."""
        if self.value in ("true", "false"):
            return float(self.value == "true")
        try:
            return float(self.value)
        except ValueError:
            return None

    @property
    def category(self) -> str | None:
        """`value` as a category, plain or quoted as in JSON; None for a score."""
        if self.valued is not None:
            return None
        try:
            quoted = json.loads(self.value) if self.value.startswith('"') else self.value
        except ValueError:
            return self.value
        return str(quoted)


ANYTHING = Filters()


def meaning_category(label: str) -> str:
    """The `value` for this category, quoted if it would otherwise be parsed as a score or lose whitespace."""
    alone = Filters(value=label).category == label == label.strip()
    return label if alone else json.dumps(label, ensure_ascii=False)
