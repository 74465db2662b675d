"""The components page shows all UI components in both themes to site administrators."""

from __future__ import annotations

import pytest

from evalsite.accounts.models import User
from tests.conftest import ClientOf

pytestmark = pytest.mark.django_db


def test_every_component_is_shown_in_both_themes(olga: User, client_of: ClientOf) -> None:
    page = client_of(olga).get("/status/components/").text
    for part in (
        'class="segmented"',
        'class="pick"',
        'data-state="unparsed"',
        'class="empty"',
        'class="steps"',
    ):
        assert page.count(part) >= 2, part
    assert 'data-theme="light"' in page
    assert 'data-theme="dark"' in page


def test_others_do_not_see_it(alice: User, client_of: ClientOf) -> None:
    assert client_of(alice).get("/status/components/").status_code == 403
