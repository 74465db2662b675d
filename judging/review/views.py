"""Judgements: the list, its downloads, and the page of one, where a reviewer may put another value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from datasets.models import Response
from evalsite.access import May, signed_in
from evalsite.templatetags.show import number
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import Criterion
from judging.core.results_file.verdicts import COMPARISONS
from judging.core.values import Value, stored_value_text
from judging.markdown import Budget, html_of
from judging.people.selectors import said_of, seen_by_people
from judging.review import selectors
from judging.review.forms import LARGEST, OverrideForm, WithdrawForm
from judging.review.grid import grid_page
from judging.review.places import place_from
from judging.review.telling import story_of
from judging.runs.access import get_judgement, get_run
from judging.runs.counts import MOST_COUNTED, counts_are_exact, counts_by_state
from judging.runs.export.files import FORMS
from judging.runs.filter_form import FLAGS, FilterForm
from judging.runs.filters import Filters
from judging.runs.models import INFER, PEOPLE, Generation, Judgement, JudgementState, Override, Run
from judging.runs.overrides import OverrideConflict, override_add, override_withdraw
from judging.runs.selectors import worker_missing

TABS = ("rendered", "raw", "request", "reply", "script")


@login_required
def judgements(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A page of what the filter in the address means, with the counts of each state."""
    run = get_run(request, slug, pk)
    form = FilterForm(request.GET, run)
    filters = form.filters
    after, before = (place_from(request.GET.get(name, "")) for name in ("after", "before"))
    page = selectors.page(run, filters, after=after, before=before)
    counts = counts_by_state(run, filters)
    context = {
        "run": run,
        "form": form,
        "filters": filters,
        "query": filters.query(),
        "page": page,
        "previous_url": filters.query(before=page.previous) if page.previous else "",
        "next_url": filters.query(after=page.next) if page.next else "",
        **_search_on(page),
        "states": _states(filters, counts),
        **_count(filters, counts),
        "sorts": {name: _sort(filters, name) for name in ("position", "score", "seconds")},
        "retried": selectors.was_retried(run),
        "several_metrics": run.metrics.count() > 1,
        "worker_missing": worker_missing(run),
    }
    return render(request, "review/list.html", context)


