"""Judgements of a run, as the API shows them."""

from __future__ import annotations

from collections.abc import Set
from typing import Annotated, Any, Literal

import msgspec
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from ninja import Query, Router

from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, text_at
from evalsite.web.headers import download_headers, file_stem
from judging.filters.filter_form import form_in
from judging.filters.judgement_filter import Filters
from judging.filters.orders import place_from
from judging.filters.search import nearest
from judging.people.access import rates_here, ratings_hidden
from judging.people.disagreement import DISAGREEMENT, differences
from judging.records.access import get_judgement, get_run
from judging.records.models import Judgement, Run
from judging.records.seal import sealed_count, sealed_header
from judging.transfer.export.files import ENDINGS, FORMS
from judging.transfer.export.records import load_some, record
from judging.trust.selectors import sealed_lines

router = Router()


class JudgementPage(Page[dict[str, Any]]):
    """`sealed`: how many ratings of the run are in a judge's test that is sealed, and so in no list."""

    sealed: int


CORE = {
    "id": "pk",
    "line": "row__line",
    "model": "candidate__name",
    "response": "response__number",
    "metric": "run_metric__name",
    "attempt": "attempt",
    "state": "state_in_force",
    "reason": "reason",
}
WHOLE = {
    "prompt": ("row", "question", "answer", "reference"),
    "reasoning": ("judges", "rules"),
    "io": ("preprocess", "postprocess", "steps", "flags"),
    "ratings": ("override", "excluded", "rater"),
}
"""Groups of `fields` beside `core` and `value` → the parts of an export's record that they add."""
USUAL = frozenset({"core", "value"})
Incomplete = Literal["error", "unparsed", "unsettled", "no_score", "not_run"]
INCOMPLETE: tuple[Incomplete, ...] = ("error", "unparsed")
FIELDS = "Groups separated by commas: core, value, prompt, reasoning, io, ratings."


@router.get("projects/{slug}/runs/{run}/judgements", response=JudgementPage, summary="Judgements of a run")
def judgements(
    request: HttpRequest,
    slug: str,
    run: Id,
    limit: Limit = 100,
    cursor: Cursor = "",
    fields: Annotated[str, Query(max_length=100, description=FIELDS)] = "core,value",
) -> HttpResponse:
    """Takes the filters of the page's list, such as `candidate`, `metric`, `state`, `least` and `sort`. A page may hold
    fewer items than `limit` while `next` is set: the search went on for long enough."""
    row = readable_run(request, slug, run)
    filters = _filters(request, row, "limit", "cursor", "fields")
    page = page_of(row, filters, limit, text_at(cursor), _groups(fields))
    return _json(page | {"next": cursor_of(page["next"])})


@router.get(
    "projects/{slug}/runs/{run}/incomplete",
    response=JudgementPage,
    summary="Judgements without a verdict",
)
def incomplete(
    request: HttpRequest,
    slug: str,
    run: Id,
    state: Incomplete | None = None,
    limit: Limit = 100,
    cursor: Cursor = "",
) -> HttpResponse:
    """Errors, then unparsed replies; or those in one `state`."""
    row = readable_run(request, slug, run)
    states = (state,) if state else INCOMPLETE
    now, _space, place = text_at(cursor).partition(" ")
    now = now if now in states else states[0]
    page = page_of(row, Filters(state=now), limit, place)
    if page["next"] is None and now != states[-1]:
        page["next"] = f"{states[states.index(now) + 1]} "
    elif page["next"] is not None:
        page["next"] = f"{now} {page['next']}"
    return _json(page | {"next": cursor_of(page["next"])})


