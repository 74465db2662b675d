"""The page that compares runs."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from evalsite.accounts.models import Membership, Project, Role, User
from evalsite.rounding import rounded
from judging.people.assignments import claim
from judging.people.models import Evaluation
from judging.people.services import evaluation_close
from judging.records.models import Run
from judging.reports.comparison.stored import StoredShare
from judging.reports.comparison.views import judge_moved, share_name
from tests.conftest import ClientOf, member
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.people.make import give, make_evaluation
from tests.make import a_metric, a_project, a_run, a_version


@pytest.fixture
def runs(project: Project) -> list[Run]:
    """Three runs over one version; the third uses another prompt."""
    version = a_version(project, rows=3, models=("alpha", "beta"))
    scores = ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 9], [2, 3, 4, 5, 6, 7])
    metrics = (
        a_metric(JUDGE_URL),
        a_metric(JUDGE_URL),
        a_metric(JUDGE_URL, template="Rate {{ response.content }}"),
    )
    return [
        judge(
            a_run(version, metric, name=f"run {number}"),
            lambda place, mine=mine: said(
                mine[place], content=f"Because of {mine[place]}. Score: [[{mine[place]}]]"
            ),
        )
        for number, (metric, mine) in enumerate(zip(metrics, scores, strict=True))
    ]


@pytest.fixture
def client(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def page(client: Client, run: Run, **query: Any) -> HttpResponse:
    return client.get(f"/p/physics/runs/{run.pk}/compare/", query)


def test_without_a_second_run_the_page_offers_the_others(client: Client, runs: list[Run]) -> None:
    response = page(client, runs[2])
    assert [one.name for one in response.context["offered"]] == ["run 1", "run 0"]


def test_two_runs_show_the_difference_with_its_causes(client: Client, runs: list[Run]) -> None:
    response = page(client, runs[1], **{"with": runs[0].pk, "candidate": "beta"})
    (_, _), (_kept, shares) = response.context["changes"]
    assert [(share.name, share.difference) for share in shares] == [("nothing changed (noise)", 1.0)]


def test_a_changed_prompt_is_shown_among_the_settings(client: Client, runs: list[Run]) -> None:
    response = page(client, runs[2], **{"with": runs[0].pk})
    ((metric, parts),) = response.context["settings"]
    assert (metric, parts[0].texts[0][0]) == ("quality", "Prompt template")


def test_items_are_sorted_by_how_much_they_changed(client: Client, runs: list[Run]) -> None:
    response = page(client, runs[1], **{"with": runs[0].pk, "candidate": "beta"})
    assert [item.difference for item, *_ in response.context["items"]] == [3, 0, 0]


def test_counts_lead_to_their_items(client: Client, runs: list[Run]) -> None:
    response = page(client, runs[1], **{"with": runs[0].pk, "candidate": "beta", "outcome": "wins"})
    assert response.context["counts"] == {"wins": 1, "ties": 2, "losses": 0}
    assert len(response.context["items"]) == 1


def test_the_newer_run_is_what_the_older_has_become_whichever_one_comes_from(
    client: Client, runs: list[Run]
) -> None:
    first, second = (
        page(client, one, **{"with": other.pk}).context for one, other in (runs[:2], runs[1::-1])
    )
    assert (first["before"], first["after"]) == (second["before"], second["after"]) == (runs[0], runs[1])


def test_the_replies_of_an_item_are_shown_with_what_differs(client: Client, runs: list[Run]) -> None:
    first, second = (run.judgements.order_by("position").last() for run in runs[:2])
    assert first
    assert second
    response = client.get(f"/p/physics/runs/{runs[1].pk}/compare/{runs[0].pk}/{first.pk}/{second.pk}/")
    assert "Because of <del>6</del>" in response.content.decode()
    assert "Because of <ins>9</ins>" in response.content.decode()


def test_an_item_has_a_page_of_its_own_without_script(client: Client, runs: list[Run]) -> None:
    first, second = (run.judgements.order_by("position").first() for run in runs[:2])
    assert first
    assert second
    address = f"/p/physics/runs/{runs[1].pk}/compare/{runs[0].pk}/{first.pk}/{second.pk}/"
    assert "<html" in client.get(address).text
    assert "<html" not in client.get(address, headers={"HX-Request": "true"}).text


def test_runs_are_read_at_once_however_many_are_compared(client: Client, runs: list[Run]) -> None:
    version = runs[0].version
    more = [judge(a_run(version, a_metric(JUDGE_URL)), lambda place: said(3)) for _ in range(12)]
    response = page(client, runs[0], **{"with": [one.pk for one in more]})
    assert len(response.context["table"][0]["cells"]) == 13


def test_several_runs_are_a_table_with_the_oldest_first(client: Client, runs: list[Run]) -> None:
    response = page(client, runs[0], **{"with": [runs[2].pk, runs[1].pk]})
    table = response.context["table"]
    assert [run.name for run, _cell in table[0]["cells"]] == ["run 0", "run 1", "run 2"]
    means = [[cell and cell["mean"] for _run, cell in line["cells"]] for line in table]
    assert means == [[3, 3, None], [None, None, 4], [4, 5, None], [None, None, 5]]
    assert "<polyline" in table[2]["trend"]


@pytest.mark.parametrize(
    "query",
    [{"with": "x"}, {"outcome": "draws"}, {"cause": "weather"}, {"metric": "none"}, {"candidate": "none"}],
    ids=str,
)
def test_what_is_not_there_is_not_found(client: Client, runs: list[Run], query: dict[str, str]) -> None:
    response = page(client, runs[1], **{"with": runs[0].pk, **query})
    assert response.status_code == 404


def test_a_run_of_another_project_is_not_found(client: Client, runs: list[Run]) -> None:
    other = a_project("Chemistry")
    run = judge(a_run(a_version(other), a_metric(JUDGE_URL)), lambda place: said(1))
    assert page(client, runs[0], **{"with": run.pk}).status_code == 404


def test_a_second_look_reads_no_judgements(
    client: Client, runs: list[Run], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    page(client, runs[1], **{"with": runs[0].pk})
    with django_assert_max_num_queries(27) as queries:
        page(client, runs[1], **{"with": runs[0].pk})
    assert not [one for one in queries.captured_queries if 'FROM "judging_judgement"' in one["sql"]]


@pytest.fixture
def rated(project: Project) -> tuple[Run, Run, User, Evaluation]:
    """A run, an open evaluation's run, a reviewer who has rated in it, and the evaluation."""
    both = member("rosa", project, Role.RATER)
    Membership.objects.create(user=both, project=project, role=Role.REVIEWER)
    evaluation = make_evaluation(project, [both], rows=3)
    give(claim(evaluation=evaluation, user=both)[0], "A=B")
    run = judge(a_run(evaluation.run.version, a_metric(JUDGE_URL)), lambda place: said(4))
    return run, evaluation.run, both, evaluation


