"""A human evaluation has a report like every run."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from tests.conftest import ClientOf
from tests.judging.people.make import make_evaluation, rate_all

pytestmark = pytest.mark.django_db


def test_a_human_evaluation_has_a_report_page(
    project: Project, alice: User, rita: User, client_of: ClientOf
) -> None:
    evaluation = make_evaluation(project, [rita], side_by_side=False)
    rate_all(evaluation, rita, 4)
    page = client_of(alice).get(reverse("runs:report", args=("physics", evaluation.run_id)))
    assert page.status_code == 200
