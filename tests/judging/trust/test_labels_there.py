"""Tests drawn from labels that are there: ratings of an evaluation that ended, and imported ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from datasets.models import Row, Version
from evalsite.accounts.models import Project, User
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.deletion.services import delete_begin
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.people.services import evaluation_close
from judging.records.models import Run
from judging.reports.services import report_document
from judging.trust.dev import dev_agreements
from judging.trust.drawing import sealed_test_draw
from judging.trust.labelled import Labels, labels_for
from judging.trust.models import Licence, Split
from judging.trust.services import sealed_test_open
from judging.trust.sources import Source
from tests.api import Api
from tests.conftest import ClientOf
from tests.judging.importing import imported, imports, results_file, verdict
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.people.make import about, rate_all
from tests.judging.trust.conftest import DEFINITION, ROWS, WRONG
from tests.make import a_comparison, a_run
from tests.real_data import real_data

pytestmark = pytest.mark.django_db


def rated(line: int, **more: Any) -> dict[str, Any]:
    """Gold says what the judge says, but on six rows."""
    passes = (line % 2 == 1) != (line in WRONG)
    return verdict(line, value=passes, rater="gold", metric="quality", **more)


@pytest.fixture
def labelled(run: Run, tmp_path: Path) -> Run:
    return imported(run.version, tmp_path, *map(rated, range(1, ROWS + 1)))


def offered(run: Run, metric: Metric, definition: MetricDefinition = DEFINITION) -> list[Labels]:
    return labels_for(metric, definition, Source(run.version, run))


def drawn(run: Run, metric: Metric, sizes: Sizes, definition: MetricDefinition = DEFINITION) -> Split:
    split = sealed_test_draw(
        metric=metric,
        definition=definition,
        source=Source(run.version, run),
        sizes=sizes,
        user=None,
        labels=offered(run, metric, definition)[0],
        seed=5,
    )
    return Split.objects.get(pk=split.pk)


def test_a_test_from_imported_labels_is_closed_at_once(run: Run, metric: Metric, labelled: Run) -> None:
    split = drawn(run, metric, Sizes(0, 6, 24))
    assert (split.test.imported, split.test.open, len(split.test.labels)) == (labelled, False, 24)
    licence = sealed_test_open(test=split.test, run_metric=run.metrics.get())
    assert (licence.labels_before, licence.figures["items"]) == (True, 24)
    (agreement,) = dev_agreements(split)
    assert agreement.wrong + licence.figures["items"] - licence.figures["agreement"]["count"] == len(WRONG)


def test_imported_labels_of_a_test_are_sealed_until_it_is_opened(
    run: Run, metric: Metric, labelled: Run, alice: User
) -> None:
    export = f"projects/physics/runs/{labelled.pk}/export?form=results"

    def shown() -> int:
        return Api(alice).get(export).getvalue().count(b'"gold"')

    assert shown() == ROWS
    split = drawn(run, metric, Sizes(0, 6, 24))
    assert shown() == ROWS - 24
    sealed_test_open(test=split.test, run_metric=run.metrics.get())
    assert shown() == ROWS


def test_the_page_offers_them_and_says_where_they_are_from(
    run: Run, metric: Metric, labelled: Run, alice: User, client_of: ClientOf
) -> None:
    page, align = client_of(alice), f"/p/physics/judges/{metric.pk}/"
    assert "take those of “elsewhere”" in page.get(align).content.decode()
    fields = {"source": f"run-{run.pk}", "train": 0, "dev": 6, "test": 24, "overlap": 1}
    fields["labels"] = labelled.metrics.get().pk
    assert page.post(align, fields).status_code == 302
    text = page.get(align).content.decode()
    assert "Labels were imported: " in text
    assert f"/judges/tests/{Split.objects.get().pk}/open/" in text


def test_labels_of_another_name_are_named(
    run: Run, metric: Metric, tmp_path: Path, alice: User, client_of: ClientOf
) -> None:
    imported(run.version, tmp_path, *(rated(line) | {"metric": "gold"} for line in range(1, ROWS + 1)))
    page = client_of(alice).get(f"/p/physics/judges/{metric.pk}/").content.decode()
    assert "take those of “elsewhere · gold”" in page
    assert drawn(run, metric, Sizes(0, 6, 24)).criterion == "gold"


@pytest.mark.parametrize(
    "lines",
    [
        [rated(line, drawn_with=0.1 if line % 3 else 0.9) for line in range(1, ROWS)],
        [rated(line) | {"value": line % 5 + 1} for line in range(1, ROWS)],
        [verdict(line, value=True, metric="quality") for line in range(1, ROWS)],
    ],
    ids=["not evenly drawn", "another kind", "a judge's"],
)
def test_other_imports_are_not_offered(
    run: Run, metric: Metric, tmp_path: Path, lines: list[dict[str, Any]]
) -> None:
    imported(run.version, tmp_path, *lines)
    assert offered(run, metric) == []


def test_an_import_that_a_test_rests_on_cannot_be_undone(run: Run, metric: Metric, labelled: Run) -> None:
    drawn(run, metric, Sizes(0, 6, 24))
    with pytest.raises(ValidationError, match="“quality · "):
        delete_begin(kind="run", thing=labelled)


@pytest.mark.parametrize(
    ("overlap", "ended", "stays"), [(2, False, True), (2, True, False), (1, False, False)]
)
def test_the_test_of_an_evaluation_stays_open_while_ratings_can_come(
    run: Run, metric: Metric, rita: User, alice: User, overlap: int, ended: bool, stays: bool
) -> None:
    evaluation = about(run, [rita, alice], overlap=overlap)
    rate_all(evaluation, rita, True)
    if ended:
        evaluation_close(evaluation=evaluation, by=None)
    assert drawn(run, metric, Sizes(0, 6, 24)).test.open is stays


# --- published verdicts -----------------------------------------------------------------------------------------


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in real_data(name).read_text(encoding="utf-8").splitlines()]


PAIR = {"model": "output_1", "other_model": "output_2", "metric": "better"}
WINNER = {"1": "A>B", "2": "B>A"}


def test_llmbar_s_labels_give_a_judge_its_licence(project: Project, tmp_path: Path) -> None:
    """GPT-4's verdicts as those of a judge of the project (princeton-nlp/LLMBar, MIT)."""
    gold = [
        {"id": row["id"], **PAIR, "rater": "gold", "value": WINNER[row["gold_better"][-1]]}
        for row in lines_of("llmbar_pairs_dev.jsonl")
    ]
    files = real_data("llmbar_pairs_dev.jsonl"), results_file(tmp_path, gold)
    summary, status = imports(*files, "gold")
    assert status == 0
    labels = Run.objects.get(pk=summary["run"])
    version, definition = labels.version, a_comparison(JUDGE_URL, name="pairwise", both_orders=False)
    metric = metric_create(project=labels.project, definition=definition, user=None)
    verdicts = gpt_4(version)
    run = judge(a_run(version, definition), lambda place: said(verdicts[place]))
    run.metrics.update(metric_version=metric.versions.get())
    split = drawn(run, metric, Sizes(20, 40, 78), definition)
    licence = sealed_test_open(test=split.test, run_metric=run.metrics.get())
    assert (licence.figures["judged"], licence.figures["items"]) == ("ordered", 78)
    assert licence.figures["kappa_low"] < licence.figures["kappa"] < 1
    assert licence.use in ("exploring", "trends")
    assert Licence.objects.get().labels_before


