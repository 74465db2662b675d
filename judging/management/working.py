"""A run that a command works on until it has ended: its worker, its progress on a terminal, and why it stopped."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from django.db import connection

from evalsite.tasks import workers
from judging.core.judges.client import RetryPolicy
from judging.core.metrics_file import MetricsFile
from judging.engine.run_worker import work
from judging.engine.stopping import stopped_by_endpoint
from judging.management.command_line import CannotStart
from judging.messages import why_down
from judging.records.models import Run

PROGRESS_SECONDS = 1.0
# A command must end even if its judge is down or its key is wrong; in the browser, a run waits until it is stopped.
RETRY_POLICY = RetryPolicy(max_outage_seconds=20, max_consecutive_failures=None)


def refuse_missing_keys(path: Path, file: MetricsFile) -> None:
    """Raise CannotStart if an environment variable with the API key of a judge or candidate is not set."""
    judges = {judge.api_key_env for metric in file.metrics for judge in metric.judges}
    names = (judges | {candidate.api_key_env for candidate in file.candidates}) - {""}
    missing = sorted(name for name in names if not os.environ.get(name))
    if missing:
        raise CannotStart(f"{path}: keys are read from the environment, but {', '.join(missing)} is not set.")


def judge_until_finished(run: Run, stop: threading.Event, policy: RetryPolicy = RETRY_POLICY) -> Run:
    """Judge until the run has ended or was paused, or `stop` is set. Returns the run as stored."""
    run = Run.objects.get(pk=run.pk)
    while not run.is_idle and not stop.is_set():
        work(workers.owner(), stop=stop, only=run.pk, policy=policy)
        run = Run.objects.get(pk=run.pk)
        if not run.is_idle:
            stop.wait(0.2)
    return run


def why_stopped(run: Run) -> str:
    """What stopped a run that nobody stopped: usually a server that is down."""
    if not stopped_by_endpoint(run):
        return ""
    name, _colon, detail = run.problem_detail.partition(": ")
    return f": no answer from {name}. {why_down(run.problem, detail).rstrip('.')}"


class ProgressLine:
    """A progress line on standard error, updated once a second; only on a terminal."""

    def __init__(self, run: Run, *, shown: bool) -> None:
        self.run = run
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._show, daemon=True) if shown else None

    def __enter__(self) -> None:
        if self.thread:
            self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread:
            self.thread.join()
            sys.stderr.write("\n")

    def _show(self) -> None:
        while not self.over.wait(PROGRESS_SECONDS):
            now = Run.objects.get(pk=self.run.pk)
            sys.stderr.write(f"\r{now.done} of {now.total or '?'} judged, {now.errors} errors ")
            sys.stderr.flush()
        connection.close()
