"""Reports of published benchmarks, imported with import_results, match their authors' figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judging.records.models import JudgeReply, Run
from judging.reports.services import report_document
from tests import mtbench
from tests.judging.importing import imports, results_file
from tests.real_data import real_data

pytestmark = pytest.mark.django_db


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in real_data(name).read_text(encoding="utf-8").splitlines()]


def report(data: Path, folder: Path, lines: Iterable[dict[str, Any]]) -> dict[str, Any]:
    summary, status = imports(data, results_file(folder, lines), "published")
    assert (status, summary["refused"]) == (0, [])
    return report_document(Run.objects.get(pk=summary["run"]))


def test_mt_bench_means_are_those_of_the_published_scores(tmp_path: Path) -> None:
    published = mtbench.verdicts()
    lines = [
        {"id": row, "model": model, "judge": "gpt-4", "value": one["score"], "reasoning": one["judgment"]}
        for (row, model), one in published.items()
    ]
    found = report(real_data("mtbench_llama2_upload.jsonl"), tmp_path, lines)
    means = {model: cells["score"]["mean"] for model, cells in found["candidates"].items()}
    assert means == pytest.approx(mtbench.published_means(published))
    assert JudgeReply.objects.exclude(content=None).count() == len(published)


def llmbar_lines() -> Iterator[dict[str, Any]]:
    """GPT-4's verdicts in both orders, and the gold preference as a rater's."""
    pair = {"model": "output_1", "other_model": "output_2", "metric": "better"}
    for row in lines_of("llmbar_pairs_dev.jsonl"):
        value = "A>B" if row["gold_better"] == "output_1" else "B>A"
        yield {"id": row["id"], **pair, "rater": "gold", "value": value}
    for one in lines_of("llmbar_verdicts_dev.jsonl"):
        if (one["judge"], one["method"]) == ("GPT-4", "Vanilla"):
            about = {"id": f"{one['subset']}-{one['item']}", **pair, "judge": "GPT-4"}
            for first, winner in ((1, one["winner_ab"]), (2, one["winner_ba"])):
                value = {"1": "A>B", "2": "B>A"}.get(winner)
                state = {} if value else {"state": "unparsed", "reason": "no_winner"}
                yield {**about, "shown_first": first, "value": value, **state}


def test_llmbar_verdicts_flip_with_the_order_as_often_as_released(tmp_path: Path) -> None:
    found = report(real_data("llmbar_pairs_dev.jsonl"), tmp_path, llmbar_lines())
    given = [
        one
        for one in lines_of("llmbar_verdicts_dev.jsonl")
        if (one["judge"], one["method"]) == ("GPT-4", "Vanilla") and one["winner_ab"] and one["winner_ba"]
    ]
    flips = sum(one["winner_ab"] != one["winner_ba"] for one in given)
    (order,) = found["order"]
    assert (order["judge"], order["pairs"], order["flips"]) == ("GPT-4", len(given), flips)


def test_llmbar_s_gold_preferences_are_people_s_comparisons(tmp_path: Path) -> None:
    found = report(real_data("llmbar_pairs_dev.jsonl"), tmp_path, llmbar_lines())
    people = next(one for one in found["side_by_side"] if one["by"] == "people")
    first = people["candidates"]["output_1"]
    assert (first["comparisons"], first["wins"], first["losses"]) == (138, 67, 71)
    judge = next(one for one in found["side_by_side"] if one["by"] != "people")["candidates"]["output_1"]
    compared = next(one for one in found["judges"] if one["against"] == "people")["items"]
    # Pairs on which the judge's two orders disagree, or of which one names no winner, have no verdict to compare.
    assert compared == 138 - judge["unsettled"] == 125


def of_subset(subset: str) -> Iterator[dict[str, Any]]:
    """LLMBar's lines of one subset; GPT-4's verdicts appear again as those of one judge per order."""
    for line in llmbar_lines():
        if line["id"].startswith(subset):
            yield line
            if "judge" in line:
                yield line | {"judge": f"GPT-4, order {line['shown_first']}"}


@pytest.mark.parametrize(
    ("subset", "items", "right", "alike"),
    [("Adversarial/GPTInst", 92, [78, 81], 87), ("Adversarial/Manual", 46, [35, 39], 38)],
)
def test_gpt_4_agrees_with_llmbar_s_people_as_released(
    tmp_path: Path, subset: str, items: int, right: list[int], alike: int
) -> None:
    """Accuracy in each order (`correct_False`, `correct_True`) and verdicts equal in both orders (`equal`) in the
    released `evaluators/GPT-4/Vanilla/statistics.json`: on GPTInst 86.4 % on average, and 94.6 %."""
    found = report(real_data("llmbar_pairs_dev.jsonl"), tmp_path, of_subset(subset))
    of_people = {one["judge"]: one for one in found["judges"] if one["against"] == "people"}
    exact = [of_people[f"GPT-4, order {first}"]["exact"] for first in (1, 2)]
    assert sorted(exact) == pytest.approx([one / items for one in right])
    (order,) = [one for one in found["order"] if one["judge"] == "GPT-4"]
    assert (order["pairs"], order["pairs"] - order["flips"]) == (items, alike)


@pytest.mark.parametrize(("metric", "published"), [("naturalness", 0.320), ("informativeness", 0.249)])
def test_unieval_agrees_with_people_as_published(tmp_path: Path, metric: str, published: float) -> None:
    """Spearman's correlation on SFHOT (Zhong et al. 2022, table 4)."""
    ratings = lines_of("sfhot_ratings.jsonl")
    rows = [
        {
            "id": one["id"],
            "messages": [{"role": "user", "content": one["source"]}],
            "model_outputs": [{"model_name": "system", "responses": [{"content": one["response"]}]}],
        }
        for one in ratings
    ]
    lines = [
        {"id": one["id"], "model": "system", "metric": metric, **said}
        for one in ratings
        for said in (
            {"rater": "mean of the raters", "value": one["human"][metric]},
            {"judge": "UniEval", "value": one["judge"][metric]},
        )
    ]
    found = report(results_file(tmp_path, rows, "sfhot.jsonl"), tmp_path, lines)
    (judge,) = [one for one in found["judges"] if one["against"] == "people"]
    assert (judge["judge"], judge["items"]) == ("UniEval", 875)
    assert judge["spearman"] == pytest.approx(published, abs=0.0005)
