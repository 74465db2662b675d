"""Template tags for tests of judges."""

from __future__ import annotations

from django import template

from judging.people.models import Evaluation
from judging.trust.models import SealedTest

register = template.Library()


@register.simple_tag
def sealed_test_of(evaluation: Evaluation) -> SealedTest | None:
    """The test that people rate in an evaluation, if it is for one."""
    return SealedTest.objects.filter(evaluation=evaluation).select_related("split__metric").first()
