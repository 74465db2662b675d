"""Columns of the list of judgements: each user's selection, and sorting by header."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from evalsite.access import signed_in
from evalsite.accounts.models import User
from judging.filters.filter_form import form_in
from judging.filters.judgement_filter import Filters
from judging.filters.orders import ORDERS
from judging.records.access import get_run
from judging.records.models import Run
from judging.review.models import ListColumns

ROW, SOURCE = "position", "source"
NAMES = {
    "candidate": _("Candidate"),
    "metric": _("Metric"),
    SOURCE: _("Judged by"),
    "score": ORDERS["score"].label,
    "state": _("State"),
    "question": _("Question"),
    "answer": _("Answer"),
    "spread": _("Spread of judges"),
    "differs": _("Judge − people"),
    "seconds": ORDERS["seconds"].label,
    "changed": ORDERS["changed"].label,
}
"""The columns after the row number, which is always shown."""

_ON_DEMAND = ("spread", "differs", "changed")
REPEATING = ("candidate", "metric", "state")
"""Columns that hold one value while the filter of the same name is set."""
NUMBERS = (ROW, "score", "spread", "differs", "seconds")


@dataclass(frozen=True, slots=True)
class ListColumn:
    """A column that can be shown. `chosen`: by the user; `repeats`: a filter already says what it would show. `query`:
    the link of its header, '' if it can't be sorted; `now`: the current sort direction."""

    name: str
    label: str
    chosen: bool
    repeats: bool
    query: str
    now: str

    @property
    def shown(self) -> bool:
        return self.chosen and not self.repeats

    @property
    def number(self) -> bool:
        return self.name in NUMBERS


class ColumnsForm(forms.Form):
    columns = forms.MultipleChoiceField(choices=list(NAMES.items()), required=False)


def columns_of(
    run: Run, user: User, filters: Filters, *, several_metrics: bool, hidden: Collection[str] = ()
) -> list[ListColumn]:
    """The available columns; those that the user has chosen, and the sort column, are marked as chosen. `hidden`:
    names of columns that the user must not see."""
    chosen = ListColumns.objects.filter(user=user).values_list("names", flat=True).first()
    if chosen is None:
        chosen = [name for name in NAMES if name not in _ON_DEMAND]
    chosen = {*chosen, filters.sorted_by}
    names = [name for name in _available_in(run, several_metrics) if name not in hidden]
    return [_column(ROW, True, filters), *(_column(name, name in chosen, filters) for name in names)]


def _available_in(run: Run, several_metrics: bool) -> list[str]:
    """The columns that are useful in this run."""
    offered = {"metric": several_metrics, SOURCE: run.imported}
    return [name for name in NAMES if offered.get(name, True)]


def _column(name: str, chosen: bool, filters: Filters) -> ListColumn:
    """A click on its header sorts ascending, then descending."""
    repeats = name in REPEATING and bool(getattr(filters, name))
    if name not in ORDERS:
        return ListColumn(name, str(NAMES[name]), chosen, repeats, "", "")
    now = {name: "ascending", f"-{name}": "descending"}.get(filters.sort, "")
    turned = replace(filters, sort=f"-{name}" if now == "ascending" else name)
    return ListColumn(name, str(ORDERS[name].label), chosen, repeats, turned.query() or "?", now)


@login_required
@require_POST
def choose(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Save the user's columns for all lists of judgements."""
    run = get_run(request, slug, pk)
    form = ColumnsForm(request.POST)
    chosen: Sequence[str] = form.cleaned_data["columns"] if form.is_valid() else ()
    if chosen:
        offered = _available_in(run, run.metrics.count() > 1)
        of_other_runs = [name for name in NAMES if name not in offered]  # available in other runs
        ListColumns.objects.update_or_create(
            user=signed_in(request), defaults={"names": [*chosen, *of_other_runs]}
        )
    else:  # an empty selection would leave only row numbers: restore the default
        ListColumns.objects.filter(user=signed_in(request)).delete()
    address = reverse("runs:judgements", args=(run.project.slug, run.pk))
    return redirect(address + form_in(request, run).filters.query())
