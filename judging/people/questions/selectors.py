"""Questions and comments for organisers, and the answers that a rater sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, F, Q, QuerySet
from django.utils.safestring import SafeString

from evalsite.accounts.models import User
from judging.markdown import html_of
from judging.people.models import Evaluation, Rating, RatingKind
from judging.people.questions.models import Question
from judging.records.seal import sealed_items


def questions_of(evaluation: Evaluation) -> QuerySet[Question]:
    """All questions, unanswered ones first, then the newest."""
    questions = Question.objects.filter(rater__evaluation=evaluation)
    parts = ("rater__user", "item", "answered_by")
    return questions.select_related(*parts).order_by(F("answered_at").desc(nulls_first=True), "-pk")


def open_questions(evaluations: Collection[int]) -> Counter[int]:
    """{evaluation: questions that wait for an answer}."""
    waiting = Question.objects.filter(rater__evaluation__in=evaluations, answered_at=None).order_by()
    return Counter(dict(waiting.values_list("rater__evaluation").annotate(count=Count("pk"))))


def answers_for(evaluation: Evaluation, user: User) -> QuerySet[Question]:
    """The answered questions that a rater reads in the guideline: their own, and those answered to all."""
    answered = Question.objects.filter(rater__evaluation=evaluation, answered_at__isnull=False)
    return answered.filter(Q(to_all=True) | Q(rater__user=user)).order_by("answered_at")


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with its answer as sanitized Markdown; `own`: the rater's own."""

    text: str
    html: SafeString
    own: bool


def answered_for(evaluation: Evaluation, user: User) -> list[Answered]:
    """The answers that the rater's guideline lists."""
    return [
        Answered(question.text, html_of(question.answer), question.rater.user_id == user.pk)
        for question in answers_for(evaluation, user).select_related("rater")
    ]


def comments_of(evaluation: Evaluation) -> QuerySet[Rating]:
    """Ratings and skips with a comment that are in force, without those of a sealed test."""
    commented = Rating.objects.filter(rater__evaluation=evaluation).exclude(comment="")
    in_force = Q(assignment__rating=F("pk")) | Q(kind=RatingKind.SKIP, assignment__state="skipped")
    seen = commented.filter(in_force).exclude(assignment__item__row__in=sealed_items(evaluation.run))
    return seen.select_related("rater__user", "assignment__item")
