"""Downloads of a report."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from io import StringIO
from xml.etree import ElementTree

import pytest

from evalsite.accounts.models import Project, User
from judging.records.models import Judgement, Run
from judging.reports import files
from judging.reports.services import report_document
from tests.conftest import ClientOf
from tests.judging.core.statistics import cast
from tests.judging.reports.cast import a_judged_run
from tests.make import a_version

pytestmark = pytest.mark.django_db
Download = Callable[[str], bytes]


def spread(judgement: Judgement) -> int:
    return judgement.row.line % 4 + judgement.response.number


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(a_version(project, rows=8, answers=2, models=("模型甲", "=HYPERLINK(1)")), spread)


@pytest.fixture
def download(client_of: ClientOf, alice: User, run: Run) -> Download:
    def get(name: str) -> bytes:
        answer = client_of(alice).get(f"/p/{run.project.slug}/runs/{run.pk}/report/{name}")
        assert answer.status_code == 200
        assert "attachment" in answer["Content-Disposition"]
        return bytes(answer.content)

    return get


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(content.decode("utf-8-sig"))))


def test_the_json_file_is_the_document(download: Download, run: Run) -> None:
    assert json.loads(download("report.json")) == json.loads(json.dumps(report_document(run)))


def test_the_table_of_figures_has_a_line_for_each_candidate_and_metric(download: Download, run: Run) -> None:
    lines = table(download("figures.csv"))
    cells = report_document(run)["candidates"]
    assert [float(line["mean"]) for line in lines] == [cell["quality"]["mean"] for cell in cells.values()]


def test_each_line_of_figures_tells_of_the_rows_left_out(download: Download, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(bad_rows_left_out=3)
    assert {line["bad_rows"] for line in table(download("figures.csv"))} == {"3"}


def test_a_name_that_looks_like_a_formula_is_kept_from_being_one(download: Download) -> None:
    for name in ("figures.csv", "distributions.csv", "repeats.csv"):
        assert {line["candidate"] for line in table(download(name))} == {"模型甲", "'=HYPERLINK(1)"}


def test_the_table_of_pairs_holds_the_differences(download: Download, run: Run) -> None:
    (line,), (pair,) = table(download("pairs.csv")), report_document(run)["pairs"]
    assert (float(line["difference"]), int(line["ties"])) == (pair["difference"], pair["ties"])


def test_the_table_of_distributions_counts_every_score(download: Download) -> None:
    assert sum(int(line["count"]) for line in table(download("distributions.csv"))) == 32


@pytest.mark.parametrize("kind", ["means", "spread"])
def test_a_chart_is_a_complete_picture(download: Download, kind: str) -> None:
    assert ElementTree.fromstring(download(f"{kind}-1.svg")).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("name", ["means-2.svg", "means-0.svg", "nothing.csv", "nothing.html"])
def test_a_file_that_does_not_exist_is_not_found(
    client_of: ClientOf, alice: User, run: Run, name: str
) -> None:
    assert client_of(alice).get(f"/p/{run.project.slug}/runs/{run.pk}/report/{name}").status_code == 404


def test_comparisons_have_a_line_for_each_pair_and_author() -> None:
    said = cast.document([cast.compared("A>B"), cast.compared("B>A", row=2), cast.compared("A=B", row=3)])
    (line,) = table(files.comparisons_csv(said))
    assert (line["by"], line["a"], line["b"]) == ("qwen", "alpha", "beta")
    assert [line[name] for name in ("wins", "ties", "losses", "win_rate")] == ["1", "1", "1", "0.5"]


def test_agreement_has_a_line_for_each_judge_with_people_s_own_beside_it() -> None:
    said = [cast.said(5, row=row) for row in (1, 2)]
    said += [cast.person(5, name, row=row) for row in (1, 2) for name in ("Ann", "Bob")]
    (line,) = table(files.agreement_csv(cast.document(said)))
    assert (line["judge"], line["against"], line["exact"], line["human_exact"]) == (
        "qwen",
        "people",
        "1.0",
        "1.0",
    )


def test_the_radar_is_a_file_where_there_are_metrics_enough(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    names = ("accuracy", "style", "tone")
    run = a_judged_run(a_version(project), lambda one: 3, *names)
    answer = client_of(alice).get(f"/p/{project.slug}/runs/{run.pk}/report/radar.svg")
    assert ElementTree.fromstring(answer.content).tag.endswith("svg")
    assert all(name in answer.content.decode() for name in names)


def test_two_metrics_have_no_radar(client_of: ClientOf, alice: User, run: Run) -> None:
    assert client_of(alice).get(f"/p/{run.project.slug}/runs/{run.pk}/report/radar.svg").status_code == 404
