"""Pages of the items behind figures of verdicts: comparisons, ratings, several judges, a judge's repeats and orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from datasets.core.kinds import BOTH_BAD
from evalsite.names import with_names
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
from judging.core.values import UNSETTLED, Value
from judging.people.access import rates_here
from judging.records.access import get_run
from judging.records.models import Run
from judging.reports import selectors, verdict_items
from judging.reports.disagreements import ValuePill, pills
from judging.reports.figures import RunFigures, for_page, is_large
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
    query = {name: request.GET.get(name, "") for name in ("metric", "a", "b", "by", "outcome")}
    stored = None if rates_here(request, run) else for_page(run)
    metric = metric_named(run, query["metric"])
    comparisons = None
    if stored is not None:
        _check_compared(stored, query)
        comparisons = verdict_items.comparisons(run, metric, query["by"], large=is_large(run))
    if stored is None or comparisons is None:
        return redirect("runs:report", run.project.slug, run.pk)  # which shows that they are being computed
    every = comparisons.of(query["a"], query["b"])
    chosen = every.having(query["outcome"]) if query["outcome"] else every
    places, page = paged(request.GET, range(len(chosen)), PER_PAGE)
    here = chosen.page(range(places[0], places[-1] + 1)) if places else []
    context = {
        **query,
        **page,
        "run": run,
        "by_name": author_name(query["by"]),
        "made_at": stored.outdated_since(run),
        "tabs": _outcome_tabs(every, query),
        "items": _compared_items(run, metric, here),
        "several_answers": any(
            max(comparison.response, comparison.other_response) > 1 for comparison in here
        ),
    }
    return render(request, "reports/comparisons.html", context)


def metric_named(run: Run, name: str) -> ScaledMetric:
    """Raises Http404."""
    for metric in selectors.metrics_of(run).values():
        if metric.name == name:
            return metric
    raise Http404


def _check_compared(stored: RunFigures, query: Mapping[str, str]) -> None:
    """Raise Http404 if the report has no such comparisons."""
    names = {query["a"], query["b"] or query["a"]}
    if not any(
        (entry["metric"], entry["by"]) == (query["metric"], query["by"]) and names <= set(entry["candidates"])
        for entry in stored.figures.report["side_by_side"]
    ):
        raise Http404


def _outcome_tabs(every: Comparisons, query: Mapping[str, str]) -> list[Tab]:
    a, b, outcome = query["a"], query["b"], query["outcome"]
    names = {
        "": _("All"),
        WINS: with_names(_("%(name)s wins"), {"name": a}),
        TIES: _("Ties"),
        LOSSES: with_names(_("%(name)s wins"), {"name": b})
        if b
        else with_names(_("%(name)s loses"), {"name": a}),
        BOTH_BAD: pgettext("verdict", "Both bad"),
        UNSETTLED: _("Unsettled"),
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
    questions, links = selectors.questions_of(run, [comparison.row for comparison in here]), Links.of(run)
    return [
        ListedItem(
            line=comparison.row,
            candidate=comparison.candidate,
            response=comparison.response,
            other=comparison.other,
            other_response=comparison.other_response,
            question=questions.get(comparison.row, ""),
            url=links.to("", metric.name, line=comparison.row),  # a comparison is listed under either side
            said=[_verdict("", comparison.label, comparison.candidate, comparison.other)],
        )
        for comparison in here
    ]


def _verdict(by: str, label: str, a: str, b: str) -> ItemVerdict:
    names = {**step_names(a, b), BOTH_BAD: pgettext("verdict", "Both bad"), UNSETTLED: _("Unsettled")}
    text = names.get(label, label)
    return ItemVerdict(by, ValuePill(text, None))


@login_required
def verdicts(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Answers with the verdicts behind a figure, largest differences first."""
    run = get_run(request, slug, pk)
    names = ("kind", "metric", "judge", "candidate", "rater", "other", "value", "other_value")
    query = {name: request.GET.get(name, "") for name in (*names, "apart", "least")}
    stored = None if rates_here(request, run) else for_page(run)
    if stored is None or query["kind"] not in KINDS:
        return redirect("runs:report", slug, pk)  # which links here, or shows that they are being computed
    metric = metric_named(run, query["metric"])
    of = query["candidate"] if query["kind"] == ANSWERS else query["judge"]
    listed = verdict_items.listed_verdicts(run, metric, query["kind"], of, large=is_large(run))
    if listed is None or not {query["rater"], query["other"]} <= {"", *listed.names}:
        raise Http404
    wanted = (query["rater"], query["value"]), (query["other"], query["other_value"])
    least = int(query["least"]) if query["least"].isdecimal() and len(query["least"]) < 6 else 1
    every, apart = (listed.places(*wanted, apart=only, least=least) for only in (False, True))
    here, page = paged(request.GET, apart if query["apart"] else every, PER_PAGE)
    context = {
        **query,
        **page,
        "run": run,
        "heading": _heading(query),
        "lede": _lede(query),
        "made_at": stored.outdated_since(run),
        "listed": listed,
        "tabs": _verdict_tabs(query, len(every), len(apart)),
        "items": _verdict_items(run, metric, query["kind"], listed, here),
        "of_people_or_judges": query["kind"] in (RATINGS, JUDGES),
        "several_answers": query["kind"] != ANSWERS
        and max([*listed.responses, *listed.other_responses], default=1) > 1,
    }
    return render(request, "reports/verdicts.html", context)


