"""Export of ratings as a file."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse

from evalsite import access
from evalsite.access import May
from evalsite.web.headers import download_headers
from judging.people.access import get_evaluation, rates_here
from judging.people.rating_export import csv_lines, jsonl_lines
from judging.records.seal import sealed_header

_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


@login_required
def export(request: HttpRequest, slug: str, pk: int, form: str) -> HttpResponseBase:
    """All verdicts as JSON Lines or CSV; ?names=1 with user names (organisers only), ?history=1 with earlier
    verdicts and skips, ?texts=1 with questions and answers."""
    evaluation = get_evaluation(request, slug, pk, May.READ_JUDGEMENTS)
    if form not in _TYPES:
        raise Http404
    names, history, texts = (name in request.GET for name in ("names", "history", "texts"))
    if rates_here(request, evaluation.run):
        raise PermissionDenied
    if names and May.RUN not in access.permissions(request, evaluation.run.project):
        raise PermissionDenied
    lines = (jsonl_lines if form == "jsonl" else csv_lines)(
        evaluation, names=names, history=history, texts=texts
    )
    headers = download_headers(f"ratings-{evaluation.run_id}.{form}") | sealed_header(evaluation.run)
    return StreamingHttpResponse(lines, content_type=_TYPES[form], headers=headers)
