"""Template tags for tests of judges."""

from __future__ import annotations

from django import template
from django.db.models import Q

from judging.people.models import Evaluation
from judging.records.models import Run
from judging.trust.models import SealedTest

register = template.Library()


@register.simple_tag
def sealed_test_of(evaluation: Evaluation) -> SealedTest | None:
    """The test that people rate in an evaluation, if it is for one."""
    of_evaluation = Q(evaluation=evaluation) | Q(further_draws__evaluation=evaluation)
    return SealedTest.objects.filter(of_evaluation).select_related("split__metric").first()


@register.simple_tag
def tests_waiting(run: Run) -> list[SealedTest]:
    """The tests on a run's data set that were not opened yet for the versions in it."""
    versions = [each.metric_version_id for each in run.metrics.all() if each.metric_version_id]
    tests = SealedTest.objects.filter(
        split__dataset=run.version.dataset_id, split__metric__versions__in=versions
    )
    waiting = tests.exclude(openings__metric_version__in=versions).distinct()
    return list(waiting.select_related("split__metric").order_by("pk"))