def _heading(query: Mapping[str, str]) -> str:
    of = {"judge": author_name(query["judge"]), "name": query["candidate"]}
    return {
        RATINGS: _("Ratings"),
        JUDGES: _("Verdicts of the judges"),
        REPEATS: _("Repeats: %(judge)s") % of,
        ORDERS: _("Both orders: %(judge)s") % of,
        FIRST: _("First side: %(judge)s") % of,
        LOWEST: _("Lowest score given: %(judge)s") % of,
        HIGHEST: _("Highest score given: %(judge)s") % of,
        ANSWERS: _("Repeated answers: %(name)s") % of,
    }[query["kind"]]


def _lede(query: Mapping[str, str]) -> str:
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
    return sentences[query["kind"]] % {"metric": query["metric"]}


def _verdict_tabs(query: Mapping[str, str], every: int, apart: int) -> list[Tab]:
    tabs = [Tab("", _("All"), every, not query["apart"])]
    if query["kind"] in (LOWEST, HIGHEST):
        return tabs
    names = {ORDERS: _("Flipped"), FIRST: _("First side preferred")}
    name = names.get(query["kind"], _("Differing"))
    return [*tabs, Tab("yes", name, apart, bool(query["apart"]))]


def _verdict_items(
    run: Run, metric: ScaledMetric, kind: str, listed: ListedVerdicts, here: Sequence[int]
) -> list[ListedItem]:
    questions, links = selectors.questions_of(run, [listed.rows[place] for place in here]), Links.of(run)
    shown = iter(pills([value for place in here for _who, value in listed.said[place]], metric))
    return [
        ListedItem(
            line=listed.rows[place],
            candidate=listed.candidates[place],
            response=listed.responses[place],
            other=listed.others[place] or "",
            other_response=listed.other_responses[place],
            question=questions.get(listed.rows[place], ""),
            url=links.to(
                "" if listed.others[place] else listed.candidates[place], metric.name, line=listed.rows[place]
            ),
            said=[_said(listed, place, kind, who, value, next(shown)) for who, value in listed.said[place]],
        )
        for place in here
    ]


def _said(
    listed: ListedVerdicts, place: int, kind: str, who: int, value: Value, pill: ValuePill
) -> ItemVerdict:
    a, b, name = listed.candidates[place], listed.others[place], listed.names[who]
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
    return ItemVerdict(name, pill)
