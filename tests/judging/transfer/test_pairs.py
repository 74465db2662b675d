"""Judges' comparisons of candidates from a results file, in both orders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalsite.accounts.models import Project
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.management.command_line import upload
from judging.records.models import Run
from judging.reports.services import report_document
from judging.transfer.export.results import results_lines
from tests.judging.importing import imports, results_file, verdict
from tests.judging.working import work
from tests.make import a_comparison, a_run, a_version
from tests.real_data import real_data

pytestmark = pytest.mark.django_db(transaction=True)
METHODS = ("Vanilla",)
JUDGE = "ChatGPT"


def orders(first: str, second: str, **more: Any) -> list[dict[str, Any]]:
    """The lines of a judge's verdicts on the first row with each answer shown first."""
    pair = {"model": "alpha", "other_model": "beta", "judge": "J", **more}
    return [
        verdict(value=value, shown_first=side, **pair) for side, value in enumerate((first, second), start=1)
    ]


def imported_report(project: Project, folder: Path, lines: Sequence[dict[str, Any]]) -> tuple[Any, Any]:
    summary, _status = imports(a_version(project, 3), results_file(folder, lines))
    return summary, report_document(Run.objects.get(pk=summary["run"]))


def test_orders_that_agree_settle_a_pair(project: Project, tmp_path: Path) -> None:
    summary, document = imported_report(project, tmp_path, orders("A>>B", "A>B"))
    assert (summary["judgements"], summary["unsettled"]) == (2, 0)
    (entry,) = document["side_by_side"]
    assert (entry["candidates"]["alpha"]["wins"], entry["steps"]["A>B"]) == (1, 1)


def test_orders_that_disagree_leave_a_pair_unsettled(project: Project, tmp_path: Path) -> None:
    summary, document = imported_report(project, tmp_path, orders("A>B", "B>A"))
    assert (summary["judgements"], summary["scored"], summary["unsettled"]) == (2, 0, 1)
    (entry,) = document["side_by_side"]
    alpha = entry["candidates"]["alpha"]
    assert (alpha["comparisons"], alpha["ties"], alpha["unsettled"]) == (1, 0, 1)
    assert document["candidates"]["alpha"]["score"]["unsettled"] == 1


def test_both_judgements_of_an_unsettled_pair_are_found_as_unsettled(
    project: Project, tmp_path: Path
) -> None:
    summary, _status = imports(a_version(project, 3), results_file(tmp_path, orders("A>B", "B>A")))
    run = Run.objects.get(pk=summary["run"])
    assert (run.scored, run.unsettled) == (0, 2)
    unsettled = run.judgements.filter(state="unsettled").order_by("position")
    assert [judgement.detail for judgement in unsettled] == ["A>B", "B>A"]


def test_an_unsettled_pair_is_exported_as_it_came(project: Project, tmp_path: Path) -> None:
    lines = orders("A>B", "B>A")
    summary, _status = imports(a_version(project, 3), results_file(tmp_path, lines))
    run = Run.objects.get(pk=summary["run"])
    exported = [json.loads(line) for line in results_lines(run)]
    assert [(line["value"], line["shown_first"]) for line in exported] == [("A>B", 1), ("B>A", 2)]
    assert all("state" not in line for line in exported)


def test_the_second_order_may_come_later_and_again(project: Project, tmp_path: Path) -> None:
    version, lines = a_version(project, 3), orders("A>B", "B>A")
    imports(version, results_file(tmp_path, lines[:1]))
    for _twice in range(2):
        summary, _status = imports(version, results_file(tmp_path, lines))
        assert (summary["judgements"], summary["scored"], summary["unsettled"]) == (2, 0, 1)
        assert summary["refused"] == []


def test_the_models_may_be_named_in_either_order(project: Project, tmp_path: Path) -> None:
    first, _ = orders("A>B", "A>B")
    turned = first | {"model": "beta", "other_model": "alpha", "value": "B>A", "shown_first": 1}
    summary, document = imported_report(project, tmp_path, [first, turned])
    assert summary["unsettled"] == 0
    assert document["side_by_side"][0]["candidates"]["alpha"]["wins"] == 1


def test_comparisons_with_the_reference_are_never_unsettled(project: Project, tmp_path: Path) -> None:
    line = orders("A>B", "B>A")[0] | {"other_model": "@reference", "value": None, "state": "unsettled"}
    summary, _status = imports(a_version(project, 3), results_file(tmp_path, [line]))
    assert [entry["code"] for entry in summary["refused"]] == ["unsettled_alone"]


def test_an_unsettled_line_is_counted(project: Project, tmp_path: Path) -> None:
    line = verdict(model="alpha", other_model="beta", judge="J", value=None, state="unsettled")
    summary, document = imported_report(project, tmp_path, [line])
    assert (summary["unsettled"], summary["judgements"]) == (1, 1)
    assert document["side_by_side"][0]["candidates"]["beta"]["unsettled"] == 1


def published() -> list[dict[str, Any]]:
    lines = real_data("llmbar_verdicts_dev.jsonl").read_text().splitlines()
    verdicts = [json.loads(line) for line in lines]
    return [entry for entry in verdicts if entry["judge"] == JUDGE and entry["method"] in METHODS]


def as_results(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The results-file lines of a published verdict, one for each order."""
    line = {
        "id": f"{entry['subset']}-{entry['item']}",
        "model": "output_1",
        "other_model": "output_2",
        "metric": entry["method"],
        "judge": entry["judge"],
    }
    values = {"1": {"value": "A>B"}, "2": {"value": "B>A"}, None: {"value": None, "state": "unparsed"}}
    return [
        line | values[entry[winner]] | {"shown_first": side}
        for side, winner in enumerate(("winner_ab", "winner_ba"), start=1)
    ]


def test_published_verdicts_and_a_judge_that_replays_them_give_the_same_report(
    project: Project, tmp_path: Path
) -> None:
    rows, verdicts = real_data("llmbar_pairs_dev.jsonl"), published()
    first_answers = {
        row["id"]: row["model_outputs"][0]["responses"][0]["content"]
        for row in map(json.loads, rows.read_text().splitlines())
    }
    said = {(entry["method"], f"{entry['subset']}-{entry['item']}"): entry for entry in verdicts}

    def replayed(request: Received) -> str:
        method, row, answer = request.prompt.split("\n", 2)
        first = answer == first_answers[row]
        winner = said[method, row]["winner_ab" if first else "winner_ba"]
        return "hm" if winner is None else "[[A>B]]" if (winner == "1") == first else "[[B>A]]"

    version = upload(project, rows, "llmbar")
    lines = [line for entry in verdicts for line in as_results(entry)]
    summary, _status = imports(version, results_file(tmp_path, lines))
    with ScriptedJudge(reply=replayed) as judge:
        template = "{{ data.id }}\n{{ a.content }}"
        metrics = [
            a_comparison(judge.url, name=method, template=f"{method}\n{template}") for method in METHODS
        ]
        metrics = [_judged_by(metric, JUDGE) for metric in metrics]
        run = work(a_run(version, *metrics))
    imported, replay = (report_document(each) for each in (Run.objects.get(pk=summary["run"]), run))
    assert summary["refused"] == []
    assert run.unsettled == summary["unsettled"] > 0
    for section in ("side_by_side", "order", "candidates"):
        assert imported[section] == replay[section]


def _judged_by(metric: Any, name: str) -> Any:
    return msgspec.structs.replace(
        metric, judges=tuple(msgspec.structs.replace(judge, name=name) for judge in metric.judges)
    )
