"""Pages of the items behind figures of verdicts: comparisons, ratings, several judges, a judge's repeats and orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from evalsite.web.paging import paged
from judging.core.statistics.drill_down import (
    LOSSES,
    TIES,
    WINS,
    Comparisons,
    ListedComparison,
    ListedVerdicts,
)
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.verdicts import BOTH_BAD
from judging.core.values import Value
from judging.people.access import rates_here
from judging.reports import selectors, verdict_items
from judging.reports.disagreements import ValuePill, pill
from judging.reports.figures import Kept, for_page, is_large
from judging.reports.labels import author_name, step_names
from judging.reports.links import Links
from judging.reports.verdict_items import (
    ANSWERS,
    FIRST,
    HIGHEST,
    JUDGES,
    KINDS,
    LOWEST,
    ORDERS,
    RATINGS,
    REPEATS,
)
from judging.runs.access import get_run
from judging.runs.models import Run

PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab of a list: its `value` in the query, number of items, and whether it is open."""

    value: str
    name: str
    count: int
    on: bool


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """One verdict on an item, with its author or number."""

    by: str
    value: ValuePill


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One or two answers with their verdicts. `url`: of their judgements."""

    line: int
    candidate: str
    response: int
    other: str
    other_response: int
    question: str
    url: str
    said: Sequence[ItemVerdict]


def comparisons_page(request: HttpRequest, run: Run) -> HttpResponse:
    """An author's comparisons of a candidate with another one, or with all others."""
    asked = {name: request.GET.get(name, "") for name in ("metric", "a", "b", "by", "outcome")}
    kept = None if rates_here(request, run) else for_page(run)
    metric = metric_named(run, asked["metric"])
    found = None
    if kept is not None:
        _check_compared(kept, asked)
        found = verdict_items.comparisons(run, metric, asked["by"], large=is_large(run))
    if kept is None or found is None:
        return redirect("runs:report", run.project.slug, run.pk)  # which shows that they are being computed
    every = found.of(asked["a"], asked["b"])
    chosen = every.having(asked["outcome"]) if asked["outcome"] else every
    places, page = paged(request.GET, range(len(chosen)), PER_PAGE)
    here = chosen.page(range(places[0], places[-1] + 1)) if places else []
    context = {
        **asked,
        **page,
        "run": run,
        "by_name": author_name(asked["by"]),
        "made_at": kept.outdated_since(run),
        "tabs": _outcome_tabs(every, asked),
        "items": _compared_items(run, metric, here),
        "several_answers": any(max(one.response, one.other_response) > 1 for one in here),
    }
    return render(request, "reports/comparisons.html", context)


def metric_named(run: Run, name: str) -> ScaledMetric:
    """Raises Http404."""
    for metric in selectors.metrics_of(run).values():
        if metric.name == name:
            return metric
    raise Http404


def _check_compared(kept: Kept, asked: Mapping[str, str]) -> None:
    """Raise Http404 if the report has no such comparisons."""
    names = {asked["a"], asked["b"] or asked["a"]}
    if not any(
        (one["metric"], one["by"]) == (asked["metric"], asked["by"]) and names <= set(one["candidates"])
        for one in kept.figures.report["side_by_side"]
    ):
        raise Http404


def _outcome_tabs(every: Comparisons, asked: Mapping[str, str]) -> list[Tab]:
    a, b, outcome = asked["a"], asked["b"], asked["outcome"]
    names = {
        "": _("All"),
        WINS: _("%(name)s wins") % {"name": a},
        TIES: _("Ties"),
        LOSSES: _("%(name)s wins") % {"name": b} if b else _("%(name)s loses") % {"name": a},
        BOTH_BAD: pgettext("verdict", "Both bad"),
    }
    if outcome not in names:
        steps = step_names(a, b or _("the other one"))
        if outcome not in steps:
            raise Http404
        names[outcome] = steps[outcome]
    counts = {value: every.count(value) if value else len(every) for value in names}
    shown = [value for value in names if counts[value] or value in ("", WINS, TIES, LOSSES, outcome)]
    return [Tab(value, names[value], counts[value], value == outcome) for value in shown]


def _compared_items(run: Run, metric: ScaledMetric, here: Sequence[ListedComparison]) -> list[ListedItem]:
    questions, links = selectors.questions_of(run, [one.row for one in here]), Links.of(run)
    return [
        ListedItem(
            line=one.row,
            candidate=one.candidate,
            response=one.response,
            other=one.other,
            other_response=one.other_response,
            question=questions.get(one.row, ""),
            url=links.to("", metric.name, line=one.row),  # a comparison is listed under either side
            said=[_verdict("", one.label, one.candidate, one.other)],
        )
        for one in here
    ]


def _verdict(by: str, label: str, a: str, b: str) -> ItemVerdict:
    text = pgettext("verdict", "Both bad") if label == BOTH_BAD else step_names(a, b).get(label, label)
    return ItemVerdict(by, ValuePill(text, None))


