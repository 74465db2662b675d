"""The row browser, and one row's page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from datasets import selectors
from datasets.access import get_ready_version
from datasets.core.formats import COMPUTED
from datasets.core.lines import lines_at
from datasets.core.variables import EARLIER, earlier_of, response_data
from datasets.forms import RowFilterForm
from datasets.models import Response, Row, Version
from datasets.uploads import limits_of_kept
from datasets.versions import invalid_rows, row_edits, row_findings, search
from datasets.views import number_asked, row_browser
from datasets.views.findings_view import finding_views
from datasets.views.row_browser import BrowserFilter
from evalsite.truncation import truncate
from evalsite.web.headers import download_headers, part_wanted

LONGEST_TEXT = 100_000  # characters of a text shown on a page; the complete row can be downloaded
MOST_VALUES = 500
LONGEST_RECORD = 10_000  # lines of the last record of a CSV
_CONVERSATION = ("messages", "ref_answer")


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """One response, shown as a column."""

    model: str
    number: int
    content: str
    reasoning: str
    further: str
    earlier: list[dict[str, str]]


@login_required
def rows(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """A page of rows; filters and position are query parameters."""
    version = get_ready_version(request, slug, dataset, number)
    form = RowFilterForm(request.GET, version)
    if form.is_valid() and form.cleaned_data["line"]:
        return _to_line(version, slug, form.cleaned_data["line"])
    chosen = _chosen(form)
    page = row_browser.rows_page(
        version, chosen, after=number_asked(request, "after"), before=number_asked(request, "before")
    )
    context = {
        "version": version,
        "form": form,
        "page": page,
        "chosen": chosen,
        "query": _query(request),
        "search": search.state_of(version),
        "can_edit": row_edits.can_edit(version),
        "scanned": row_browser.MOST_ROWS,
        "values": [] if part_wanted(request) else _values(version),
    }
    return render(request, "datasets/_rows.html" if part_wanted(request) else "datasets/rows.html", context)


def _chosen(form: RowFilterForm) -> BrowserFilter:
    """The filter in the query string; empty if it is invalid."""
    if not form.is_valid():
        return BrowserFilter()
    chosen = form.cleaned_data
    return BrowserFilter(
        chosen["q"].strip(), chosen["model"], chosen["finding"], chosen["field"], chosen["value"]
    )


def _values(version: Version) -> list[tuple[str, str, int]]:
    """(field, value, rows) of fields with few values, offered as choices."""
    fields = search.facets(version).items()
    return [(name, value, rows) for name, values in fields for value, rows in values][:MOST_VALUES]


def _query(request: HttpRequest) -> str:
    """The filter as a query string, without the position."""
    params = request.GET.copy()
    for name in ("after", "before", "line"):
        params.pop(name, None)
    return params.urlencode()


def _to_line(version: Version, slug: str, line: int) -> HttpResponse:
    """Redirect to the row at a line, or else to the next one."""
    before = Row.objects.filter(version=version, line__lt=line).order_by("-line")
    nearest = selectors.line_after(version, line - 1) or before.values_list("line", flat=True).first()
    place = (slug, version.dataset_id, version.number)
    return redirect("datasets:rows", *place) if nearest is None else redirect("datasets:row", *place, nearest)


@login_required
def random(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Redirect to a random row within the filter."""
    version = get_ready_version(request, slug, dataset, number)
    chosen = _chosen(RowFilterForm(request.GET, version))
    if chosen:
        line = row_browser.random_line(version, chosen)
    else:
        row = selectors.random_row(version)
        line = row.line if row else None
    if line is None and chosen:
        messages.info(request, _("No matching row was found near the randomly chosen position."))
    place = [slug, dataset, number]
    address = reverse("datasets:row", args=[*place, line]) if line else reverse("datasets:rows", args=place)
    return redirect(f"{address}?{_query(request)}" if chosen else address)


@login_required
def row(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> HttpResponse:
    """One row: conversation, answers side by side, other fields; and its neighbours within the filter."""
    version = get_ready_version(request, slug, dataset, number)
    row = get_object_or_404(version.data_rows, line=line)
    table = None if row.valid else invalid_rows.csv_table(version)
    findings = row_findings.findings_on_row(version, row, table)
    chosen = _chosen(RowFilterForm(request.GET, version))
    previous, following = row_browser.neighbours(version, chosen, line)
    context = {
        "version": version,
        "row": row,
        "findings": finding_views(version, findings),
        "query": _query(request),
        "previous": previous.lines[0] if previous.lines else None,
        "following": following.lines[0] if following.lines else None,
        "on_from": following.stopped,
        "back_from": previous.stopped,
        "chosen": chosen,
        "raw": _cut(row.raw),
        "can_edit": row_edits.can_edit(version),
    }
    if row.valid:
        context |= _parts(row)
    return render(request, "datasets/row.html", context)


def _parts(row: Row) -> dict[str, Any]:
    data = selectors.row_values(row)
    fields = {name: value for name, value in data.items() if name not in (*_CONVERSATION, *COMPUTED)}
    return {
        "messages_shown": [
            {
                "role": message["role"],
                "content": _cut(message["content"]),
                "further": _further(message, "role", "content"),
            }
            for message in data["messages"]
        ],
        "reference": None if data["ref_answer"] is None else _text(data["ref_answer"]),
        "fields": [(name, _text(value), isinstance(value, str)) for name, value in fields.items()],
        "computed": [(name, None if data[name] is None else _cut(data[name])) for name in COMPUTED],
        "answers": [_answer(response) for response in selectors.responses_of(row)],
    }


def _answer(response: Response) -> RowAnswer:
    data = response_data(response.raw)
    earlier = earlier_of(data) or []
    return RowAnswer(
        model=response.candidate.name,
        number=response.number,
        content=_cut(data["content"]),
        reasoning=_cut(data["reasoning_content"] or ""),
        further=_further(data, "content", "reasoning_content", *([EARLIER] if earlier else [])),
        earlier=[{"role": message["role"], "content": _cut(message["content"])} for message in earlier],
    )


def _further(value: dict[str, Any], *shown_already: str) -> str:
    """The rest of an object as JSON; '' if there is none."""
    rest = {key: item for key, item in value.items() if key not in shown_already and item is not None}
    return _text(rest) if rest else ""


def _text(value: Any) -> str:
    """A string unchanged, anything else as JSON."""
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2))


def _cut(text: str) -> str:
    return truncate(text, LONGEST_TEXT)


@login_required
def raw(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> HttpResponse:
    """The complete stored text of a row, as a download."""
    version = get_ready_version(request, slug, dataset, number)
    row = get_object_or_404(version.data_rows, line=line)
    headers = download_headers(f"row-{row.line}.json")
    return HttpResponse(row.raw, content_type="application/octet-stream", headers=headers)


@login_required
def original(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> HttpResponse:
    """The row as it is in the uploaded file, as a separate page or as a part of the row's page."""
    version = get_ready_version(request, slug, dataset, number)
    row = get_object_or_404(version.data_rows, line=line)
    text, next_line = None, selectors.line_after(version, line)
    # A CSV record may span several lines.
    until = line + 1 if version.format != "legacy_csv" else next_line or line + LONGEST_RECORD
    if version.file_is_kept:
        text = _cut(lines_at(version.path, selectors.encoding_of(version), line, until, limits_of_kept()))
    context = {"version": version, "row": row, "text": text}
    template = "datasets/_row_original.html" if part_wanted(request) else "datasets/row_original.html"
    return render(request, template, context)
