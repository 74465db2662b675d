"""Report pages show the document's figures, each with a link to its items."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from datasets.models import Row, Version
from evalsite.accounts.models import Project, User
from judging.core.values import Outcome
from judging.engine import planning
from judging.records.models import Judgement, Run
from judging.reports.figures import for_page
from judging.reports.labels import ValueFormat, interval
from judging.reports.links import Links, breakable
from judging.reports.services import report_by, report_document
from tests.conftest import ClientOf
from tests.judging import judged
from tests.judging.importing import imported, verdict
from tests.judging.reports.cast import a_judged_run, by_name, judge_all
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def project(module_db: None) -> Project:
    return a_project()


@pytest.fixture(scope="module")
def run_pk(project: Project) -> int:
    """Two candidates, 12 rows, two answers each; some without a score. The figures are computed."""
    run = a_judged_run(a_version(project, rows=12, answers=2), mixed, "quality", "style")
    for_page(run)
    return run.pk


@pytest.fixture
def run(run_pk: int) -> Run:
    return Run.objects.get(pk=run_pk)


def mixed(judgement: Judgement) -> int | Outcome | None:
    line = judgement.row.line
    unscored = {1: Outcome.unparsed("nothing_offered"), 2: Outcome.error("timeout"), 3: None}
    first = judgement.candidate.name == "alpha" and judgement.response.number == 1
    if first and line in unscored:
        return unscored[line]
    return line % 5 + judgement.response.number + (judgement.candidate.name == "alpha")


def address(run: Run, more: str = "") -> str:
    return f"/p/{run.project.slug}/runs/{run.pk}/report/{more}"


def page(client_of: ClientOf, user: User, run: Run, more: str = "") -> str:
    answer = client_of(user).get(address(run, more))
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_page_shows_the_figures_of_the_document(client_of: ClientOf, alice: User, run: Run) -> None:
    values, html = ValueFormat(), page(client_of, alice, run, "?metric=2")
    cells = [metrics["style"] for metrics in report_document(run)["candidates"].values()]
    assert all(f">{values.text(cell['mean'])}</a>" in html for cell in cells)
    assert all(values.interval(cell["ci_low"], cell["ci_high"]) in html for cell in cells)


def test_the_page_shows_one_metric_or_a_table_of_all(client_of: ClientOf, alice: User, run: Run) -> None:
    first, every = page(client_of, alice, run), page(client_of, alice, run, "?metric=all")
    assert "Leaderboard" in first
    assert "Leaderboard" not in every
    assert "Mean by metric" in every


def test_the_overview_says_the_result_and_leaves_the_figures_to_the_report(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    report = page(client_of, alice, run)
    overview = client_of(alice).get(f"/p/physics/runs/{run.pk}/").content.decode()
    assert 'class="lead"' in overview
    assert (report.count('class="stats"'), report.count("Leaderboard</h2>")) == (1, 1)
    assert (overview.count('class="stats"'), overview.count("Leaderboard</h2>")) == (0, 0)


@pytest.mark.parametrize("wanted", ["0", "7", "x", "99999999999"])
def test_a_metric_that_is_not_there_shows_the_first(
    client_of: ClientOf, alice: User, run: Run, wanted: str
) -> None:
    answer = client_of(alice).get(address(run, f"?metric={wanted}"))
    assert [metric.number for metric in answer.context["report"].metrics] == [1]


def test_a_reader_chooses_the_columns(client_of: ClientOf, alice: User, run: Run) -> None:
    html = page(client_of, alice, run, "?column=items&column=top_share")
    assert "Top-score rate" in html.split("<tbody>")[0]
    assert "Win share</span></th>" not in html


def test_the_result_is_reported_in_a_sentence(client_of: ClientOf, alice: User, project: Project) -> None:
    run = a_judged_run(a_version(project, rows=40), lambda one: one.row.line % 3 + len(one.candidate.name))
    html = re.sub(r"<[^>]+>", "", page(client_of, alice, run).split('class="lead"')[1].split("</section>")[0])
    assert "alpha leads with 6.00 [5.65, 6.34]" in html


def test_an_exact_tie_has_no_leader(client_of: ClientOf, alice: User, project: Project) -> None:
    run = a_judged_run(a_version(project, rows=4), lambda _: 5)
    html = re.sub(r"<[^>]+>", "", page(client_of, alice, run).split('class="lead"')[1].split("</section>")[0])
    assert "alpha and beta are equal with 5.00" in html
    assert "leads" not in html


def test_the_page_shows_every_pair(client_of: ClientOf, alice: User, run: Run) -> None:
    html = page(client_of, alice, run) + page(client_of, alice, run, "?metric=2")
    for pair in report_document(run)["pairs"]:
        assert interval(pair["ci_low"], pair["ci_high"], 2) in html


def test_a_difference_to_detect_tells_the_items_that_each_pair_needs(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    html = page(client_of, alice, run, "?metric=2&column=items&difference=0.3")
    assert "Detecting this difference with 80 % power takes" in html
    assert '<th scope="col" class="num">Items needed</th>' in html
    assert '<input type="hidden" name="metric" value="2">' in html.split("difference-2")[0]


def test_a_difference_that_is_none_gets_a_sentence(client_of: ClientOf, alice: User, run: Run) -> None:
    html = page(client_of, alice, run, "?difference=<b>")
    assert "Enter a number " in html
    assert 'value="&lt;b&gt;"' in html
    assert '<th scope="col" class="num">Items needed</th>' not in html


def test_bounds_are_shown_where_something_is_unscored(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    version = a_version(project)
    unscored = a_judged_run(version, lambda one: mixed(one) if one.row.line < 3 else 4)
    clean = a_judged_run(version, lambda one: one.row.line)
    assert ">Bounds</span></th>" in page(client_of, alice, unscored)
    assert ">Bounds</span></th>" not in page(client_of, alice, clean)


def test_answers_with_a_verdict_lead_to_their_judgements(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    run = judged.a_judged_run(project, lambda place: judged.said(9 if place < 2 else 4, flags=flags(place)))
    html = page(client_of, alice, run)
    assert "Suspected injected verdicts" in html
    link = re.search(r'href="([^"]*flag=planted_verdict)">1</a></td>\s*<td class="num">9.00', html)
    assert link is not None
    assert client_of(alice).get(unescape(link[1])).status_code == 200
    assert [one["others_mean"] for one in report_document(run)["planted"]] == [4.0, 4.0]


def flags(place: int) -> tuple[str, ...]:
    return ("planted_verdict",) if place < 2 else ()


def test_what_has_no_score_is_counted_beside_its_reason(client_of: ClientOf, alice: User, run: Run) -> None:
    html = page(client_of, alice, run)
    for state in ("unparsed", "error", "no_score"):
        assert re.search(rf'href="[^"]*candidate=alpha&amp;metric=quality&amp;state={state}">1</a>', html)


def test_every_number_of_a_candidate_leads_to_as_many_judgements(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    html = page(client_of, alice, run)
    links = re.findall(r'href="(/[^"]*/judgements/[^"]*)">(\d+)</a>', html)
    counted = {(unescape(link), int(text)) for link, text in links if "least" in link or "state" not in link}
    assert len(counted) > 8
    for link, count in counted:
        assert client_of(alice).get(link).context["count"] == count


@pytest.mark.parametrize("outcome", ["wins", "ties", "losses"])
def test_wins_ties_and_losses_lead_to_as_many_items(
    client_of: ClientOf, alice: User, run: Run, outcome: str
) -> None:
    pair = report_document(run)["pairs"][0]
    query = f"pair/?metric={pair['metric']}&a=alpha&b=beta&outcome={outcome}"
    assert client_of(alice).get(address(run, query)).context["count"] == pair[outcome]


def test_the_items_of_a_pair_are_those_of_its_difference(client_of: ClientOf, alice: User, run: Run) -> None:
    pair = report_document(run)["pairs"][0]
    context = client_of(alice).get(address(run, f"pair/?metric={pair['metric']}&a=alpha&b=beta")).context
    assert context["all"] == pair["items"] == sum(context["counts"].values())


def test_a_pair_of_strangers_is_not_found(client_of: ClientOf, alice: User, run: Run) -> None:
    for query in (
        "metric=quality&a=alpha&b=gamma",
        "metric=other&a=alpha&b=beta",
        "metric=quality&a=alpha&b=alpha",
    ):
        assert client_of(alice).get(address(run, f"pair/?{query}")).status_code == 404


def test_a_pair_that_cannot_be_distinguished_is_reported(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    alike = a_judged_run(
        a_version(project, rows=6), lambda one: 5 + (one.row.line + len(one.candidate.name)) % 2
    )
    assert "no significant difference" in page(client_of, alice, alike)
    apart = a_judged_run(a_version(project, rows=40), lambda one: one.row.line % 3 + len(one.candidate.name))
    assert "alpha is higher" in page(client_of, alice, apart)


def test_notes_become_sentences(client_of: ClientOf, alice: User, project: Project) -> None:
    html = page(client_of, alice, a_judged_run(a_version(project, rows=3), by_name(alpha=4, beta=40)))
    assert "All candidates: fewer than 30 items" in html
    assert "beta: 3 scores are outside the metric&#x27;s scale and count as is." in html


def test_a_run_under_way_says_that_its_figures_are_provisional(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    run = a_run(a_version(project, rows=80), a_metric("http://127.0.0.1:9"))
    planning.plan(run.pk)
    judge_all(run, lambda _: 5, most=1)
    assert "Provisional: 100 of 160 judgements done" in page(client_of, alice, run)


def test_a_run_without_a_score_shows_no_figures(client_of: ClientOf, alice: User, project: Project) -> None:
    waiting = a_run(a_version(project), a_metric("http://127.0.0.1:9"))
    assert "No scores yet" in page(client_of, alice, waiting)
    failed = a_judged_run(a_version(project), lambda _: Outcome.error("timeout"))
    assert "No scores" in page(client_of, alice, failed)


def test_rows_that_were_left_out_are_named(client_of: ClientOf, alice: User, project: Project) -> None:
    run = a_judged_run(a_version(project, rows=9), lambda _: 5, sample_size=4, seed=7)
    assert "5 rows not sampled (seed 7)." in page(client_of, alice, run)


def test_categories_have_shares_and_no_mean(client_of: ClientOf, alice: User, project: Project) -> None:
    run = a_judged_run(a_version(project, rows=4), lambda one: "A>B" if one.row.line > 1 else "B>A")
    html = page(client_of, alice, run)
    assert "value=A%3EB" in html
    assert ">Mean</span></th>" not in html


@pytest.mark.parametrize("label", ["5", "true", '"quoted"'])
def test_a_category_that_reads_like_a_score_leads_to_its_judgements(
    client_of: ClientOf, alice: User, project: Project, label: str
) -> None:
    run = a_judged_run(a_version(project, rows=4), lambda one: label if one.row.line > 1 else "other")
    links = re.findall(r'href="(/[^"]*value=[^"]*)">(\d)</a>', page(client_of, alice, run))
    assert [int(count) for _link, count in links] == [3, 3, 1, 1]
    assert [client_of(alice).get(unescape(link)).context["count"] for link, _count in links] == [3, 3, 1, 1]


def test_bools_have_a_rate(client_of: ClientOf, alice: User, project: Project) -> None:
    html = page(client_of, alice, a_judged_run(a_version(project, rows=4), lambda one: one.row.line > 1))
    assert ">Pass rate</span></th>" in html
    assert ">75.0 %</a>" in html


def test_several_answers_to_a_question_show_the_best_and_the_worst_of_them(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    assert "Repeated answers" in page(client_of, alice, run)


def test_items_with_several_answers_lead_to_the_list_of_judgements_only_where_it_holds_them(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    table = page(client_of, alice, run).split("Repeated answers</caption>")[1].split("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1], re.DOTALL)
    named = [
        (tuple(re.findall(r"<t[hd][^>]*>(\w+)</t[hd]>", row)[:2]), "/judgements/" in row) for row in rows
    ]
    # Three of alpha's first answers have no score.
    assert sorted(named) == [
        (("alpha", "1"), True),
        (("alpha", "2"), False),
        (("beta", "1"), True),
        (("beta", "2"), True),
    ]


def test_long_names_break_between_their_words() -> None:
    assert breakable("llama_2/7b<i>") == "llama_<wbr>2/<wbr>7b&lt;i&gt;"


def test_names_are_text_and_never_markup(client_of: ClientOf, alice: User, project: Project) -> None:
    version = a_version(project, rows=2, models=("<script>alert(1)</script>", "=1+1"))
    html = page(client_of, alice, a_judged_run(version, lambda one: one.row.line))
    assert "<script>alert" not in html


@pytest.mark.parametrize(
    "name", ["", "pair/?metric=quality&a=alpha&b=beta", "figures.csv", "report.json", "means-1.svg"]
)
def test_only_who_reads_judgements_sees_the_report(
    client_of: ClientOf, cast: dict[str, User], run: Run, name: str
) -> None:
    answers = {who: client_of(user).get(address(run, name)).status_code for who, user in cast.items()}
    assert answers == {"alice": 200, "bob": 200, "adam": 200, "olga": 200, "rita": 403, "charlie": 404}


def test_the_number_of_queries_does_not_grow_with_the_run(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    counts, client = [], client_of(alice)
    for rows, models in ((2, ("a", "b")), (40, ("a", "b", "c", "d"))):
        run = a_judged_run(a_version(project, rows=rows, models=models), lambda one: one.row.line % 7)
        with CaptureQueriesContext(connection) as asked:
            client.get(address(run))
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 58


def test_the_page_is_there_in_chinese(client_of: ClientOf, alice: User, run: Run) -> None:
    answer: Any = client_of(alice).get(address(run), headers={"Accept-Language": "zh-Hans"})
    assert "待测模型" in answer.content.decode()


def test_items_of_a_pair_have_the_decimals_of_the_report(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    run = a_judged_run(a_version(project, rows=2), by_name(alpha=10, beta=7.5))
    rows = re.findall(
        r"<tr>.*?</tr>", page(client_of, alice, run, "pair/?metric=quality&a=alpha&b=beta"), re.DOTALL
    )
    assert [re.sub(r"<[^>]*>|\s+", " ", row).split()[-3:] for row in rows[1:]] == [
        ["10.00", "7.50", "+2.50"]
    ] * 2


def test_beside_means_comparisons_show_their_win_rate(
    client_of: ClientOf, alice: User, project: Project, tmp_path: Path
) -> None:
    beats = verdict(value="A>B", metric="better", other_model="beta")
    run = imported(a_version(project), tmp_path, verdict(metric="a score"), beats)
    html = page(client_of, alice, run, "?metric=all")
    assert "better (win rate)" in html
    assert "<b>100 %</b>" in html.replace("100.0", "100")


def test_what_others_judged_took_no_time_here(
    client_of: ClientOf, alice: User, project: Project, tmp_path: Path
) -> None:
    run = imported(a_version(project), tmp_path, verdict())
    assert report_document(run)["cost"]["wall_seconds"] is None
    assert "Duration" not in page(client_of, alice, run)


def with_fields(run: Run, **fields: list[str]) -> Run:
    """Add custom fields to the run's rows; the values of each field alternate."""
    for row in Row.objects.filter(version=run.version):
        more = {name: values[row.line % len(values)] for name, values in fields.items()}
        Row.objects.filter(pk=row.pk).update(raw=json.dumps(json.loads(row.raw) | more))
    found = dict.fromkeys(fields, run.version.rows)
    Version.objects.filter(pk=run.version_id).update(fields_found=found)
    return Run.objects.get(pk=run.pk)