@login_required
def verdicts(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Answers with the verdicts behind a figure, largest differences first."""
    run = get_run(request, slug, pk)
    names = ("kind", "metric", "judge", "candidate", "rater", "other", "value", "other_value")
    asked = {name: request.GET.get(name, "") for name in (*names, "apart", "least")}
    kept = None if rates_here(request, run) else for_page(run)
    if kept is None or asked["kind"] not in KINDS:
        return redirect("runs:report", slug, pk)  # which links here, or shows that they are being computed
    metric = metric_named(run, asked["metric"])
    of = asked["candidate"] if asked["kind"] == ANSWERS else asked["judge"]
    found = verdict_items.listed_verdicts(run, metric, asked["kind"], of, large=is_large(run))
    if found is None or not {asked["rater"], asked["other"]} <= {"", *found.names}:
        raise Http404
    wanted = (asked["rater"], asked["value"]), (asked["other"], asked["other_value"])
    least = int(asked["least"]) if asked["least"].isdecimal() and len(asked["least"]) < 6 else 1
    every, apart = (found.places(*wanted, apart=only, least=least) for only in (False, True))
    here, page = paged(request.GET, apart if asked["apart"] else every, PER_PAGE)
    context = {
        **asked,
        **page,
        "run": run,
        "heading": _heading(asked),
        "lede": _lede(asked),
        "made_at": kept.outdated_since(run),
        "listed": found,
        "tabs": _verdict_tabs(asked, len(every), len(apart)),
        "items": _verdict_items(run, metric, asked["kind"], found, here),
        "of_people_or_judges": asked["kind"] in (RATINGS, JUDGES),
        "several_answers": asked["kind"] != ANSWERS
        and max([*found.responses, *found.other_responses], default=1) > 1,
    }
    return render(request, "reports/verdicts.html", context)


def _heading(asked: Mapping[str, str]) -> str:
    of = {"judge": author_name(asked["judge"]), "name": asked["candidate"]}
    return {
        RATINGS: _("Ratings"),
        JUDGES: _("Verdicts of the judges"),
        REPEATS: _("Repeats: %(judge)s") % of,
        ORDERS: _("Both orders: %(judge)s") % of,
        FIRST: _("First side: %(judge)s") % of,
        LOWEST: _("Lowest score given: %(judge)s") % of,
        HIGHEST: _("Highest score given: %(judge)s") % of,
        ANSWERS: _("Repeated answers: %(name)s") % of,
    }[asked["kind"]]


def _lede(asked: Mapping[str, str]) -> str:
    sentences = {
        RATINGS: _("%(metric)s: answers with a rating, largest difference between raters first."),
        JUDGES: _("%(metric)s: answers with a verdict of several judges, largest difference first."),
        REPEATS: _("%(metric)s: answers that the judge scored more than once, largest difference first."),
        ORDERS: _("%(metric)s: pairs of answers that the judge compared in both orders, flipped ones first."),
        FIRST: _("%(metric)s: comparisons with a known order, those that the first side won first."),
        LOWEST: _("%(metric)s: answers to which the judge gave the lowest score of the scale."),
        HIGHEST: _("%(metric)s: answers to which the judge gave the highest score of the scale."),
        ANSWERS: _("%(metric)s: rows with several scored answers, largest difference first."),
    }
    return sentences[asked["kind"]] % {"metric": asked["metric"]}


def _verdict_tabs(asked: Mapping[str, str], every: int, apart: int) -> list[Tab]:
    tabs = [Tab("", _("All"), every, not asked["apart"])]
    if asked["kind"] in (LOWEST, HIGHEST):
        return tabs
    names = {ORDERS: _("Flipped"), FIRST: _("First side preferred")}
    name = names.get(asked["kind"], _("Differing"))
    return [*tabs, Tab("yes", name, apart, bool(asked["apart"]))]


def _verdict_items(
    run: Run, metric: ScaledMetric, kind: str, found: ListedVerdicts, here: Sequence[int]
) -> list[ListedItem]:
    questions, links = selectors.questions_of(run, [found.rows[one] for one in here]), Links.of(run)
    return [
        ListedItem(
            line=found.rows[one],
            candidate=found.candidates[one],
            response=found.responses[one],
            other=found.others[one] or "",
            other_response=found.other_responses[one],
            question=questions.get(found.rows[one], ""),
            url=links.to(
                "" if found.others[one] else found.candidates[one], metric.name, line=found.rows[one]
            ),
            said=[_said(found, one, kind, who, value, metric) for who, value in found.said[one]],
        )
        for one in here
    ]


def _said(
    found: ListedVerdicts, place: int, kind: str, who: int, value: Value, metric: ScaledMetric
) -> ItemVerdict:
    a, b, name = found.candidates[place], found.others[place], found.names[who]
    if kind in (ORDERS, FIRST):
        name = _("%(name)s first") % {"name": b if who else a}
    elif kind == REPEATS:
        name = _("repeat %(n)s") % {"n": name}
    elif kind == ANSWERS:
        name = _("answer %(n)s") % {"n": name}
    elif kind in (LOWEST, HIGHEST):
        name = ""
    if b is not None and isinstance(value, str):
        return _verdict(name, value, a, b)
    return ItemVerdict(name, pill(value, metric))
