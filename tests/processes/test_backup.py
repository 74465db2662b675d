"""A backup taken during a run and restored elsewhere has the same figures, and the run continues to its end."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from evalsite.supervisor import manage
from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.records.models import Run
from judging.reports.services import report_document
from tests.commands import command
from tests.make import a_metric, a_project, a_run, a_version
from tests.processes.conftest import Processes, wait_until

pytestmark = pytest.mark.processes
COUNTS = "SELECT scored, no_score, unparsed, errors, calls FROM judging_run"
STORED = "SELECT COUNT(*) FROM judging_judgement WHERE state = 'scored'"


def backup(processes: Processes, folder: Path) -> None:
    subprocess.run(manage("backup", str(folder)), env=processes.environment, check=True, capture_output=True)


@contextmanager
def elsewhere(processes: Processes, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a site with a DATA_DIR and a database of its own, both empty."""
    environment = {**processes.environment, "DATA_DIR": str(tmp_path / "elsewhere")}
    if connection.vendor != "postgresql":
        yield environment
        return
    base = os.environ["DATABASE_URL"].rpartition("/")[0]
    name = f"{connection.settings_dict['NAME']}_restored"
    administer = ["psql", "-qd", f"{base}/postgres", "-c"]
    drop = [*administer, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)']
    subprocess.run(drop, check=True)  # left over from a killed test
    subprocess.run([*administer, f'CREATE DATABASE "{name}"'], check=True)
    yield {**environment, "DATABASE_URL": f"{base}/{name}"}
    subprocess.run(drop, check=True)


@contextmanager
def restored(processes: Processes, folder: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a site restored from the backup."""
    with elsewhere(processes, tmp_path) as environment:
        subprocess.run(manage("restore", str(folder)), env=environment, check=True, capture_output=True)
        yield environment


def report(environment: dict[str, str], name: str) -> dict[str, object]:
    done = subprocess.run(
        manage("report", name, "--json"), env=environment, check=True, capture_output=True, text=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_finished_run_has_the_same_figures_elsewhere(processes: Processes, tmp_path: Path) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]")) as judge:
        run = a_run(a_version(a_project(), rows=30), a_metric(judge.url), name="whole")
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: Run.objects.get(pk=run.pk).ended, 60)
    backup(processes, tmp_path / "backup")
    with restored(processes, tmp_path / "backup", tmp_path) as environment:
        assert report(environment, "whole") == json.loads(
            json.dumps(report_document(Run.objects.get(pk=run.pk)))
        )


@pytest.mark.skipif(connection.vendor != "sqlite", reason="one file, on this database only")
def test_a_backup_while_a_run_writes_is_of_one_moment(processes: Processes, tmp_path: Path) -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=2.0)) as judge:
        run = a_run(a_version(a_project(), rows=800), a_metric(judge.url))
        processes.start("worker", "--queue", "runs")
        wait_until(lambda: Run.objects.get(pk=run.pk).done > 60, 60)
        backup(processes, tmp_path / "backup")
        assert not Run.objects.get(pk=run.pk).ended
    with sqlite3.connect(tmp_path / "backup" / "evalsite.sqlite3") as copy:
        scored, *_, calls = copy.execute(COUNTS).fetchone()
        assert copy.execute(STORED).fetchone() == (scored,)
        assert copy.execute("SELECT COUNT(*) FROM judging_judgereply").fetchone() == (calls,) == (scored,)


def refused(environment: dict[str, str], *command: str) -> str:
    """What a command that must fail says."""
    done = subprocess.run(manage(*command), env=environment, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def test_uploads_beside_an_empty_database_are_no_site(processes: Processes, tmp_path: Path) -> None:
    with elsewhere(processes, tmp_path) as environment:
        uploads = tmp_path / "elsewhere" / "uploads"
        uploads.mkdir(parents=True)
        (uploads / "a").touch()
        assert "the database is empty" in refused(environment, "worker")


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="constraints can be missing on this database only"
)
def test_tables_that_were_restored_without_constraints_are_no_site(
    processes: Processes, tmp_path: Path
) -> None:
    backup(processes, tmp_path / "backup")
    with elsewhere(processes, tmp_path) as environment:
        dump = str(tmp_path / "backup" / "database.dump")
        subprocess.run(
            [
                "pg_restore",
                "--no-owner",
                "--section=pre-data",
                "--section=data",
                "-d",
                environment["DATABASE_URL"],
                dump,
            ],
            check=True,
        )
        said = refused(environment, "worker")
        assert "constraints and indexes of the database are missing" in said


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    done = command("backup", str(tmp_path))
    assert done.returncode == 2
    assert "already exists" in done.stderr
