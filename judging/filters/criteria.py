"""The filter by what became of a checklist's criterion: `met:KEY`, `not_met:KEY` or `open:KEY`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from django import forms
from django.db.models import Q
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _

from datasets.core.kinds import CHECKLIST
from evalsite.names import labelled
from judging.core.checklists import checklist_from
from judging.core.metric_definition import MetricDefinition
from judging.filters.judgement_filter import FurtherFilter
from judging.filters.row_filters import id_subquery
from judging.records.models import Judgement, Run

MET, NOT_MET, OPEN = "met", "not_met", "open"
OUTCOMES = {MET: _("met"), NOT_MET: _("not met"), OPEN: _("can't tell")}
_STORED = {MET: "true", NOT_MET: "false", OPEN: "null"}
_MET = {MET: True, NOT_MET: False, OPEN: None}
_BATCH = 2_000
_LOOKED_AT = 200  # checklists whose criteria are offered


def criterion_filter(outcome: str, key: str) -> str:
    """The filter's value for criteria with this key, an id or a text."""
    return f"{outcome}:{key}"


def _condition(run: Run, value: str) -> Q:
    """Judgements whose stored checklist has the outcome beside the id or the text, see JudgedCriterion."""
    outcome, _colon, key = value.partition(":")
    if outcome not in OUTCOMES:
        return Q(pk__in=())
    written, stored = json.dumps(key, ensure_ascii=False), _STORED[outcome]
    texts = (f'{{"id":{written},"met":{stored},', f'"met":{stored},"text":{written},')
    judged = Judgement.objects.filter(run=run).exclude(checklist="")
    matches = Q(checklist__contains=texts[0]) | Q(checklist__contains=texts[1])
    stored_lists = judged.filter(matches).values_list("pk", "checklist").iterator(_BATCH)
    return Q(pk__in=id_subquery([pk for pk, text in stored_lists if _has(text, outcome, key)]))


def _has(text: str, outcome: str, key: str) -> bool:
    """Whether a stored checklist has this outcome for a criterion with this key; an id that is only a number in its
    row is none."""
    checklist = checklist_from(text)
    criteria = checklist.criteria if checklist else ()
    return any(criterion.key == key and _MET[outcome] is criterion.met for criterion in criteria)


def criteria_choices(run: Run, outcomes: Mapping[str, object]) -> list[tuple[str, object]]:
    """Choices of a criterion with each of these outcomes, of the first checklists of a run."""
    judged = Judgement.objects.filter(run=run, current=True).exclude(checklist="").order_by("position")
    texts = judged.values_list("checklist", flat=True)[:_LOOKED_AT]
    checklists = filter(None, map(checklist_from, texts))
    names = {criterion.key: criterion.text for checklist in checklists for criterion in checklist.criteria}
    return [
        (criterion_filter(outcome, key), labelled(Truncator(text).chars(60), label))
        for key, text in names.items()
        for outcome, label in outcomes.items()
    ]


def criterion_field(run: Run, outcomes: Mapping[str, object]) -> forms.Field:
    """The field of a filter by criterion and outcome."""
    choices = cache(lambda: [("", _("any")), *criteria_choices(run, outcomes)])
    return forms.CharField(max_length=2_000, widget=forms.Select(choices=choices))  # type: ignore[arg-type]


def has_checklists(run: Run) -> bool:
    definitions = run.metrics.values_list("definition", flat=True)
    return any(MetricDefinition.from_json(text).gives == CHECKLIST for text in definitions)


CRITERION = FurtherFilter(
    name="criterion",
    label=_("Criterion"),
    field=lambda run: criterion_field(run, OUTCOMES),
    condition=_condition,
    offered=has_checklists,
)