def gpt_4(version: Version) -> list[str]:
    """GPT-4's verdicts with the answers in their order, in the order of the rows; unread ones as a tie."""
    mine = {
        f"{one['subset']}-{one['item']}": WINNER.get(str(one["winner_ab"]), "A=B")
        for one in lines_of("llmbar_verdicts_dev.jsonl")
        if (one["judge"], one["method"]) == ("GPT-4", "Vanilla")
    }
    rows = Row.objects.filter(version=version).order_by("line").values_list("raw", flat=True)
    return [mine[json.loads(raw)["id"]] for raw in rows]


def test_twelve_published_judges_agree_with_people_each_to_its_degree(tmp_path: Path) -> None:
    lines = [
        {"id": row["id"], **PAIR, "rater": "gold", "value": WINNER[row["gold_better"][-1]]}
        for row in lines_of("llmbar_pairs_dev.jsonl")
    ]
    for one in lines_of("llmbar_verdicts_dev.jsonl"):
        named = {"id": f"{one['subset']}-{one['item']}", "judge": f"{one['judge']} {one['method']}"}
        for first, winner in ((1, one["winner_ab"]), (2, one["winner_ba"])):
            value = WINNER.get(str(winner))
            unread = {} if value else {"state": "unparsed", "reason": "no_winner"}
            lines.append({**named, **PAIR, "shown_first": first, "value": value, **unread})
    summary, _status = imports(
        real_data("llmbar_pairs_dev.jsonl"), results_file(tmp_path, lines), "published"
    )
    assert summary["refused"] == []
    document = report_document(Run.objects.get(pk=summary["run"]))
    against_people = [entry for entry in document["judges"] if entry["against"] == "people"]
    assert len(against_people) == 12
    assert all(
        entry["kappa_low"] <= entry["kappa_weighted"] <= entry["kappa_high"] for entry in against_people
    )
    assert {entry["state"] for entry in document["licences"]} == {"none"}


def test_sfhot_is_corrected_by_the_ratings_that_were_drawn(tmp_path: Path) -> None:
    """People's 1…6 on 0…1; 240 of 875 drawn evenly (maszhongming/UniEval, MIT)."""
    ratings = lines_of("sfhot_ratings.jsonl")
    every = len(ratings)
    rows = [
        {
            "id": one["id"],
            "messages": [{"role": "user", "content": one["source"]}],
            "model_outputs": [{"model_name": "system", "responses": [{"content": one["response"]}]}],
        }
        for one in ratings
    ]
    about_it = {"model": "system", "metric": "informativeness"}
    lines = [
        {"id": one["id"], **about_it, "judge": "UniEval", "value": one["judge"]["informativeness"]}
        for one in ratings
    ]
    drawn_ones = sorted(ratings, key=lambda one: hash_of(one["id"]))[:240]
    lines += [
        {
            "id": one["id"],
            **about_it,
            "rater": "people",
            "value": (one["human"]["informativeness"] - 1) / 5,
            "drawn_with": 240 / every,
        }
        for one in drawn_ones
    ]
    files = results_file(tmp_path, rows, "sfhot.jsonl"), results_file(tmp_path, lines)
    summary, _status = imports(*files, "published")
    assert summary["refused"] == []
    document = report_document(Run.objects.get(pk=summary["run"]))
    (agreement,), (corrected,) = document["judges"], document["corrected"]
    assert agreement["bias_low"] > 0
    assert (round(agreement["spearman"], 2), agreement["kappa"], agreement["kappa_weighted"]) == (
        0.25,
        None,
        None,
    )
    everybody = sum((one["human"]["informativeness"] - 1) / 5 for one in ratings) / every
    assert (corrected["refused"], corrected["labelled"], corrected["judged"]) == (None, 240, every - 240)
    assert corrected["ci_low"] < everybody < corrected["ci_high"]
    assert abs(corrected["value"] - everybody) < abs(corrected["judge_mean"] - everybody)


def hash_of(number: int) -> int:
    """A fixed random order."""
    return number * 2654435761 % 2**32