@router.get(
    "projects/{slug}/runs/{run}/disagreements",
    response=JudgementPage,
    summary="Answers that people score differently",
)
def disagreements(
    request: HttpRequest,
    slug: str,
    run: Id,
    metric: Annotated[str, Query(max_length=200)] = "",
    least: Annotated[float, Query(gt=0, le=1e9)] = 1e-9,
    limit: Limit = 100,
    cursor: Cursor = "",
    fields: Annotated[str, Query(max_length=100, description=FIELDS)] = "core,value",
) -> HttpResponse:
    """Judgements whose score is at least `least` away from people's mean, with that `difference`. Without the rows of
    sealed tests, so a page may hold fewer items than `limit` while `next` is set."""
    row = readable_run(request, slug, run)
    if rates_here(request, row):
        raise PermissionDenied
    if metric and not row.metrics.filter(name=metric).exists():
        text = _("The run has no metric called “%(name)s”.") % {"name": metric}
        raise ApiError(422, message=text, fields={"metric": text})
    filters = Filters(metric=metric, further={DISAGREEMENT.name: repr(least)})
    page = page_of(row, filters, limit, text_at(cursor), _groups(fields) | {"core"})
    apart, sealed = differences(row, least), sealed_lines(row.version)
    items = [item for item in page["items"] if item["line"] not in sealed]
    for item in items:
        item["difference"] = apart.get(item["id"])
    return _json(page | {"items": items, "next": cursor_of(page["next"])})


@router.get(
    "projects/{slug}/runs/{run}/judgements/{judgement}", response=dict[str, Any], summary="A judgement, whole"
)
def judgement(request: HttpRequest, slug: str, run: Id, judgement: Id) -> HttpResponse:
    """With its prompt, replies and everything that led to it, as in the export."""
    row = readable_run(request, slug, run)
    pk = get_judgement(request, slug, run, judgement).pk
    return _json({"id": pk} | whole(row, [pk])[pk])


@router.get("projects/{slug}/runs/{run}/export", summary="All judgements as a file")
def export(request: HttpRequest, slug: str, run: Id, form: str = "jsonl") -> HttpResponseBase:
    """`form`: jsonl, csv, xlsx, parquet, results, every_eval_ever or inspect. Takes the filters of the list."""
    row = readable_run(request, slug, run)
    if form not in FORMS:
        raise Http404
    make, kind = FORMS[form]
    headers = download_headers(f"{file_stem(row.name) or row.pk}.{ENDINGS.get(form, form)}") | sealed_header(
        row
    )
    return StreamingHttpResponse(
        make(row, _filters(request, row, "form")), content_type=kind, headers=headers
    )


def readable_run(request: HttpRequest, slug: str, run: int) -> Run:
    """The run, if its judgements are not hidden from the user, who rates in it. Raises Http404 or PermissionDenied."""
    row = get_run(request, slug, run)
    if ratings_hidden(request, row):
        raise PermissionDenied
    return row


def page_of(run: Run, filters: Filters, limit: int, place: str, groups: Set[str] = USUAL) -> dict[str, Any]:
    """A page of the list, from a place in it; `next`: the place of the next page."""
    look = nearest(run, filters, place_from(place), limit + 1)
    matches = look.matches[:limit]
    following = look.stopped or (matches[-1].place if len(look.matches) > limit else None)
    ids = [match.pk for match in matches]
    rows = _with_groups(run, ids, groups)
    return {
        "items": [rows[pk] for pk in ids if pk in rows],
        "next": str(following) if following else None,
        "sealed": sealed_count([run]),
    }


def _groups(fields: str) -> set[str]:
    return {name.strip() for name in fields.split(",")}


def _with_groups(run: Run, ids: list[int], groups: Set[str]) -> dict[int, dict[str, Any]]:
    stored = Judgement.objects.filter(pk__in=ids).values_list(*CORE.values(), "value_in_force")
    has_value = "value" in groups
    rows: dict[int, dict[str, Any]] = {}
    for *core, value in stored:
        rows[core[0]] = dict(zip(CORE, core, strict=True))
        rows[core[0]]["reason"] = rows[core[0]]["reason"] or None
        if has_value:
            rows[core[0]]["value"] = msgspec.Raw(value.encode()) if value else None
    keys = [key for group, keys in WHOLE.items() if group in groups for key in keys]
    if keys:
        for pk, document in whole(run, ids).items():
            rows[pk] |= {key: document[key] for key in keys if key in document}
    return rows


def whole(run: Run, ids: list[int]) -> dict[int, dict[str, Any]]:
    """The export's records of these judgements."""
    return {loaded.judgement.pk: record(loaded) for loaded in load_some(run, ids, texts=True)}


def _filters(request: HttpRequest, run: Run, *own: str) -> Filters:
    """The filter in the query, which the address's own parameters do not belong to."""
    query = request.GET.copy()
    for name in own:
        query.pop(name, None)
    request.GET = query  # type: ignore[assignment]
    return form_in(request, run).filters


def _json(document: Any) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(document), content_type="application/json")