def test_means_are_by_the_first_telling_field_unasked(client_of: ClientOf, alice: User, run: Run) -> None:
    with_fields(run, id=[f"q{n}" for n in range(12)], subject=["art", "maths"])
    html = page(client_of, alice, run)
    assert "By subject" in html
    assert f"/p/{run.project.slug}/runs/{run.pk}/judgements/?candidate=alpha" in html
    assert "field=subject&amp;field_is=maths" in html
    assert "By id" in page(client_of, alice, run, "?by=id")
    assert "By subject" not in page(client_of, alice, run, "?by=-")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("subject", "maths"),
        ("turns", "1"),
        ("length", "0–99"),
        ("language", "Latin script"),
        ("format", "plain text"),
    ],
)
def test_every_slice_leads_to_its_judgements(
    client_of: ClientOf, alice: User, run: Run, field: str, value: str
) -> None:
    with_fields(run, subject=["art", "maths"])
    found = re.findall(r'href="([^"]*field=[^"]*)"', page(client_of, alice, run, f"?by={field}"))
    (mine,) = [
        unescape(one)
        for one in found
        if "candidate=beta" in one and one.endswith(urlencode({"field_is": value}))
    ]
    cell = report_by(run, [field])["breakdown"]["values"][value]["beta"]["quality"]
    assert client_of(alice).get(mine).context["count"] == cell["scored"]


