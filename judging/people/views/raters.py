"""A rater's page, for organisers: figures against thresholds with flags, work by day, ratings, skips and comments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from evalsite.names import bracketed, join_sentences, labelled
from evalsite.templatetags.show import duration, percent, score
from evalsite.web.numbers import whole
from evalsite.web.paging import newest_first
from judging.core.people.quality import FEWEST_SHARED, Figure
from judging.people import progress
from judging.people.access import get_evaluation
from judging.people.labels import labelled_values, value_label, values_of
from judging.people.models import Assignment, Evaluation, EvaluationRater, Rating, RatingKind, SkipReason
from judging.people.rater_figures import rater_figures
from judging.people.set_aside import rater_count_again, rater_set_aside
from judging.people.work import work_of
from judging.records.seal import sealed_items

WHICH = {"all": Q(), "skipped": Q(kind=RatingKind.SKIP), "comments": ~Q(comment="")}
PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class FigureLine:
    """A figure as texts; `limit` says beyond what it stands out, `note` what a deviation means and does to the
    candidates' order."""

    figure: Figure
    name: str
    criterion: str
    value: str
    limit: str
    note: str = ""

    @property
    def text(self) -> str:
        name = f"{self.name} · {self.criterion}" if self.criterion else self.name
        return bracketed(labelled(name, self.value), self.limit)


@dataclass(frozen=True, slots=True)
class Flagged:
    """A rater who stands out, and in what."""

    rater: EvaluationRater
    lines: list[FigureLine]


