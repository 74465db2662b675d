"""The payment sheet, as a page and as files."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from evalsite.access import May
from evalsite.web.headers import download_headers
from judging.core.people.work import together
from judging.people.access import get_evaluation
from judging.people.models import EvaluationRater
from judging.people.payment import FORMS, payment_file
from judging.people.work import work_of


@login_required
def payment(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What each rater worked, all days together, and the files by day."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    work = work_of(evaluation)
    raters = EvaluationRater.objects.filter(evaluation=evaluation).select_related("user").order_by("pk")
    lines = [(rater, len(work[rater.pk]), together([work[rater.pk]])) for rater in raters if rater.pk in work]
    context: dict[str, Any] = {"evaluation": evaluation, "lines": lines}
    context["imported"] = any(total and total.counts["imported"] for _rater, _days, total in lines)
    return render(request, "people/payment.html", context)


@login_required
def payment_sheet(request: HttpRequest, slug: str, pk: int, form: str) -> StreamingHttpResponse:
    """A row for each rater and day; with ?names=1 with user names."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    if form not in FORMS:
        raise Http404
    names = "names" in request.GET
    content = payment_file(evaluation, form, names=names)
    headers = download_headers(f"payment-{evaluation.run_id}{'-names' if names else ''}.{form}")
    return StreamingHttpResponse(content, content_type=FORMS[form], headers=headers)
