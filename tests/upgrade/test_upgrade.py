"""A site of release 0.1.0 is upgraded and says the same as before. `tools/release_fixture.py` made it, with 0.1.0."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from evalsite.supervisor import manage
from tests.processes.conftest import SETTINGS
from tests.starting import leashed

pytestmark = [pytest.mark.processes, pytest.mark.django_db]
Environment = dict[str, str]
ROOT = Path(__file__).parents[2]
RELEASE = Path(__file__).parent / "v0_1_0"
RUN, METRIC = "Sample evaluation", "Closeness to the reference"
CLOSE = 1e-9  # databases add up in different orders


COMMANDS = """
import django, json, sys
django.setup()
from tests.commands import command
for line in sys.stdin:
    ended = command(*json.loads(line))
    print(json.dumps([ended.returncode, ended.stdout, ended.stderr]), flush=True)
"""


class Site:
    """A process that runs commands on the site of the release, upgraded."""

    def __init__(self, environment: Environment) -> None:
        program = [sys.executable, "-c", COMMANDS]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            leashed(program), env={**environment, "PYTHONPATH": str(ROOT)}, stdin=pipe, stdout=pipe, text=True
        )

    def output(self, *arguments: str) -> str:
        """What the command prints; it must succeed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(arguments), file=self.process.stdin, flush=True)
        status, output, errors = json.loads(self.process.stdout.readline())
        assert status == 0, errors
        return str(output)


@pytest.fixture(scope="module")
def site(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("release")
    environment = {**os.environ, **SETTINGS, "DATA_DIR": str(folder), "DEMO_JUDGE": "0"}
    with tarfile.open(RELEASE / "site.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    with database_of_release(folder, environment):
        migrated = subprocess.run(manage("migrate"), env=environment, capture_output=True, text=True)
        assert migrated.returncode == 0, migrated.stderr
        site = Site(environment)
        yield site
        with site.process:
            site.process.kill()


@contextmanager
def database_of_release(folder: Path, environment: Environment) -> Iterator[None]:
    """On PostgreSQL, a database of its own made from the release's dump."""
    if connection.vendor == "sqlite":
        yield
        return
    (folder / "evalsite.sqlite3").unlink()
    server, _, _ = os.environ["DATABASE_URL"].rpartition("/")
    name = f"{connection.settings_dict['NAME']}_release"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as administration:
        administration.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        administration.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(f"{server}/{name}") as database:
            database.execute(gzip.decompress((RELEASE / "database.sql.gz").read_bytes()))
        environment["DATABASE_URL"] = f"{server}/{name}"
        yield
        administration.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Figures of `before` that differ or are missing in `after`; additional ones in `after` are ignored."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [d for key in before for d in differences(before[key], after.get(key), f"{path}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [d for place, (old, new) in pairs for d in differences(old, new, f"{path}/{place}")]
    same = before == (pytest.approx(after, rel=CLOSE) if isinstance(after, float) else after)
    return [] if same else [f"{path}: {before} → {after}"]


def test_every_figure_of_the_report_is_computed_again_and_the_same(site: Site) -> None:
    before = json.loads((RELEASE / "report.json").read_text())
    assert before["candidates"]["heron-large"][METRIC]["mean"] == 8.421875
    assert differences(before, json.loads(site.output("report", RUN, "--json"))) == []


def verdicts(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_export_of_the_run_is_the_same(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    site.output("export", RUN, "--format", "results", "--out", str(path))
    assert len(verdicts(path)) == 142
    assert verdicts(path) == verdicts(RELEASE / "results.jsonl")


def test_the_metrics_file_is_the_same_and_can_be_imported(site: Site) -> None:
    path = RELEASE / "metrics.yaml"
    assert site.output("export_metrics", METRIC, "--project", "sample") == path.read_text()
    imported = json.loads(site.output("import_metrics", str(path), "--project", "sample", "--json"))
    assert imported["metrics"] == [{"name": METRIC, "version": 1, "done": "unchanged"}]


def test_results_of_the_release_can_be_imported(site: Site) -> None:
    path = str(RELEASE / "results.jsonl")
    site.output("import_results", "Everyday questions", path, "--name", "Imported")
    means = [
        json.loads(site.output("report", name, "--json"))["candidates"]["wren-small"][METRIC]["mean"]
        for name in (RUN, "Imported")
    ]
    assert means[0] == pytest.approx(means[1], rel=CLOSE)


CONTENTS = """
import json
from django.apps import apps
def rows(label, *fields):
    return [list(map(str, row)) for row in apps.get_model(label).objects.order_by("pk").values_list(*fields)]
print(json.dumps({
    "overrides": rows("judging.Override", "judgement__attempt", "value", "reason", "by__username"),
    "in force": rows("judging.Judgement", "override_value").count(["9"]),
    "comments": rows("judging.Comment", "text", "author__username"),
    "marks": rows("judging.Mark", "kind", "name"),
    "endpoints": rows("judging.Endpoint", "name", "model", "concurrency"),
    "versions": rows("datasets.Version", "number", "state", "rows", "valid_rows"),
    "candidates": rows("datasets.Candidate", "name", "source", "rows", "responses"),
    "ratings": rows("judging.Rating", "kind", "values"),
    "members": rows("accounts.Membership", "user__username", "role"),
}))
"""


RATINGS = ["B>>A", "A>B", "B>A", "A=B", "B>>A", "A>B", "A=B", "A>>B", "B>A", "A>B", "A>>B", "A=B"]
EXPECTED = {
    "overrides": [["1", "2", "Wrong date", "admin"], ["2", "9", "Right after all", "admin"]],
    "in force": 1,
    "comments": [["See the **second** sentence.", "admin"]],
    "marks": [["tag", "dates"]],
    "endpoints": [["Demo judge", "demo-judge", "8"]],
    "versions": [["1", "ready", "32", "32"]],
    "candidates": [["heron-large", "uploaded", "32", "35"], ["wren-small", "uploaded", "32", "35"]],
    "ratings": [["verdict", json.dumps({"0": value})] for value in RATINGS],
    "members": [["admin", "admin"]],
}


def test_what_people_entered_is_as_it_was(site: Site) -> None:
    contents = json.loads(site.output("shell", "--no-imports", "-c", CONTENTS))
    assert contents == EXPECTED


PAGES = """
import json, re
from django.test import Client
from evalsite.accounts.models import User
from judging.records.models import Override
from judging.people.models import Evaluation
client = Client(headers={"host": "localhost"})
client.force_login(User.objects.get())
late = Override.objects.get(value="9").judgement
base = "/p/sample/"
run, evaluation = f"{base}runs/{late.run_id}/", f"{base}evaluations/{Evaluation.objects.get().run_id}/"
paths = [base, run, f"{run}report/", f"{run}judgements/", f"{run}judgements/{late.pk}/", evaluation]
print(json.dumps([[path, client.get(path).status_code] for path in paths]))
text = client.get(f"{run}judgements/{late.pk}/").content.decode()
print(json.dumps([word in text for word in ("Right after all", "<strong>second</strong>", "dates")]))
"""


def test_pages_show_the_run_its_judgements_and_the_evaluation(site: Site) -> None:
    statuses, words = map(json.loads, site.output("shell", "--no-imports", "-c", PAGES).splitlines())
    assert [path for path, status in statuses if status != 200] == []
    assert words == [True, True, True]
