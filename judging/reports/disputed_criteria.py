"""The filter by criteria of checklists that people, or the judge and people, see differently: `people:KEY` or
`judge:KEY`."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from judging.filters.criteria import criterion_field, has_checklists
from judging.filters.judgement_filter import FurtherFilter
from judging.filters.row_filters import id_subquery
from judging.people.access import rates_here
from judging.people.selectors import evaluations_of
from judging.records.definitions import definitions_now
from judging.records.models import Run

PEOPLE, JUDGE = "people", "judge"
OUTCOMES = {PEOPLE: _("people disagree"), JUDGE: _("judge and people disagree")}


def _condition(run: Run, value: str) -> Q:
    """The answers that the report counts, under the metrics that have them."""
    from judging.core.statistics.checklists import disputed_answers  # numpy: few processes need it
    from judging.reports.checklists import checklists_of

    dispute, _colon, key = value.partition(":")
    disputed = Q(pk__in=())
    if dispute not in OUTCOMES:
        return disputed
    for metric, checklists in checklists_of(run, definitions_now(run)).items():
        by_people, by_judge = disputed_answers(checklists, key)
        answers = by_people if dispute == PEOPLE else by_judge
        disputed |= Q(run_metric__name=metric, response__in=id_subquery(sorted(answers)))
    return disputed


DISPUTED = FurtherFilter(
    name="disputed",
    label=_("Disputed criterion"),
    field=lambda run: criterion_field(run, OUTCOMES),
    condition=_condition,
    offered=lambda run: has_checklists(run) and (run.imported or bool(evaluations_of(run))),
    hidden=rates_here,
)