@login_required
def items(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The grid: rows and candidates, with the judgements of every answer."""
    run = get_run(request, slug, pk)
    form = FilterForm(request.GET, run)
    filters = form.filters
    page = grid_page(run, filters, place_from(request.GET.get("after", "")))
    counts = counts_by_state(run, filters)
    context = {
        "run": run,
        "form": form,
        "filters": filters,
        "chips": form.chips(),
        "query": filters.query(),
        "page": page,
        "next_url": filters.query(after=page.next) if page.next else "",
        "paged": "after" in request.GET,
        "states": _states(filters, counts),
        **_count(filters, counts),
        "retried": selectors.was_retried(run),
        "several_metrics": run.metrics.count() > 1,
        "worker_missing": worker_missing(run),
    }
    return render(request, "review/grid.html", context)


@login_required
def answer(request: HttpRequest, slug: str, pk: int, response_pk: int) -> HttpResponse:
    """A whole answer, formatted, for the grid."""
    run = get_run(request, slug, pk)
    found = get_object_or_404(Response, pk=response_pk, candidate__in=run.run_candidates.values("candidate"))
    return render(
        request, "review/_answer.html", {"answer": html_of(selectors.answer_text(found.raw), Budget())}
    )


@login_required
def panel(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """One judgement beside the grid."""
    return _panel(request, get_judgement(request, slug, pk, judgement_pk))


def _search_on(page: selectors.Page) -> dict[str, Any]:
    """Where a look goes on that ended before the page was full, and how far from the beginning it came."""
    if page.stopped is None:
        return {"search_on": ""}
    return {"search_on": "previous" if page.back else "next", "looked_through": page.stopped + 1}


def _states(filters: Filters, counts: dict[str, int] | None) -> list[dict[str, Any]]:
    """The tabs above the list: all, and each state that there is."""
    every = [("", _("All")), *JudgementState.choices]
    return [
        {
            "name": label,
            "count": _count(replace(filters, state=state), counts)["count_shown"],
            "query": replace(filters, state=state).query(),
            "on": filters.state == state,
        }
        for state, label in every
        if not state or counts is None or counts.get(state) or filters.state == state
    ]


def _count(filters: Filters, counts: dict[str, int] | None) -> dict[str, Any]:
    """How many judgements match, and the count as text: '' where it is not known."""
    if counts is None:
        return {"count": None, "count_shown": ""}
    meant = [counts.get(filters.state, 0)] if filters.state else list(counts.values())
    beyond = not counts_are_exact(filters) and any(count > MOST_COUNTED for count in meant)
    shown = f"{number(MOST_COUNTED)}+" if beyond else number(sum(meant))
    return {"count": sum(meant), "count_shown": shown}


def _sort(filters: Filters, name: str) -> dict[str, str]:
    """Where a column's head leads, and how it is sorted by now. Scores begin with the lowest: they need a look."""
    now = {name: "ascending", f"-{name}": "descending"}.get(filters.sort, "")
    turned = f"-{name}" if now == "ascending" and name != "position" else name
    return {"now": now, "query": replace(filters, sort=turned).query() or "?"}


@login_required
def export(request: HttpRequest, slug: str, pk: int, form: str) -> StreamingHttpResponse:
    """What the filter means, as a file, sent while it is made."""
    run = get_run(request, slug, pk)
    if form not in FORMS:
        raise Http404
    make, kind = FORMS[form]
    response = StreamingHttpResponse(make(run, FilterForm(request.GET, run).filters), content_type=kind)
    name = re.sub(r"[^\w.-]+", "-", run.name).strip("-.") or str(run.pk)
    ending = "results.jsonl" if form == "results" else form
    response["Content-Disposition"] = content_disposition_header(True, f"{name}.{ending}") or ""
    return response


@login_required
def judgement(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """One judgement with all that led to it."""
    return _page(request, get_judgement(request, slug, pk, judgement_pk))


@login_required
@require_POST
def override(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """A reviewer's value in place of the attempts' own."""
    found = get_judgement(request, slug, pk, judgement_pk, May.REVIEW)
    done = _("Score overridden. The first value is kept.")
    return _change(request, found, _override_form(found, request.POST), override_add, done)


@login_required
@require_POST
def withdraw(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """The attempts' own values count again."""
    found = get_judgement(request, slug, pk, judgement_pk, May.REVIEW)
    done = _("Override withdrawn. The judge's own value counts again.")
    return _change(request, found, _withdraw_form(request.POST), override_withdraw, done)


def _change(
    request: HttpRequest,
    found: Judgement,
    form: OverrideForm | WithdrawForm,
    service: Callable[..., Override],
    done: str,
) -> HttpResponse:
    """What a form asks for is done, or the form comes back with what is wrong; in the panel beside the grid too."""
    in_panel = bool(request.htmx)  # type: ignore[attr-defined]
    show = _panel if in_panel else _page
    if not form.is_valid():
        return show(request, found, form, status=422)
    try:
        service(judgement=found, by=signed_in(request), **form.cleaned_data)
    except OverrideConflict:
        _add_conflict(found, form)
        return show(request, found, form, status=422 if in_panel else 409)
    if in_panel:
        found.refresh_from_db()
        return trigger_client_event(_panel(request, found), "judgement-changed", {"pk": found.pk})
    messages.success(request, done)
    return _back_to(request, found)


def _add_conflict(found: Judgement, form: OverrideForm | WithdrawForm) -> None:
    """Keep what was typed; when it is sent again, the reviewer has seen the newest entry."""
    form.add_error(
        None,
        _(
            "Someone else changed this override in the meantime. Check its history above, then send this again."
        ),
    )
    form.data = dict(form.data.items()) | {"seen": _newest(selectors.overrides_of(found))}


def _back_to(request: HttpRequest, found: Judgement) -> HttpResponse:
    address = reverse("runs:judgement", args=(found.run.project.slug, found.run_id, found.pk))
    return redirect(
        address + FilterForm(request.GET, found.run).filters.query(tab=request.GET.get("tab", ""))
    )


def _newest(history: list[Override]) -> int:
    return history[0].pk if history else 0


def _override_form(found: Judgement, data: Any = None, *, seen: int = 0) -> OverrideForm:
    metric = MetricDefinition.from_json(found.definition)
    choices = _choices(found, metric)
    return OverrideForm(
        data,
        least=metric.min_score if metric.scale_declared else -LARGEST,
        most=metric.max_score if metric.scale_declared else LARGEST,
        values=() if choices else selectors.values_like(found),
        choices=choices,
        initial={"seen": seen},
    )


def _choices(found: Judgement, metric: MetricDefinition) -> Sequence[Value]:
    """The only values that it may have; none where it may have any of a kind."""
    if found.run.by_people:
        return Criterion.from_json(found.definition).choices
    return COMPARISONS if metric.values == "comparison" else ()


def _withdraw_form(data: Any = None, *, seen: int = 0) -> WithdrawForm:
    return WithdrawForm(data, initial={"seen": seen}, auto_id="withdraw_%s")


def _page(
    request: HttpRequest,
    found: Judgement,
    form: OverrideForm | WithdrawForm | None = None,
    status: int = 200,
) -> HttpResponse:
    run = found.run
    filters = FilterForm(request.GET, run).filters
    tab = request.GET.get("tab", "")
    tab = tab if tab in TABS else TABS[0]
    context = _judgement_context(found, form)
    before, after = selectors.neighbours(found, filters)
    context |= {
        "tab": tab,
        "tabs": _tabs(filters, tab),
        "query": filters.query(),
        "here": filters.query(tab=tab if tab != TABS[0] else ""),
        "previous_url": _address(run, before, filters, tab),
        "next_url": _address(run, after, filters, tab),
        "attempts": [(one, stored_value_text(one.value)) for one in selectors.attempts(found)],
    }
    if tab == "rendered":
        context |= _rendered(context["story"])
        context |= {"seen": seen_by_people(found)} if run.kind == PEOPLE else _other_answer(found)
    return render(request, "review/judgement.html", context, status=status)


def _panel(
    request: HttpRequest,
    found: Judgement,
    form: OverrideForm | WithdrawForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context = _judgement_context(found, form)
    budget = Budget()
    replies = [(one, html_of(one.reply.content or "", budget)) for one in context["story"].asked]
    return render(request, "review/_panel.html", context | {"replies": replies, "here": ""}, status=status)


def _judgement_context(found: Judgement, form: OverrideForm | WithdrawForm | None) -> dict[str, Any]:
    """What the page and the panel say of a judgement."""
    run, metric = found.run, MetricDefinition.from_json(found.definition)
    replies = list(selectors.replies_of(found))
    asked = Generation.objects.filter(response=found.response_id).order_by("-attempt")
    tries = list(asked) if run.kind == INFER else []
    overrides = selectors.overrides_of(found)
    newest = _newest(overrides)
    return {
        "run": run,
        "judgement": found,
        "metric": metric,
        "story": story_of(found, replies, metric, run.version.format, tries),
        "value": stored_value_text(found.value),
        "overrides": [(one, stored_value_text(one.value)) for one in overrides],
        "in_force": stored_value_text(overrides[0].value) if overrides else "",
        "others": [(one, stored_value_text(one.value_in_force)) for one in selectors.other_runs(found)],
        "flags": [(flag, FLAGS.get(flag, flag)) for flag in found.flags.split(",") if flag],
        "override_form": form if isinstance(form, OverrideForm) else _override_form(found, seen=newest),
        "withdraw_form": form if isinstance(form, WithdrawForm) else _withdraw_form(seen=newest),
        "sent": type(form).__name__,
        "people": said_of(found.response_id),
    }


def _other_answer(found: Judgement) -> dict[str, Any]:
    """The second answer of an imported comparison."""
    other = found.other_response
    return {"other": other, "other_html": html_of(selectors.answer_text(other.raw))} if other else {}


def _rendered(story: Any) -> dict[str, Any]:
    budget = (
        Budget()
    )  # what is judged comes first: it is formatted before the conversation uses the budget up
    answer, reference = html_of(story.answer, budget), html_of(story.reference, budget)
    return {
        "turns": [(message["role"], html_of(message["content"], budget)) for message in story.messages],
        "reference_html": reference,
        "answer_html": answer,
        "words": [(one, html_of(one.reply.content or "", budget)) for one in story.asked],
    }


def _tabs(filters: Filters, tab: str) -> list[dict[str, Any]]:
    names = (_("Rendered"), _("Raw"), _("Request"), _("Reply"), _("Script"))
    return [
        {
            "name": name,
            "query": filters.query(tab=code if code != TABS[0] else "") or "?",
            "on": code == tab,
            "key": key,
        }
        for key, (code, name) in enumerate(zip(TABS, names, strict=True), 1)
    ]


def _address(run: Run, pk: int | None, filters: Filters, tab: str) -> str:
    if pk is None:
        return ""
    address = reverse("runs:judgement", args=(run.project.slug, run.pk, pk))
    return address + filters.query(tab=tab if tab != TABS[0] else "")
