"""The guideline on the desk: the current text, and when a rater has understood it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import May, signed_in
from evalsite.web.numbers import whole
from judging.people.access import get_evaluation
from judging.people.guidelines.reading import guideline_texts, guideline_understood, reading_due
from judging.people.questions.selectors import answered_for


@login_required
@require_GET
def guideline(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The guideline as JSON for the desk's script: its version, its HTML, and whether it is to be read first."""
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    answers = answered_for(evaluation, signed_in(request))
    context = {"texts": guideline_texts(evaluation), "answers": answers}
    return JsonResponse(
        {
            "version": evaluation.guideline_version,
            "html": render_to_string("people/_guideline.html", context, request),
            "due": reading_due(evaluation, signed_in(request)),
            "answers": len(answers),
        }
    )


@login_required
@require_POST
def understood(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Note that the rater has understood the version that the page showed."""
    evaluation = get_evaluation(request, slug, pk, May.RATE)
    version = whole(request.POST.get("version", "")) or 0
    guideline_understood(evaluation=evaluation, user=signed_in(request), version=version)
    if request.headers.get("Accept", "").startswith("application/json"):
        return HttpResponse(status=204)
    return redirect("desk:page", slug, pk)
