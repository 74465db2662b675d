"""Ratings out and in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from evalsite.tasks import workers
from evalsite.web.request_limits import allow, file_too_large, upload_page
from judging.core.people.rating_lines import BadLine
from judging.people.access import get_evaluation, rates_here
from judging.people.labels import bad_line_sentence, import_problem
from judging.people.models import Evaluation
from judging.people.rating_export import csv_lines, jsonl_lines
from judging.people.rating_import import MOST_BYTES, import_begin, import_stop

_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_SHOWN = 20


@login_required
def export(request: HttpRequest, slug: str, pk: int, form: str) -> HttpResponseBase:
    """All verdicts as JSON Lines or CSV; ?names=1 with user names (for organisers), ?history=1 with earlier ones."""
    evaluation = get_evaluation(request, slug, pk, May.READ_JUDGEMENTS)
    if form not in _TYPES:
        raise Http404
    names, history = "names" in request.GET, "history" in request.GET
    if rates_here(request, evaluation.run):
        raise PermissionDenied
    if names and May.RUN not in access.permissions(request, evaluation.run.project):
        raise PermissionDenied
    lines = (jsonl_lines if form == "jsonl" else csv_lines)(evaluation, names=names, history=history)
    response = StreamingHttpResponse(lines, content_type=_TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="ratings-{evaluation.run_id}.{form}"'
    return response


@upload_page
@login_required
def import_ratings(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Ratings from a file, and what came of earlier ones."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    allow(request, MOST_BYTES, file_too_large(MOST_BYTES))
    return _import(request, evaluation)


@csrf_protect
def _import(request: HttpRequest, evaluation: Evaluation) -> HttpResponse:
    context: dict[str, Any] = {"evaluation": evaluation, "most": MOST_BYTES}
    if request.method == "POST":
        sent = request.FILES.get("file")
        try:
            if sent is None or sent.size is None or sent.size > MOST_BYTES:
                raise ValidationError(_("Choose a file of at most 50 MB."))
            name = sent.name or ""
            made = import_begin(
                evaluation=evaluation, file=sent, file_name=name, by=access.signed_in(request)
            )
        except ValidationError as error:
            context["refused"] = " ".join(error.messages)
        else:
            return redirect("people:imported", evaluation.run.project.slug, evaluation.run_id, made.pk)
    context["earlier"] = evaluation.imports.select_related("created_by").order_by("-pk")[:_SHOWN]
    return render(request, "people/import.html", context, status=422 if "refused" in context else 200)


@login_required
def imported(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """How far a file has been taken in, and what came of it."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    taken = get_object_or_404(evaluation.imports.select_related("created_by"), pk=number)
    wrong = [(line, bad_line_sentence(BadLine(line, code, params))) for line, code, params in taken.told]
    context = {"evaluation": evaluation, "taken": taken, "wrong": wrong, "why": import_problem(taken.problem)}
    context["obstacle"] = "" if taken.owner or taken.ended_at else workers.obstacle(workers.DATA)
    if not request.htmx:  # type: ignore[attr-defined]
        return render(request, "people/imported.html", context)
    if taken.ended_at is None:
        return render(request, "people/_importing.html", context)
    answer = HttpResponse()
    answer["HX-Refresh"] = "true"
    return answer


@login_required
@require_POST
def stop(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Stop importing a file, and undo what was imported."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    import_stop(taken=get_object_or_404(evaluation.imports, pk=number))
    return redirect("people:imported", slug, pk, number)
