"""The items behind comparisons, raters, repeats and order flips: every count leads to as many, of large runs too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from evalsite.accounts.models import Project, User
from judging.reports import figures
from judging.runs.models import Run
from tests.conftest import ClientOf
from tests.judging.importing import imported, verdict
from tests.make import a_version

pytestmark = pytest.mark.django_db

LINK = re.compile(r'<a href="([^"]*/report/(?:pair|verdicts)/[^"]*)">([^<]+)</a>')


def lines() -> Iterator[dict[str, object]]:
    """Three candidates compared by a judge in both orders and by people; scores by people and, twice, by a judge, who
    also scored further answers of alpha."""
    pairs = (("alpha", "beta"), ("beta", "gamma"), ("alpha", "gamma"))
    for line in range(1, 7):
        for model, other in pairs:
            better = {"other_model": other, "metric": "better"}
            yield verdict(line, model, "A>B", shown_first=1, repeat=1, **better)
            yield verdict(line, model, "B>A" if line % 3 == 0 else "A>>B", shown_first=2, repeat=2, **better)
            for rater, value in (("Ann", "A>B"), ("Bob", ("A=B", "B>A", "both_bad")[line % 3])):
                yield verdict(line, model, value, rater=rater, **better)
        for model in ("alpha", "beta", "gamma"):
            yield from (verdict(line, model, line, repeat=again) for again in (1, 2))
            yield verdict(line, model, 5, rater="Ann")
            if line < 4:
                yield verdict(line, model, 4 + line % 2, rater="Bob")
        for number in range(2, 5 - line):
            yield verdict(line, "alpha", number, response=number)


@pytest.fixture
def run(project: Project, tmp_path: Path) -> Run:
    version = a_version(project, rows=6, models=("alpha", "beta", "gamma"), answers=3)
    run = imported(version, tmp_path, *lines())
    score = run.metrics.get(name="score")
    scale = {"scale_declared": True, "min_score": 1, "max_score": 6}
    score.definition = json.dumps(json.loads(score.definition) | scale)
    score.save()
    return run


def get(client_of: ClientOf, user: User, address: str, status: int = 200) -> str:
    answer = client_of(user).get(address)
    assert answer.status_code == status, address
    return str(answer.content.decode())


def report(client_of: ClientOf, user: User, run: Run) -> str:
    return get(client_of, user, f"/p/{run.project.slug}/runs/{run.pk}/report/?metric=each")


def counted(text: str) -> int | None:
    """The items that a link's text promises."""
    found = re.match(r"(\d+)(?:$|/| of | answer| comparison)", text)
    return int(found[1]) if found else None


def check_links(client_of: ClientOf, user: User, run: Run) -> None:
    links = {unescape(address): text for address, text in LINK.findall(report(client_of, user, run))}
    counts = {address: counted(text) for address, text in links.items()}
    kinds = {re.sub(r".*/report/(\w+)/\?(?:kind=(\w+))?.*", r"\1 \2", address) for address in links}
    of_verdicts = ("ratings", "repeats", "orders", "first", "lowest", "highest", "answers")
    assert kinds == {"pair ", *(f"verdicts {kind}" for kind in of_verdicts)}
    for address, count in counts.items():
        if count is not None:
            assert get(client_of, user, address).count('<th scope="row"') == count, address


def test_every_count_leads_to_as_many_items(client_of: ClientOf, alice: User, run: Run) -> None:
    check_links(client_of, alice, run)


def test_every_count_of_a_large_run_does_too(
    client_of: ClientOf, alice: User, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FEW", 0)
    figures.for_page(run)
    figures.keep_wanted()
    check_links(client_of, alice, run)


def test_items_of_a_large_run_that_are_not_known_yet_lead_to_the_report(
    client_of: ClientOf, alice: User, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FEW", 0)
    base = f"/p/{run.project.slug}/runs/{run.pk}/report/"
    get(client_of, alice, f"{base}pair/?metric=better&a=alpha&by=gpt", 302)
    get(client_of, alice, f"{base}verdicts/?kind=ratings&metric=score", 302)


def test_an_item_says_who_said_what(client_of: ClientOf, alice: User, run: Run) -> None:
    base = f"/p/{run.project.slug}/runs/{run.pk}/report/verdicts/?kind="
    ratings = get(client_of, alice, f"{base}ratings&metric=score&rater=Ann&other=Bob")
    assert re.search(r"Ann</small>\s*<span[^>]*><strong>5</strong>", ratings)
    orders = get(client_of, alice, f"{base}orders&metric=better&judge=gpt&apart=yes")
    assert re.search(r"beta first</small>\s*<span[^>]*><strong>beta better</strong>", orders)


def test_items_are_those_with_so_many_answers(client_of: ClientOf, alice: User, run: Run) -> None:
    base = f"/p/{run.project.slug}/runs/{run.pk}/report/verdicts/?kind=answers&metric=score&candidate=alpha"
    rows = [get(client_of, alice, f"{base}&least={k}").count('<th scope="row"') for k in (2, 3)]
    assert rows == [2, 1]


def test_comparisons_that_the_first_side_won_are_listed(client_of: ClientOf, alice: User, run: Run) -> None:
    base = f"/p/{run.project.slug}/runs/{run.pk}/report/verdicts/?kind=first&metric=better&judge=gpt"
    rows = [get(client_of, alice, f"{base}&apart={only}").count('<th scope="row"') for only in ("", "yes")]
    assert rows == [36, 24]


@pytest.mark.parametrize(
    "asked",
    [
        "verdicts/?kind=ratings&metric=nothing",
        "verdicts/?kind=ratings&metric=score&rater=Eve",
        "verdicts/?kind=repeats&metric=score&judge=nobody",
        "verdicts/?kind=answers&metric=score&candidate=beta",
        "pair/?metric=better&a=alpha&by=gpt&outcome=none",
        "pair/?metric=better&a=nobody&by=gpt",
    ],
)
def test_what_nobody_said_has_no_list(client_of: ClientOf, alice: User, run: Run, asked: str) -> None:
    get(client_of, alice, f"/p/{run.project.slug}/runs/{run.pk}/report/{asked}", 404)
