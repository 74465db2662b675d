"""Items behind comparisons, raters, repeats and order flips: each count links to as many items, in large runs too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape

import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.records.models import Run
from judging.reports import figures
from tests.conftest import ClientOf
from tests.judging.importing import imported, verdict
from tests.make import a_project, a_version
from tests.working import FIGURES, do_jobs

pytestmark = pytest.mark.django_db

LINK = re.compile(r'<a href="([^"]*/report/(?:pair|verdicts)/[^"]*)">([^<]+)</a>')


def lines() -> Iterator[dict[str, object]]:
    """Three candidates, compared by a judge in both orders and by people, and scored by people and twice by a judge.
    The judge also scored further answers of alpha."""
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


@pytest.fixture(scope="module")
def project(module_db: None) -> Project:
    return a_project()


@pytest.fixture(scope="module")
def run_pk(project: Project, tmp_path_factory: pytest.TempPathFactory) -> int:
    version = a_version(project, rows=6, models=("alpha", "beta", "gamma"), answers=3)
    run = imported(version, tmp_path_factory.mktemp("run"), *lines())
    score = run.metrics.get(name="score")
    scale = {"scale_declared": True, "min_score": 1, "max_score": 6}
    score.definition = json.dumps(json.loads(score.definition) | scale)
    score.save()
    figures.for_page(Run.objects.get(pk=run.pk))
    return run.pk


@pytest.fixture
def run(run_pk: int) -> Run:
    return Run.objects.get(pk=run_pk)


@pytest.fixture
def reader(client_of: ClientOf, alice: User, run: Run) -> Client:
    """A signed-in client. Depends on `run`, since the import creates the secret key that signs sessions."""
    return client_of(alice)


def report_address(run: Run) -> str:
    return f"/p/{run.project.slug}/runs/{run.pk}/report/"


def page(reader: Client, address: str) -> str:
    return str(reader.get(address).content.decode())


def items_at(reader: Client, address: str) -> int:
    return page(reader, address).count('<th scope="row"')


def links_of(reader: Client, run: Run) -> dict[str, str]:
    """{URL: link text} of the report's links to item lists."""
    report = page(reader, f"{report_address(run)}?metric=each")
    return {unescape(address): text for address, text in LINK.findall(report)}


def kinds_of(links: Iterable[str]) -> set[str]:
    return {re.sub(r".*/report/(\w+)/\?(?:kind=(\w+))?.*", r"\1 \2", address).strip() for address in links}


def counted(links: Mapping[str, str]) -> dict[str, int]:
    """{URL: number of items} of the links whose text starts with a count."""
    found = {link: re.match(r"(\d+)(?:$|/| of | answer| comparison)", text) for link, text in links.items()}
    return {link: int(count[1]) for link, count in found.items() if count}


def test_every_kind_of_list_is_linked(reader: Client, run: Run) -> None:
    of_verdicts = ("ratings", "repeats", "orders", "first", "lowest", "highest", "answers")
    assert kinds_of(links_of(reader, run)) == {"pair", *(f"verdicts {kind}" for kind in of_verdicts)}


def test_every_count_links_to_as_many_items(reader: Client, run: Run) -> None:
    counts = counted(links_of(reader, run))
    assert counts
    assert {link: items_at(reader, link) for link in counts} == counts


def test_a_large_run_has_the_same_links_and_items(
    reader: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_a_small_run = links_of(reader, run)
    monkeypatch.setattr(figures, "FEW", 0)
    figures.for_page(run)
    do_jobs(*FIGURES)
    links = links_of(reader, run)
    assert links == of_a_small_run
    assert {link: items_at(reader, link) for link in counted(links)} == counted(links)


@pytest.mark.parametrize(
    "address", ["pair/?metric=better&a=alpha&by=gpt", "verdicts/?kind=ratings&metric=score"]
)
def test_items_of_a_large_run_that_are_not_computed_yet_redirect_to_the_report(
    reader: Client, run: Run, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FEW", 0)
    assert reader.get(report_address(run) + address).status_code == 302


def test_an_item_shows_the_verdict_of_each_rater_and_order(reader: Client, run: Run) -> None:
    base = f"{report_address(run)}verdicts/?kind="
    ratings = page(reader, f"{base}ratings&metric=score&rater=Ann&other=Bob")
    assert re.search(r"Ann</small>\s*<span[^>]*><strong>5</strong>", ratings)
    orders = page(reader, f"{base}orders&metric=better&judge=gpt&apart=yes")
    assert re.search(r"beta first</small>\s*<span[^>]*><strong>beta better</strong>", orders)


@pytest.mark.parametrize(("least", "items"), [(2, 2), (3, 1)])
def test_items_have_at_least_so_many_answers(reader: Client, run: Run, least: int, items: int) -> None:
    asked = "verdicts/?kind=answers&metric=score&candidate=alpha"
    assert items_at(reader, f"{report_address(run)}{asked}&least={least}") == items


@pytest.mark.parametrize(("apart", "items"), [("", 36), ("yes", 24)])
def test_comparisons_that_the_first_side_won_are_listed(
    reader: Client, run: Run, apart: str, items: int
) -> None:
    asked = "verdicts/?kind=first&metric=better&judge=gpt"
    assert items_at(reader, f"{report_address(run)}{asked}&apart={apart}") == items


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
def test_a_list_of_verdicts_that_do_not_exist_is_not_found(reader: Client, run: Run, asked: str) -> None:
    assert reader.get(report_address(run) + asked).status_code == 404
