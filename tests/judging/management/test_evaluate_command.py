"""`manage.py evaluate` without a process of its own, which takes a second of processor time."""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.utils import timezone

from evalsite.accounts.models import Project
from judging.core.judges.scripted import ScriptedJudge
from judging.core.licensing import definition_hash
from judging.core.metric_definition import MetricDefinition
from judging.core.requirements import decide, parse_requirement
from judging.core.statistics.licence import licence_figures
from judging.core.statistics.uses import Thresholds
from judging.management.command_line import CannotStart
from judging.management.commands.evaluate import (
    document,
    licensed_elsewhere,
    resume_run,
    start_run,
    work_until_finished,
)
from judging.management.working import judge_until_finished
from judging.metrics.models import MetricVersion
from judging.metrics.services import metric_create
from judging.records.definitions import definitions_now
from judging.records.models import Run, RunState
from judging.trust.models import Licence
from tests import mtbench
from tests.judging.core.metrics_example import write_example
from tests.judging.evaluate_files import write_metrics, write_rows
from tests.make import a_metric, a_run, a_version
from tests.real_data import real_data


@pytest.fixture
def folder(
    transactional_db: None, tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A DATA_DIR to evaluate in, with the keys set. The run's threads have their own database connections."""
    settings.DATA_DIR = tmp_path
    for name in ("JUDGE_KEY", "QWEN_KEY"):
        monkeypatch.setenv(name, "k-123456")
    return tmp_path


def evaluated(run: Run, out: Path) -> dict[str, Any]:
    """Judge a run to its end; return the command's JSON document."""
    return document(*work_until_finished(run, out, threading.Event()))


def test_a_key_that_is_not_set_is_named_before_anything_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGE_KEY")
    with pytest.raises(CannotStart, match="JUDGE_KEY is not set"):
        start_run(write_rows(folder, 2), write_metrics(folder, "http://127.0.0.1:9"), "")


def test_a_finished_run_that_is_resumed_asks_nothing_and_has_the_same_result(folder: Path) -> None:
    with ScriptedJudge(reply="Score: [[8]]") as judge:
        found = evaluated(start_run(write_rows(folder, 2), write_metrics(folder, judge.url), ""), folder)
        assert evaluated(resume_run(str(found["run"])), folder) == found
        assert len(judge.requests) == found["scored"] == 2


def test_a_run_that_has_ended_is_reported_without_a_wait(folder: Path) -> None:
    waits: list[float | None] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return super().wait(timeout)

    with ScriptedJudge(reply="Score: [[8]]") as judge:
        run = start_run(write_rows(folder, 1), write_metrics(folder, judge.url), "")
        assert judge_until_finished(run, Stop()).state == RunState.FINISHED
    assert waits == []


def test_of_two_runs_of_one_name_the_newest_is_resumed(folder: Path, project: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    for one in (project, other):
        newest = a_run(a_version(one), a_metric("http://127.0.0.1:9"), name="nightly")
    Run.objects.update(state=RunState.FINISHED)
    assert resume_run("nightly") == newest


def test_a_licence_counts_in_the_project_that_is_named(folder: Path, project: Project) -> None:
    with ScriptedJudge(reply="Score: [[8]]") as judge:
        files = write_rows(folder, 1), write_metrics(folder, judge.url)
        elsewhere = start_run(*files, "")
        evaluated(elsewhere, folder)
        (definition,) = definitions_now(elsewhere).values()
        a_licence(metric_create(project=project, definition=definition, user=None).versions.get(), definition)
        (told,) = licensed_elsewhere(elsewhere, ["licence"])
        assert (told.rpartition(" ")[2], licensed_elsewhere(elsewhere, ["alpha quality >= 1"])) == (
            "physics\n",
            [],
        )
        report = evaluated(start_run(*files, "", project=project), folder)["report"]
    decision = decide(parse_requirement("licence"), report)
    assert (elsewhere.project.slug, decision.verdict) == ("command-line", "met")


def a_licence(version: MetricVersion, definition: MetricDefinition) -> Licence:
    """One that holds, for exploring."""
    people = np.tile([4.0, 8.0], 10)
    figures = licence_figures(people, people, np.arange(20), "ordered")
    return Licence.objects.create(
        metric_version=version,
        definition_hash=definition_hash(definition),
        judge="m",
        use="exploring",
        opening_number=1,
        figures=asdict(figures),
        answers=[[str(row), "alpha", 1, value, value] for row, value in enumerate(people)],
        thresholds=asdict(Thresholds()),
        tier="one",
        labels_before=False,
        dataset_name="x",
        dataset_version=1,
        opened_at=timezone.now(),
    )


def test_a_run_that_does_not_exist_is_not_resumed(folder: Path) -> None:
    with pytest.raises(CannotStart, match="no run called nightly"):
        resume_run("nightly")


def test_published_verdicts_give_the_published_means(folder: Path) -> None:
    published = mtbench.verdicts()
    rows = mtbench.rows_that_name_their_model(folder / "mtbench.jsonl")
    with ScriptedJudge(reply=mtbench.judge(published)) as judge:
        found = evaluated(start_run(rows, write_metrics(folder, judge.url, mtbench.TEMPLATE), ""), folder)
    means = {name: metrics["quality"]["mean"] for name, metrics in found["report"]["candidates"].items()}
    assert means == pytest.approx(mtbench.published_means(published), abs=0.0005)


def test_arena_hard_is_judged_whole(folder: Path) -> None:
    with ScriptedJudge(reply="Score: [[8]]") as judge:
        upload = real_data("arena_hard_v01_upload.jsonl")
        found = evaluated(start_run(upload, write_metrics(folder, judge.url), ""), folder)
    assert (found["judgements"], found["scored"]) == (1500, 1500)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_documented_example_has_ten_lines_and_runs_as_printed(folder: Path, language: str) -> None:
    metrics = write_example(folder, language, first=True)
    assert len(metrics.read_text().splitlines()) <= 10
    document = evaluated(start_run(folder / "answers.jsonl", metrics, ""), folder)
    assert (document["scored"], document["report"]["candidates"]["llama3"]["exact"]["mean"]) == (1, 5)


def test_a_script_with_a_misnamed_parameter_says_once_which_was_meant(folder: Path) -> None:
    metrics = write_example(folder, first=True)
    script = '    - {type: PREPROCESS, file_content: "def preprocess(data, response): pass"}\n'
    metrics.write_text(metrics.read_text().replace("    pipeline:\n", f"    pipeline:\n{script}"))
    with pytest.raises(CannotStart) as refusal:
        start_run(folder / "answers.jsonl", metrics, "")
    assert "unknown parameter 'response'; did you mean 'resp'?" in str(refusal.value)
    assert str(refusal.value).count("preprocess") == 1


def test_the_documented_example_of_a_metrics_file_runs_as_it_is_written(folder: Path) -> None:
    metrics = write_example(folder)
    with ScriptedJudge(reply="Good. [[A=B]] Score: [[4]]", api_key="k-123456") as judge:
        metrics.write_text(metrics.read_text().replace("http://127.0.0.1:8000/v1", judge.url))
        found = evaluated(start_run(folder / "rows.jsonl", metrics, ""), folder)
        uploaded = [one.prompt for one in judge.requests if "Answer: It is 2.\nRate" in one.prompt]
    # The same reply to all: it states no verdict of the two metrics that ask for words.
    assert (found["judgements"], found["scored"], found["unparsed"]) == (21, 15, 6)
    means = {name: cell["mean"] for name, cell in found["report"]["candidates"]["qwen3"].items()}
    words = dict.fromkeys(("resolved", "faithfulness"))
    assert means == {"correctness": 4, "judges": 4, "comparison": 3, "halves": 4, "rules": 4, **words}
    assert len(uploaded) == 1