def rater_lines(request: HttpRequest, evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation's `raters` for its page; for organisers those who stand out come first, and are `flagged`."""
    lines, figures = progress.rater_lines(evaluation), rater_figures(evaluation)
    for row, _gold, _repeats in lines:
        row.median_seconds = figures.medians.get(row.pk)  # type: ignore[attr-defined]
    if May.RUN not in access.permissions(request, evaluation.run.project):
        return {"raters": lines}
    flags = figures.flagged
    flagged = [
        Flagged(row, [figure_line(evaluation, figure) for figure in flags[row.pk]])
        for row, _gold, _repeats in lines
        if row.pk in flags
    ]
    standing_out = {entry.rater.pk for entry in flagged}
    raters = sorted(lines, key=lambda line: line[0].pk not in standing_out)
    return {"raters": raters, "flagged": flagged, "standing_out": standing_out, "current": figures.current}


class SetAsideForm(forms.Form):
    """Why a rater's ratings are set aside."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Organisers see it here and in the audit log."),
    )


@login_required
def rater(request: HttpRequest, slug: str, pk: int, rater: int) -> HttpResponse:
    """Figures, days, ratings and skips of a rater; with ?which=skipped or comments only these."""
    evaluation, row = _rater_of(request, slug, pk, rater)
    return _page(request, evaluation, row, SetAsideForm())


@login_required
@require_POST
def set_aside(request: HttpRequest, slug: str, pk: int, rater: int) -> HttpResponse:
    """Set a rater's ratings aside."""
    evaluation, row = _rater_of(request, slug, pk, rater)
    form = SetAsideForm(request.POST)
    form.full_clean()
    try:
        done = rater_set_aside(
            rater=row, reason=form.cleaned_data.get("reason", ""), by=access.signed_in(request)
        )
    except ValidationError as error:
        form.add_error(None, error)
        return _page(request, evaluation, row, form)
    if done:
        text = _("The ratings of %(name)s are set aside. Others get their places.")
        messages.success(request, text % {"name": row.user.username})
    return redirect("people:rater", slug, pk, rater)


@login_required
@require_POST
def count_again(request: HttpRequest, slug: str, pk: int, rater: int) -> HttpResponse:
    """Count ratings again that were set aside."""
    _evaluation, row = _rater_of(request, slug, pk, rater)
    if rater_count_again(rater=row, by=access.signed_in(request)):
        messages.success(request, _("The ratings of %(name)s count again.") % {"name": row.user.username})
    return redirect("people:rater", slug, pk, rater)


def _rater_of(request: HttpRequest, slug: str, pk: int, rater: int) -> tuple[Evaluation, EvaluationRater]:
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    raters = EvaluationRater.objects.select_related("user")
    return evaluation, get_object_or_404(raters, evaluation=evaluation, pk=rater)


def _page(
    request: HttpRequest, evaluation: Evaluation, row: EvaluationRater, form: SetAsideForm
) -> HttpResponse:
    which, before = request.GET.get("which", "all"), whole(request.GET.get("before", ""))
    which = which if which in WHICH else "all"
    own, sealed = Rating.objects.filter(rater=row), sealed_items(evaluation.run)
    seen = own.filter(WHICH[which]).exclude(assignment__item__row__in=sealed)
    page, further = newest_first(seen.select_related("assignment__item"), PER_PAGE, before)
    reasons, figures = dict(SkipReason.choices), rater_figures(evaluation)
    context: dict[str, Any] = {
        "evaluation": evaluation,
        "rater": row,
        "form": form,
        "counted": Assignment.objects.counted().filter(rater=row).count(),
        "figures": [figure_line(evaluation, figure) for figure in figures.by_rater.get(row.pk, ())],
        "current": figures.current,
        "days": list(reversed(work_of(evaluation, row).get(row.pk, []))),
        "sealed": own.filter(assignment__item__row__in=sealed).count() if sealed else 0,
        "which": which,
        "before": before,
        "further": further,
        "ratings": [
            (entry, labelled_values(evaluation.criteria, values_of(entry.values)), reasons.get(entry.reason))
            for entry in page
        ],
    }
    return render(request, "people/rater.html", context, status=422 if form.errors else 200)


def figure_line(evaluation: Evaluation, figure: Figure) -> FigureLine:
    """A figure with its name and values as texts."""
    criterion = "" if figure.criterion is None else evaluation.criteria[figure.criterion].name
    texts = _name_of(evaluation, figure), criterion, _value_of(figure), _limit_of(figure), _note_of(figure)
    return FigureLine(figure, *texts)


def _name_of(evaluation: Evaluation, figure: Figure) -> str:
    if figure.name == "value" and figure.criterion is not None:
        sides = [_("left"), _("right")]
        label = value_label(evaluation.criteria[figure.criterion], figure.what, sides)
        return _("Most frequent value: %(value)s") % {"value": label}
    if figure.name == "side":
        return _("Prefers the left side") if figure.what == "A" else _("Prefers the right side")
    return {
        "time": _("Median time per item"),
        "gold": _("Gold items right"),
        "agreement": _("Agreement with the others"),
        "deviation": _("Deviation from the others' mean"),
        "repeats": _("Same on repeat"),
    }[figure.name]


def _value_of(figure: Figure) -> str:
    if figure.value is None:
        return _("too few") if figure.of < FEWEST_SHARED or figure.name != "deviation" else "–"
    if figure.name == "time":
        return duration(figure.value)
    if figure.name != "deviation":
        return percent(figure.value, 0)
    if figure.low is None or figure.high is None:
        return score(figure.value, 2)
    ends = {"mean": score(figure.value, 2), "low": score(figure.low, 2), "high": score(figure.high, 2)}
    return _("%(mean)s (%(low)s to %(high)s)") % ends


def _note_of(figure: Figure) -> str:
    if figure.name != "deviation" or not figure.value:
        return ""
    by = {"n": score(abs(figure.value), 2)}
    text = (
        _("%(n)s stricter than the others.") if figure.value < 0 else _("%(n)s more lenient than the others.")
    )
    sentences = [text % by]
    if figure.reorders is not None:
        same, other = (
            _("The candidates' order stays the same without it."),
            _("Without it the candidates stand in another order."),
        )
        sentences.append(other if figure.reorders else same)
    return join_sentences(sentences)


def _limit_of(figure: Figure) -> str:
    if figure.name == "time":
        return _("under %(limit)s") % {"limit": duration(figure.threshold)}
    if figure.name == "deviation":
        return _("more than %(limit)s away") % {"limit": score(figure.threshold, 3)}
    limit = {"limit": percent(figure.threshold, 0)}
    return _("over %(limit)s") % limit if figure.name in ("side", "value") else _("under %(limit)s") % limit
