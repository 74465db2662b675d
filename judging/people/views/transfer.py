"""Ratings out and in."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite import access
from evalsite.access import May
from judging.people.access import get_evaluation
from judging.people.exporting import csv_lines, jsonl_lines
from judging.people.importing import MOST_BYTES, Imported, ratings_import
from judging.people.messages import bad_line_sentence

_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


@login_required
def export(request: HttpRequest, slug: str, pk: int, form: str) -> HttpResponseBase:
    """All verdicts as JSON Lines or CSV; ?names=1 with user names (for organisers), ?history=1 with earlier ones."""
    evaluation = get_evaluation(request, slug, pk, May.READ_JUDGEMENTS)
    if form not in _TYPES:
        raise Http404
    names, history = "names" in request.GET, "history" in request.GET
    if names and May.RUN not in access.permissions(request, evaluation.run.project):
        raise PermissionDenied
    lines = (jsonl_lines if form == "jsonl" else csv_lines)(evaluation, names=names, history=history)
    response = StreamingHttpResponse(lines, content_type=_TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="ratings-{evaluation.run_id}.{form}"'
    return response


@login_required
def take_in(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Ratings from a file."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    context: dict[str, Any] = {"evaluation": evaluation}
    if request.method == "POST":
        sent = request.FILES.get("file")
        if sent is None or sent.size is None or sent.size > MOST_BYTES:
            context["refused"] = _("Choose a file of at most 50 MB.")
            return render(request, "people/import.html", context, status=422)
        text = sent.read().decode("utf-8-sig", "replace")
        told = ratings_import(evaluation=evaluation, text=text, by=access.signed_in(request))
        _tell(request, told)
        if not told.wrong:
            return redirect("people:detail", slug, pk)
        context |= {"told": told, "wrong": [(one.line, bad_line_sentence(one)) for one in told.wrong]}
    return render(request, "people/import.html", context)


def _tell(request: HttpRequest, told: Imported) -> None:
    new = ngettext("%(n)s rating was taken in.", "%(n)s ratings were taken in.", told.new) % {"n": told.new}
    there = ngettext("%(n)s was there already.", "%(n)s were there already.", told.there) % {"n": told.there}
    earlier = ngettext(
        "%(n)s had been changed or taken back and was left out.",
        "%(n)s had been changed or taken back and were left out.",
        told.not_current,
    ) % {"n": told.not_current}
    parts = [new, *([there] if told.there else []), *([earlier] if told.not_current else [])]
    messages.success(request, " ".join(parts))
