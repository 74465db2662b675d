"""Import times relative to a bare json.loads loop over the same file, in one process.

python -m tools.bench.importing FILE.jsonl…    the ratios for these files

Uses SQLite in a temporary folder, and a temporary database on PostgreSQL if a server is available (DATABASE_URL, else
on this machine). The PostgreSQL server's processor time is not counted, but its elapsed time is.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit, urlunsplit

import psycopg

from tools.bench import Figure, command_line, python
from tools.bench.reading import bare
from tools.bench.reading_rows import ordinary, write_rows
from tools.bench.stored_runs import open_database

LOCAL = "postgres://postgres@127.0.0.1:5432/postgres"
ROWS = 40_000
MOST_RATIO = 4.5
ROUNDS = 7


def ratios(path: Path, database_url: str) -> dict[str, float]:
    """`measured` in a process of its own, with an empty DATA_DIR and this database."""
    with tempfile.TemporaryDirectory() as folder:
        command = ("-m", "tools.bench.importing", "--here", str(path))
        return dict(json.loads(python(*command, DATA_DIR=folder, DATABASE_URL=database_url)))


def measured(path: Path) -> dict[str, float]:
    """Return {"cpu", "wall", "seconds"}: ratios to the bare loops just before and after, and elapsed seconds.

    Each value is the median of seven rounds.
    """
    open_database()
    from datasets.importing.worker import import_version
    from datasets.models import Dataset, Version
    from evalsite.accounts.models import Project
    from evalsite.tasks import jobs

    project = Project.objects.create(slug="bench", name="bench")
    dataset = Dataset.objects.create(project=project, name="bench")

    def imported(path: Path) -> None:
        number, size = dataset.versions.count() + 1, path.stat().st_size
        version = Version.objects.create(dataset=dataset, number=number, stored_as=str(path), size=size)
        jobs.request("read_version", version.pk, here=True)
        import_version(version.pk)
        version.refresh_from_db()
        assert version.state == "ready", version.problem
        assert version.valid_rows, version.problem

    found = []
    for _ in range(ROUNDS):
        before, whole, after = (timed(task, path) for task in (bare, imported, bare))
        ratio = {kind: 2 * whole[kind] / (before[kind] + after[kind]) for kind in whole}
        found.append(ratio | {"seconds": whole["wall"]})
    return {kind: median(one[kind] for one in found) for kind in found[0]}


def timed(task: Callable[[Path], None], path: Path) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    task(path)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


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
                name = f"import of judge-only rows of 1 KB into {database}, {time} time relative to bare json.loads"
                yield Figure.at_most(name, found[kind], MOST_RATIO, detail)


def _both(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    yield "SQLite", ratios(path, "")
    with postgresql() as url:
        if url:
            yield "PostgreSQL", ratios(path, url)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--here", action="store_true", help="only into this process's database, as JSON")
    chosen = parser.parse_args()
    for path in chosen.files:
        if chosen.here:
            print(json.dumps(measured(path.resolve())))
            continue
        for database, found in _both(path):
            print(f"{path}, {database}:", ", ".join(f"{key} {value:.2f}" for key, value in found.items()))


if __name__ == "__main__":
    main()
