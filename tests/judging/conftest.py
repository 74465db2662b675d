"""Ravi, a second rater."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import Project, Role, User
from tests.conftest import member


@pytest.fixture
def ravi(project: Project) -> User:
    return member("ravi", project, Role.RATER)