def test_choosing_columns_keeps_the_slices_and_the_difference(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    with_fields(run, subject=["art", "maths"])
    html = page(client_of, alice, run, "?by=subject&difference=0.5")
    columns = html[html.index("data-columns") :]
    columns = columns[: columns.index("</form>")]
    assert 'name="by" value="subject"' in columns
    assert 'name="difference" value="0.5"' in columns


def test_rows_of_one_conversation_are_one_group(client_of: ClientOf, alice: User, run: Run) -> None:
    alone = report_document(run)["candidates"]["beta"]["quality"]
    with_fields(run, conversation_id=["a", "b", "c"])
    Run.objects.filter(pk=run.pk).update(revision=run.revision + 1)
    changed = Run.objects.get(pk=run.pk)
    cell = report_document(changed)["candidates"]["beta"]["quality"]
    assert (alone["clusters"], cell["clusters"], cell["items"]) == (12, 3, 12)
    assert cell["mean"] == alone["mean"]
    assert cell["se"] != alone["se"]
    assert "intervals are over 3 groups" in page(client_of, alice, changed)


def test_items_or_answers_which_is_worth_more_is_reported(client_of: ClientOf, alice: User, run: Run) -> None:
    html = page(client_of, alice, run)
    assert "All k pass" in html
    assert "More items or more answers" in html


def test_links_to_rated_references_name_them_as_their_run_does() -> None:
    assert Links("items/", "").to("@reference", "quality") == "items/?candidate=reference&metric=quality"


def test_the_page_says_how_sure_the_order_is(client_of: ClientOf, alice: User, run: Run) -> None:
    (ranking, _style) = report_document(run)["ranking"]
    html = page(client_of, alice, run)
    assert (ranking["draws"], ranking["first"]) == (2000, {"alpha": 1.0, "beta": 0.0})
    assert "alpha is first in 100 of 100 resamplings of the questions." in html
    assert re.search(r"beta</th>\s*<td class=\"num\">2</td>\s*<td class=\"num\">0</td>", html)


def test_few_rows_say_why_the_order_is_not_resampled(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    run = a_judged_run(a_version(project, rows=5), by_name(alpha=4, beta=3), "quality")
    assert "Below ten independent rows, the order is not resampled." in page(client_of, alice, run)
