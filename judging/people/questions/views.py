"""Questions: asked at the desk, answered on a page of the organisers, which lists all comments too."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalsite.access import May, signed_in
from evalsite.names import join_sentences
from evalsite.web.numbers import whole
from evalsite.web.paging import newest_first
from judging.markdown import html_of
from judging.people.access import get_evaluation, get_own_assignment
from judging.people.models import SkipReason
from judging.people.questions.models import Question
from judging.people.questions.selectors import comments_of, questions_of
from judging.people.questions.services import question_answer, question_ask

MOST_QUESTIONS = 200
COMMENTS_PER_PAGE = 50


@login_required
@require_POST
def ask(request: HttpRequest, slug: str, pk: int, token: UUID) -> HttpResponse:
    """Ask about one's own item."""
    assignment = get_own_assignment(request, slug, pk, token)
    try:
        question_ask(assignment=assignment, text=request.POST.get("text", ""), key=_key(request))
    except ValidationError as error:
        sentence = join_sentences(error.messages)
        return JsonResponse({"code": "question", "sentence": sentence}, status=422)
    return JsonResponse({"sentence": _("Sent. The answer appears in the guideline.")})


def _key(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("key", ""))
    except ValueError:
        return uuid4()


@login_required
def questions(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The questions with their answers, and the comments of all raters with their items."""
    return _page(request, slug, pk)


def _page(
    request: HttpRequest, slug: str, pk: int, failed: Question | None = None, problem: str = ""
) -> HttpResponse:
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    before = whole(request.GET.get("before", ""))
    comments, further = newest_first(comments_of(evaluation), COMMENTS_PER_PAGE, before)
    listed = []
    for question in questions_of(evaluation)[:MOST_QUESTIONS]:
        sent = request.POST if failed is not None and question.pk == failed.pk else None
        listed.append(
            {
                "question": question,
                "html": html_of(question.answer),
                "text": sent.get("answer", "") if sent else question.answer,
                "to_all": "to_all" in sent if sent else question.to_all,
                "problem": problem if sent else "",
            }
        )
    reasons = dict(SkipReason.choices)
    context: dict[str, Any] = {
        "evaluation": evaluation,
        "questions": listed,
        "comments": [(comment, reasons.get(comment.reason, "")) for comment in comments],
        "further": further,
        "before": before,
    }
    return render(request, "people/questions.html", context, status=422 if problem else 200)


@login_required
@require_POST
def answer(request: HttpRequest, slug: str, pk: int, question: int) -> HttpResponse:
    """Answer a question to its rater, or to all."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    parts = ("rater__user", "rater__evaluation")
    asked = get_object_or_404(
        Question.objects.select_related(*parts), rater__evaluation=evaluation, pk=question
    )
    try:
        question_answer(
            question=asked,
            answer=request.POST.get("answer", ""),
            to_all="to_all" in request.POST,
            by=signed_in(request),
        )
    except ValidationError as error:
        return _page(request, slug, pk, asked, join_sentences(error.messages))
    messages.success(request, _("Answered."))
    return redirect("people:questions", slug, pk)
