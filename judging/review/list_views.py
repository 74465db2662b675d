"""Judgements that match the filter in the query string: as a grid of items, as a list, and as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from datasets.models import Response
from evalsite.access import signed_in
from evalsite.templatetags.show import number
from evalsite.web.headers import download_headers, file_stem, part_wanted
from judging.filters.addresses import remember_view
from judging.filters.counts import count_text, counts_are_exact, counts_by_state
from judging.filters.filter_form import FilterForm, form_in
from judging.filters.judgement_filter import ANYTHING, CURRENT, Filters
from judging.filters.orders import place_from
from judging.filters.page_limits import LIMITS, Limits
from judging.markdown import html_of
from judging.messages import stored_verdict_text
from judging.people.access import ratings_hidden
from judging.people.disagreement import differences
from judging.records.access import get_judgement, get_run
from judging.records.definitions import definition_now
from judging.records.models import JudgementState, Run
from judging.records.seal import sealed_count, sealed_header
from judging.review import selectors
from judging.review.columns import ListColumn, columns_of
from judging.review.grid import GridPage, grid_page, pill_of
from judging.review.saved_views import views_for
from judging.runs.selectors import worker_missing
from judging.teamwork.marks import current_marks, marks_by_judgement
from judging.teamwork.models import Mark
from judging.transfer.export.files import ENDINGS, FORMS


@login_required
def judgements(request: HttpRequest, slug: str, pk: int, limits: Limits = LIMITS) -> HttpResponse:
    """A page of the filtered list, with the number of judgements in each state."""
    page = _filtered_page(request, get_run(request, slug, pk), "review/list.html", _list_part, limits)
    return remember_view(request, page, "list")


@login_required
def items(request: HttpRequest, slug: str, pk: int, limits: Limits = LIMITS) -> HttpResponse:
    """The grid: rows and candidates, with the judgements of every answer."""
    page = _filtered_page(request, get_run(request, slug, pk), "review/grid.html", _grid_part, limits)
    return remember_view(request, page, "grid")


def _filtered_page(
    request: HttpRequest,
    run: Run,
    template: str,
    part: Callable[[HttpRequest, FilterForm, Limits], dict[str, Any]],
    limits: Limits,
) -> HttpResponse:
    if ratings_hidden(request, run):
        return render(request, "reports/hidden.html", {"run": run})
    form = form_in(request, run)
    filters = form.filters
    if "" in request.GET.values():  # sent by the menu: redirect to a URL without its empty fields
        return redirect(request.path + (filters.query() or "?"))
    counts = counts_by_state(run, filters, limits)
    views = views_for(run.project, signed_in(request))
    context = {
        "run": run,
        "filters": filters,
        "chips": form.chips(),
        "query": filters.query(),
        "saved_views": [(view, form.misfit(view.query)) for view in views],
        "former_order": form.former_order,
        "states": _states(filters, counts, limits),
        **_count(filters, counts, limits),
        "worker_missing": worker_missing(run),
        "sealed": sealed_count([run]),
    }
    return render(request, template, context | part(request, form, limits))


def _list_part(request: HttpRequest, form: FilterForm, limits: Limits) -> dict[str, Any]:
    run, filters = form.run, form.filters
    several = len(form.metrics) > 1
    columns = columns_of(run, signed_in(request), filters, several_metrics=several, hidden=form.hidden)
    after, before = (place_from(request.GET.get(name, "")) for name in ("after", "before"))
    page = selectors.page(run, filters, after=after, before=before, limits=limits)
    marked = marks_by_judgement([line.judgement for line in page.lines])
    columns = [_with_more(column, page.lines, marked) for column in columns]
    shown = {column.name: column.label for column in columns if column.shown}
    answers = [line.judgement.response_id for line in page.lines]
    return {
        "page": page,
        "previous_url": filters.query(before=page.previous) if page.previous else "",
        "next_url": filters.query(after=page.next) if page.next else "",
        "search_on": "" if page.stopped is None else "previous" if page.back else "next",
        "searched": searched_text(run, filters, page),
        "columns": columns,
        "marked": marked,
        "shown": shown,
        "differs": differences(run, among=answers) if "differs" in shown else {},
    }


def _with_more(
    column: ListColumn, lines: Sequence[selectors.JudgementLine], marked: Mapping[int, list[Mark]]
) -> ListColumn:
    """The column of states is shown despite a filter by state where it says more than the state."""
    if column.name != "state" or not column.repeats:
        return column
    return replace(column, repeats=not any(line.noted or marked[line.judgement.pk] for line in lines))


def _grid_part(request: HttpRequest, form: FilterForm, limits: Limits) -> dict[str, Any]:
    page = grid_page(form.run, form.filters, place_from(request.GET.get("after", "")), limits=limits)
    return {
        "page": page,
        "metrics": form.metrics,
        "next_url": form.filters.query(after=page.next) if page.next else "",
        "paged": "after" in request.GET,
        "search_on": "" if page.stopped is None else "next",
        "searched": searched_text(form.run, form.filters, page),
    }


@login_required
def pill(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """One judgement's pill in the grid, after a change in the panel."""
    judgement = get_judgement(request, slug, pk, judgement_pk)
    filters = form_in(request, judgement.run).filters
    base = reverse("runs:judgements", args=(slug, pk))
    shown = pill_of(
        judgement, definition_now(judgement.run_metric), stored_verdict_text(judgement.value_in_force)
    )
    return HttpResponse(shown.html(base, filters.query(), current_marks(judgement)))