@pytest.mark.parametrize("first", [0, 1])
def test_a_rater_sees_no_figures_of_an_open_evaluation(
    rated: tuple[Run, Run, User, Evaluation], alice: User, client_of: ClientOf, first: int
) -> None:
    runs, both, evaluation = rated[:2], rated[2], rated[3]
    response = page(client_of(both), runs[first], **{"with": [runs[1 - first].pk]})
    assert "Hidden while you rate" in response.text
    assert "table" not in response.context
    evaluation_close(evaluation=evaluation, by=alice)
    assert (
        "Hidden while you rate"
        not in page(client_of(both), runs[first], **{"with": [runs[1 - first].pk]}).text
    )


def test_a_rater_sees_no_item_of_an_open_evaluation(
    rated: tuple[Run, Run, User, Evaluation], client_of: ClientOf
) -> None:
    run, people, both, _evaluation = rated
    first, second = (one.judgements.filter(state="scored").first() for one in (run, people))
    assert first
    assert second
    address = f"/p/physics/runs/{people.pk}/compare/{run.pk}/{first.pk}/{second.pk}/"
    assert client_of(both).get(address).status_code == 403


def test_an_organiser_compares_an_open_evaluation(
    rated: tuple[Run, Run, User, Evaluation], client: Client
) -> None:
    assert "Hidden while you rate" not in page(client, rated[0], **{"with": rated[1].pk}).text


