"""Import times relative to a bare json.loads loop over the same file, in one process.

python -m tools.bench.importing FILE.jsonl…    the ratios for these files

Uses SQLite in a temporary folder, and a temporary database on PostgreSQL if a server is available (DATABASE_URL, else
on this machine). The PostgreSQL server's processor time is not counted, but its elapsed time is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tools.bench import help_if_asked
from tools.bench.engine import ROOT, Figure
from tools.bench.reading_rows import ordinary, write_rows

LOCAL = "postgres://postgres@127.0.0.1:5432/postgres"
ROWS = 40_000
MOST_RATIO = 4.5
MEASURE = """
import sys, json, time, django; django.setup()
from pathlib import Path
from statistics import median
from evalsite.storage import data_dir; data_dir.prepare()
from datasets.importing.worker import import_version
from datasets.models import Dataset, Version
from evalsite.accounts.models import Project
from tools.bench.reading import bare

path, rounds = Path(sys.argv[1]).resolve(), 7
dataset = Dataset.objects.create(project=Project.objects.create(slug="bench", name="bench"), name="bench")

def imported(path):
    number = dataset.versions.count() + 1
    version = Version.objects.create(dataset=dataset, number=number, stored_as=str(path), size=path.stat().st_size)
    import_version(version.pk, "bench:1:1")
    version.refresh_from_db()
    assert version.state == "ready" and version.valid_rows, version.problem

def took(task):
    cpu, wall = time.process_time(), time.perf_counter()
    task(path)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}

found = []
for _ in range(rounds):
    before, whole, after = took(bare), took(imported), took(bare)
    found.append({kind: 2 * whole[kind] / (before[kind] + after[kind]) for kind in whole} | {"seconds": whole["wall"]})
print(json.dumps({kind: median(one[kind] for one in found) for kind in found[0]}))
"""


def ratios(path: Path, database_url: str) -> dict[str, float]:
    """Return {"cpu", "wall", "seconds"}: ratios to the bare loops just before and after, and elapsed seconds.

    Each value is the median of seven rounds.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "DATA_DIR": folder,
            "DATABASE_URL": database_url,
            "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        }
        command = [sys.executable, "-c", MEASURE, str(path)]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    return dict(json.loads(done.stdout.splitlines()[-1]))


@contextmanager
def postgresql() -> Iterator[str | None]:
    """Create a temporary database and yield its URL; yield None if no server responds."""
    parts = urlsplit(os.environ.get("DATABASE_URL") or LOCAL)
    name = f"bench_{os.getpid()}"
    try:
        server = psycopg.connect(urlunsplit(parts), autocommit=True, connect_timeout=3)
    except psycopg.OperationalError:
        yield None
        return
    with server:
        server.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlunsplit(parts._replace(path=f"/{name}"))
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def importing_figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        write_rows(path, ordinary, ROWS)
        for database, found in _both(path):
            detail = f"{ROWS:,} rows in {found['seconds']:.1f} s"
            for kind, time in (("cpu", "processor"), ("wall", "wall")):
                name = f"import of judge-only rows of 1 KB into {database}, {time} time to bare json.loads"
                yield Figure(name, found[kind], f"<= {MOST_RATIO}", found[kind] <= MOST_RATIO, detail)


def _both(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    yield "SQLite", ratios(path, "")
    with postgresql() as url:
        if url:
            yield "PostgreSQL", ratios(path, url)


def main() -> None:
    help_if_asked(__doc__)
    for name in sys.argv[1:]:
        for database, found in _both(Path(name)):
            print(f"{name}, {database}:", ", ".join(f"{key} {value:.2f}" for key, value in found.items()))


if __name__ == "__main__":
    main()
