"""People were wrong: an answer whose label is in doubt goes to those who adjudicate, with a random one that agrees."""

from __future__ import annotations

import random
from collections.abc import Mapping

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from evalsite.accounts.models import User
from judging.core.licensing import DEV, TRAIN
from judging.core.values import Value
from judging.people.models import Evaluation, Item
from judging.people.sent_items import SentBefore, decided_items, items_send, sent_items
from judging.records.models import RunMetric
from judging.trust.answers import Answer, Label, ids_by_answer, says_the_same
from judging.trust.dev import keys_in, labels_in, values_in
from judging.trust.models import Split

WAITING, DECIDED = "waiting", "decided"


def label_doubt(*, split: Split, run_metric: RunMetric, answer: Answer, user: User) -> None:
    """Send the item of an answer to those who adjudicate, with one drawn at random from those on which the judge and
    people agree.

    Raises ValidationError if they agree on it, if it was sent or decided before, or if none is left to go with it.
    """
    values, labels = values_in(split, run_metric), labels_in(split, DEV, TRAIN)
    evaluations = split.test.evaluations
    if not evaluations or answer not in labels or _agree(values.get(answer), labels[answer]):
        raise ValidationError(_("Judge and people no longer disagree on this answer."))
    by_evaluation = [(each, _items_in(split, each)) for each in evaluations]
    evaluation, items = next((each for each in by_evaluation if answer in each[1]), (None, {}))
    if evaluation is None:
        raise ValidationError(_("This answer was only looked at. Change its note, and its group, instead."))
    item, taken = items[answer], sent_items(evaluation) | decided_items(evaluation)
    if item in taken:
        raise ValidationError(_("This answer was already sent to adjudicators."))
    agreeing = [
        items[other]
        for other, label in labels.items()
        if other in items and items[other] not in taken and _agree(values.get(other), label)
    ]
    if not agreeing:
        raise ValidationError(
            _("No answer on which judge and people agree is left to send with it, so it would be recognized.")
        )
    drawn = random.Random(f"agreeing:{split.seed}:{item}").choice(sorted(agreeing))
    try:
        items_send(evaluation=evaluation, items=[item, drawn], by=user)
    except SentBefore:
        raise ValidationError(_("This answer was already sent to adjudicators.")) from None


def _agree(value: Value | None, label: Label) -> bool:
    return value is not None and says_the_same(value, label.value)


def items_of_answers(split: Split) -> dict[Answer, int]:
    """{answer: id of the item in which people rate it}."""
    return {
        answer: item
        for evaluation in split.test.evaluations
        for answer, item in _items_in(split, evaluation).items()
    }


def _items_in(split: Split, evaluation: Evaluation) -> dict[Answer, int]:
    keys = keys_in(split, evaluation.run)
    items = Item.objects.filter(evaluation=evaluation, gold="", repeat_of=None)
    return ids_by_answer(items, keys)


def doubts_of(split: Split, items: Mapping[Answer, int]) -> dict[Answer, str]:
    """The answers that were sent to those who adjudicate, or decided by them: `waiting` or `decided`."""
    states: dict[int, str] = {}
    for evaluation in split.test.evaluations:
        decided, sent = decided_items(evaluation), sent_items(evaluation)
        states |= {item: DECIDED if item in decided else WAITING for item in decided | sent}
    return {answer: states[item] for answer, item in items.items() if item in states}
