"""Items behind comparisons: each count in the win matrix links to as many items."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from evalsite.accounts.models import Project, User
from judging.records.models import Run
from tests.conftest import ClientOf
from tests.judging.importing import imported, verdict
from tests.make import a_version

pytestmark = pytest.mark.django_db


def comparison(
    line: int, value: str, model: str = "alpha", other: str = "beta", **more: object
) -> dict[str, object]:
    return verdict(line, model, value, other_model=other, metric="better", **more)


@pytest.fixture
def run(project: Project, tmp_path: Path) -> Run:
    """Comparisons of five rows by a judge, one with the candidates swapped, and of two rows by a person."""
    said = ["A>B", "A>>B", "A=B", "B>A", "A>B"]
    lines = [comparison(line, value) for line, value in enumerate(said[:4], 1)]
    lines.append(comparison(5, "B>A", "beta", "alpha"))
    lines += [comparison(line, "B>A", rater="Ann") for line in (1, 2)]
    return imported(a_version(project, rows=5), tmp_path, *lines)


def get(client_of: ClientOf, user: User, address: str, status: int = 200) -> str:
    answer = client_of(user).get(address)
    assert answer.status_code == status
    return str(answer.content.decode())


def test_wins_ties_and_losses_lead_to_as_many_items(client_of: ClientOf, alice: User, run: Run) -> None:
    html = get(client_of, alice, f"/p/{run.project.slug}/runs/{run.pk}/report/")
    links = re.findall(r'<a href="([^"]*/report/pair/[^"]*by=gpt[^"]*outcome=[wtl][^"]*)">(\d+)</a>', html)
    assert sorted(count for _, count in links) == ["1", "1", "1", "1", "3", "3"]
    for address, count in links:
        assert get(client_of, alice, unescape(address)).count('<th scope="row"') == int(count)


def test_what_people_said_is_a_list_of_its_own(client_of: ClientOf, alice: User, run: Run) -> None:
    address = f"/p/{run.project.slug}/runs/{run.pk}/report/pair/?metric=better&a=beta&b=alpha&by=people"
    html = get(client_of, alice, address + "&outcome=wins")
    assert "comparisons by people" in html
    assert html.count('<th scope="row"') == 2


@pytest.mark.parametrize("asked", ["a=alpha&b=beta&by=nobody", "a=alpha&b=gamma&by=gpt"])
def test_who_compared_nothing_has_no_list(client_of: ClientOf, alice: User, run: Run, asked: str) -> None:
    address = f"/p/{run.project.slug}/runs/{run.pk}/report/pair/?metric=better&{asked}"
    assert client_of(alice).get(address).status_code == 404