def test_all_bars_of_the_page_have_one_scale(client: Client, runs: list[Run]) -> None:
    changes = page(client, runs[2], **{"with": runs[1].pk}).context["changes"]
    widths = {
        (kept.candidate, round(abs(share.difference), 3)): float(share.width)
        for kept, shares in changes
        for share in shares
    }
    longest = max(size for _candidate, size in widths)
    assert len(changes) == 2
    assert widths == {key: pytest.approx(max(0.5, 50 * key[1] / longest), abs=0.1) for key in widths}


def a_share(cause: str, low: float | None, high: float | None) -> StoredShare:
    return StoredShare(cause, 1.0, 3, low, high)


@pytest.mark.parametrize(
    ("share", "name"),
    [
        (a_share("prompt", -0.1, 2.1), "prompt (or the judge's own variation)"),
        (a_share("judge+prompt", -0.1, 2.1), "judge model + prompt (or the judge's own variation)"),
        (a_share("prompt", None, None), "prompt (or the judge's own variation)"),
        (a_share("prompt", 0.1, 1.9), "prompt"),
        (a_share("answers", -0.1, 2.1), "answers"),
    ],
)
def test_what_the_judge_may_have_done_by_itself_is_said(share: StoredShare, name: str) -> None:
    assert share_name(share) == name


@pytest.mark.parametrize(
    ("share", "moved"),
    [
        (a_share("noise", 0.1, 0.5), True),
        (a_share("noise", -0.5, -0.1), True),
        (a_share("noise", -0.1, 0.5), False),
        (a_share("noise", None, None), False),
        (a_share("judge", 0.1, 0.5), False),
    ],
)
def test_verdicts_that_move_beyond_chance_under_equal_settings_are_told(
    share: StoredShare, moved: bool
) -> None:
    assert judge_moved(share) is moved


def test_the_page_warns_of_verdicts_that_moved_beyond_chance(client: Client, project: Project) -> None:
    version = a_version(project, rows=30, models=["alpha"])
    metric = a_metric(JUDGE_URL)
    first, second = (
        judge(a_run(version, metric), lambda place, down=down: said(6 + place % 2 - down * (1 + place % 2)))  # type: ignore[misc]
        for down in (0, 1)
    )
    warned = page(client, second, **{"with": first.pk}).content.decode()
    assert "The model behind the judge" in warned


def test_each_share_has_its_interval(client: Client, runs: list[Run]) -> None:
    answer = page(client, runs[2], **{"with": runs[1].pk})
    values = answer.context["values"]
    shares = [share for _kept, of_change in answer.context["changes"] for share in of_change]
    assert shares
    for share in shares:
        assert f"[{values.text(share.ci_low)}, {values.text(share.ci_high)}]" in answer.text


def test_printed_shares_add_up_to_the_printed_difference(client: Client, runs: list[Run]) -> None:
    context = page(client, runs[2], **{"with": runs[1].pk}).context
    assert context["changes"]
    for kept, shares in context["changes"]:
        printed = sum(Decimal(share.text.replace("−", "-")) for share in shares)
        assert printed == rounded(kept.difference, context["values"].places)


def test_versions_of_a_metric_are_never_joined_by_a_line(client: Client, runs: list[Run]) -> None:
    table = page(client, runs[2], **{"with": [runs[0].pk, runs[1].pk]}).context["table"]
    shown = [
        (
            line["candidate"],
            line["version"],
            [cell is not None for _run, cell in line["cells"]],
            bool(line["trend"]),
        )
        for line in table
    ]
    earlier, later = ("as in run 0", [True, True, False], True), ("as in run 2", [False, False, True], False)
    assert sorted(shown) == [(name, *one) for name in ("alpha", "beta") for one in (earlier, later)]


def test_decimals_of_a_column_are_equal(client: Client, runs: list[Run]) -> None:
    html = page(client, runs[1], **{"with": runs[0].pk, "candidate": "beta"}).text
    column = re.findall(r'data-label="run 0">(?:<a[^>]*>)?([^<]*)<', html)
    assert column
    assert all(re.fullmatch(r"[0-9]+[.][0-9]{2}", text) for text in column)
