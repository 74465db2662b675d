"""A complete evaluation for the command line: upload, judge with a worker in this process, write results."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError

from datasets.importing.worker import import_or_wait
from datasets.models import Candidate, Version
from datasets.services import dataset_upload
from evalsite.accounts.models import Project
from evalsite.tasks import workers
from evalsite.web.numbers import whole
from judging.core.judges.client import RetryPolicy
from judging.core.metrics_file import MetricsFile, MetricsFileError, read_metrics_file
from judging.metrics.transfer import metrics_file_sentences
from judging.reports.services import report_document
from judging.runs.counts import counts_in_force
from judging.runs.export.files import jsonl_lines, write_lines
from judging.runs.models import Run, RunState
from judging.runs.services import ChosenMetric, refuse_broken_scripts, run_create, run_resume
from judging.runs.worker.reconcile import free_dead_leases
from judging.runs.worker.run_worker import work

PROJECT = "command-line"
# A command must end even if its judge is down or its key is wrong; in the browser, a run waits until this is fixed.
PATIENCE = RetryPolicy(max_outage_seconds=20, max_consecutive_failures=None)


class CannotStart(Exception):
    """The run is not possible; the message says why."""


@dataclass(frozen=True, slots=True)
class EvaluatedRun:
    """A run in its current state, and its report."""

    run: Run
    report: dict[str, Any]

    @property
    def ended(self) -> bool:
        return self.run.state == RunState.FINISHED

    def document(self) -> dict[str, Any]:
        """The JSON document (spec: commands, `evaluate --json`)."""
        run, counts = self.run, counts_in_force(self.run)
        return {
            "run": run.pk,
            "judgements": run.total,
            "scored": counts["scored"],
            "no_score": counts["no_score"],
            "unparsed": counts["unparsed"],
            "errors": counts["error"],
            "not_run": counts["not_run"],
            "report": self.report,
        }


def begin(file: Path, metrics_path: Path, name: str) -> Run:
    """Upload and import the file, and create a run for this process only. Raises CannotStart."""
    if name and Run.objects.filter(name=name).exists():
        raise CannotStart(f"There is a run called {name} already; choose another --name, or --resume {name}.")
    asked_for = read_metrics(metrics_path)
    try:
        refuse_broken_scripts(asked_for.metrics)
        project, _ = Project.objects.get_or_create(slug=PROJECT, defaults={"name": "Command line"})
        version = upload(project, file, asked_for.data_name)
        return run_create(
            project=project,
            name=name,
            version=version,
            candidates=list(Candidate.uploaded.filter(version=version).order_by("pk")),
            metrics=[ChosenMetric(metric) for metric in asked_for.metrics],
            asked=asked_for.candidates,
            user=None,
            only_worker=workers.owner(),
        )
    except ValidationError as error:
        raise CannotStart("\n".join(error.messages)) from None


def read_metrics(path: Path) -> MetricsFile:
    """Parse a metrics file. Raises CannotStart with all errors and their lines."""
    try:
        file = read_metrics_file(path.read_text(encoding="utf-8-sig"), path.parent)
    except UnicodeDecodeError:
        raise CannotStart(f"{path} is not UTF-8.") from None
    except MetricsFileError as error:
        raise CannotStart(f"{path}:\n" + "\n".join(metrics_file_sentences(error))) from None
    missing = sorted({name for name in key_names(file) if not os.environ.get(name)})
    if missing:
        raise CannotStart(f"{path}: keys are read from the environment, but {', '.join(missing)} is not set.")
    return file


def key_names(file: MetricsFile) -> set[str]:
    """The environment variables with the API keys of judges and candidates."""
    judges = {judge.api_key_env for metric in file.metrics for judge in metric.judges}
    return (judges | {candidate.api_key_env for candidate in file.candidates}) - {""}


def upload(project: Project, file: Path, label: str) -> Version:
    """Store and import the file in this process. Raises CannotStart if it has invalid rows or cannot be read."""
    with file.open("rb") as stream:
        version = dataset_upload(
            project=project, name=label or file.stem, file=stream, file_name=file.name, user=None
        )
    version = import_or_wait(version.pk, workers.owner())
    if not version.usable:
        why = f"{version.bad_rows} of {version.rows} rows have errors"
        if version.stopped_by:
            why = f"it was not read to its end ({version.stopped_by})"
        if version.is_spread:
            why = "its objects do not stand one on each line"
        raise CannotStart(
            f"{file} cannot be judged: {why} {version.problem}"
            f"(manage.py validate {file} lists them, --fix repairs what can be repaired)."
        )
    return version


def go_on(name_or_id: str) -> Run:
    """Resume a run in this process. Raises CannotStart."""
    run = Run.objects.filter(name=name_or_id).first() or Run.objects.filter(pk=whole(name_or_id) or 0).first()
    if run is None:
        raise CannotStart(f"There is no run called {name_or_id} in this DATA_DIR.")
    if run.state == RunState.FINISHED:
        return run
    if run.only_worker and run.only_worker != workers.owner() and workers.is_alive(run.only_worker):
        raise CannotStart(f"Run {run.name} is being worked on by another process.")
    if not run_resume(run, only_worker=workers.owner()):
        Run.objects.filter(pk=run.pk).update(only_worker=workers.owner())
    free_dead_leases()
    run.refresh_from_db()
    return run


def work_to_the_end(run: Run, out: Path, stop: threading.Event) -> EvaluatedRun:
    """Judge until the run has ended or `stop` is set, then write both files."""
    while not stop.is_set() and not Run.objects.get(pk=run.pk).ended:
        work(workers.owner(), stop=stop, only=run.pk, policy=PATIENCE)
        stop.wait(0.2)
    run = Run.objects.get(pk=run.pk)
    report = report_document(run)
    write_lines(jsonl_lines(run), out / "judgements.jsonl")
    write_whole(out / "report.json", json.dumps(report, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    return EvaluatedRun(run, report)


def write_whole(path: Path, text: str) -> None:
    """Write the file atomically, so that readers see the old or the new content."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
