"""Ask about an item, and answer."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from evalsite import clock
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.people.assignments import audit, locked
from judging.people.blindness import refuse_names
from judging.people.models import Assignment
from judging.people.questions.models import Question
from judging.records.json_text import storable

LONGEST_QUESTION = 5_000
LONGEST_ANSWER = 10_000


@transaction.atomic
def question_ask(*, assignment: Assignment, text: str, key: UUID) -> Question:
    """Ask about one's own item. The same key again returns the first question. Raises ValidationError for an empty or
    too long text, or a key that somebody else used."""
    text = (storable(text) or "").strip()
    if not text:
        raise ValidationError(_("Write your question first."))
    if len(text) > LONGEST_QUESTION:
        raise ValidationError(_("A question has at most %(n)s characters.") % {"n": LONGEST_QUESTION})
    locked(assignment.evaluation_id)
    question, _created = Question.objects.get_or_create(
        key=key, defaults={"rater": assignment.rater, "item": assignment.item, "text": text}
    )
    if question.rater_id != assignment.rater_id:
        raise ValidationError(_("This submission ID was already used. Reload the page and ask again."))
    return question


@transaction.atomic
def question_answer(*, question: Question, answer: str, to_all: bool, by: User) -> None:
    """Answer a question, or change the answer; `to_all`: every rater reads question and answer. Raises ValidationError
    for an empty or too long answer, or a text for raters that names a candidate."""
    evaluation = locked(question.rater.evaluation_id)
    answer = (storable(answer) or "").strip()
    if not answer:
        raise ValidationError(_("Write the answer first."))
    if len(answer) > LONGEST_ANSWER:
        raise ValidationError(_("An answer has at most %(n)s characters.") % {"n": LONGEST_ANSWER})
    refuse_names(evaluation, [answer, question.text] if to_all else [answer])
    Question.objects.filter(pk=question.pk).update(
        answer=answer, to_all=to_all, answered_at=clock.now(), answered_by=by
    )
    audit(Action.QUESTION_ANSWERED, evaluation, by, rater=question.rater.user.username, to_all=to_all)