@login_required
def answer(request: HttpRequest, slug: str, pk: int, response_pk: int) -> HttpResponse:
    """A complete answer, rendered, for the grid."""
    run = get_run(request, slug, pk)
    response = get_object_or_404(
        Response, pk=response_pk, candidate__in=run.run_candidates.values("candidate")
    )
    return render(request, "review/_answer.html", {"answer": html_of(selectors.answer_text(response.raw))})


@login_required
def filter_menu(request: HttpRequest, slug: str, pk: int, limits: Limits = LIMITS) -> HttpResponse:
    """The filter menu, with the number of judgements for each choice and for all of them together."""
    run = get_run(request, slug, pk)
    form = form_in(request, run)
    context: dict[str, Any] = {"run": run, "form": form, "problem": form.problem}
    whole = not part_wanted(request)
    if not form.problem:
        form.show_counts(limits)
        filters = form.filters
        context |= {"filters": filters, "query": filters.query()}
        context |= _count(filters, counts_by_state(run, filters, limits), limits)
    return render(request, "review/filters.html" if whole else "review/_filters.html", context)


def searched_text(run: Run, filters: Filters, page: selectors.Page | GridPage) -> str:
    """How much was searched, if the search stopped before the page was full; else ''."""
    if page.stopped is None:
        return ""
    numbers = {"shown": number(page.looked_at), "total": number(run.total)}
    if filters.attempts != CURRENT:
        return _("Judgements searched for this page: %(shown)s.") % numbers
    if filters.sort == ANYTHING.sort and not page.back:
        searched = min(page.stopped.position + 1, run.total)  # new attempts come last
        return _("Judgements searched so far: %(shown)s of %(total)s.") % (
            numbers | {"shown": number(searched)}
        )
    return _("Judgements searched for this page: %(shown)s of %(total)s.") % numbers


def _states(filters: Filters, counts: dict[str, int] | None, limits: Limits) -> list[dict[str, Any]]:
    """The tabs above the list: all, and each state that occurs."""
    every = [("", _("All")), *JudgementState.choices]
    return [
        {
            "name": label,
            "count": _count(replace(filters, state=state), counts, limits)["count_shown"],
            "query": replace(filters, state=state).query(),
            "on": filters.state == state,
        }
        for state, label in every
        if not state or counts is None or counts.get(state) or filters.state == state
    ]


def _count(filters: Filters, counts: dict[str, int] | None, limits: Limits) -> dict[str, Any]:
    """The number of matching judgements, and its text: '' if unknown."""
    if counts is None:
        return {"count": None, "count_shown": ""}
    chosen = [counts.get(filters.state, 0)] if filters.state else list(counts.values())
    shown = count_text(*chosen, exact=counts_are_exact(filters), limits=limits)
    return {"count": sum(chosen), "count_shown": shown}


@login_required
def export(request: HttpRequest, slug: str, pk: int, form: str) -> StreamingHttpResponse:
    """Stream the matching judgements as a file."""
    run = get_run(request, slug, pk)
    if form not in FORMS:
        raise Http404
    if ratings_hidden(request, run):
        raise PermissionDenied
    make, kind = FORMS[form]
    blocks = make(run, form_in(request, run).filters)
    headers = download_headers(f"{file_stem(run.name) or run.pk}.{ENDINGS.get(form, form)}") | sealed_header(
        run
    )
    return StreamingHttpResponse(blocks, content_type=kind, headers=headers)
