"""Closing of tests of which every item has the ratings asked for."""

from __future__ import annotations

from contextlib import suppress

from django.core.exceptions import ValidationError
from django.db.models import F, Q, QuerySet

from judging.people.adjudication import differing
from judging.people.models import Evaluation, Item
from judging.records.seal import sealed_items
from judging.trust.models import SealedTest
from judging.trust.services import sealed_test_close


def complete_tests_close(evaluation: Evaluation) -> None:
    """Close the tests that people rate in this evaluation, if nothing is left to rate or to decide on in any of their
    evaluations. Call in the transaction that stores a rating or a decision."""
    draws = Q(evaluation=evaluation) | Q(further_draws__evaluation=evaluation)
    rated = SealedTest.objects.filter(draws, closed_at=None)
    for pk in rated.values_list("pk", flat=True).distinct():
        if _has_unrated(evaluation):
            return
        test = SealedTest.objects.select_for_update().get(pk=pk)  # the last ratings of two draws at once
        if test.open and not any(_has_unrated(each) or _has_undecided(each) for each in test.evaluations):
            # Refused where none of its rows is rated, as where its own evaluation was deleted.
            with suppress(ValidationError):
                sealed_test_close(test=test, run=test.labelled_runs[0])


def _has_unrated(evaluation: Evaluation) -> bool:
    return _tested(evaluation).filter(rated__lt=F("needed")).exists()


def _has_undecided(evaluation: Evaluation) -> bool:
    """Whether raters disagree on an item, or it was sent to those who adjudicate, and nobody has decided."""
    undecided = [entry.number for entry in differing(evaluation) if not entry.decided]
    return bool(undecided) and _tested(evaluation).filter(number__in=undecided).exists()


def _tested(evaluation: Evaluation) -> QuerySet[Item]:
    return Item.objects.filter(evaluation=evaluation, needed__gt=0, row__in=sealed_items(evaluation.run))
