"""Make the site of a release that later ones upgrade in tests/upgrade: `python -m tools.release_fixture FOLDER`.

Run once with the code of a release, on a machine with PostgreSQL: DATABASE_URL must name an empty database. Writes

- site.tar.gz: DATA_DIR of a finished sample project, with its SQLite database,
- database.sql.gz: the same rows in PostgreSQL's tables of that release,
- report.json, results.jsonl, metrics.yaml: what the release's commands say about it.

Derived results and limits are left out: every release computes them again.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

RUN, METRIC = "Sample evaluation", "Quality"
LEFT_OUT = ("evalsite.Derived", "evalsite.Job", "evalsite.WorkerProcess", "judging.EndpointLoad")
FOR_PSQL = (b"\\restrict", b"\\unrestrict")  # no SQL
KEPT_FILES = ("evalsite.sqlite3", "uploads", "keys")


def main(folder: Path) -> None:
    server = os.environ.pop("DATABASE_URL")
    with tempfile.TemporaryDirectory() as data_dir:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "evalsite.settings", "DATA_DIR": data_dir}
        import django

        django.setup()
        from evalsite.storage.data_dir import prepare

        prepare()
        fill()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_text(output("report", RUN, "--json"))
        output("export", RUN, "--format", "results", "--out", str(folder / "results.jsonl"))
        (folder / "metrics.yaml").write_text(output("export_metrics", METRIC))
        forget_derived()
        rows = output(
            "dumpdata", "--format", "xml", "--exclude", "contenttypes", "--exclude", "auth.permission"
        )
        pack(Path(data_dir), folder / "site.tar.gz")
        dump(rows, server, folder / "database.sql.gz")


def fill() -> None:
    """A run judged twice, with overrides, a comment and a tag, and an evaluation whose pairs were rated."""
    from evalsite.accounts.services import local_administrator_create
    from judging.core.judges.demo import DemoJudge
    from judging.core.judges.scripted import ScriptedJudge
    from judging.engine import run_worker
    from judging.records.models import Run
    from judging.sample import SAMPLES, make
    from judging.sample_files import written_replies
    from judging.sample_people import add_task

    administrator = local_administrator_create()
    with ScriptedJudge(DemoJudge(written_replies())) as judge:
        make(SAMPLES[0], administrator, judge.url)
        add_task(SAMPLES[0])
        run = Run.objects.get(name=RUN)

        def work() -> None:
            run_worker.work("release_fixture:1:1", stop=threading.Event(), only=run.pk)

        work()
        review(run.pk, work)
    rate(administrator.pk)


def review(run_pk: int, work: Callable[[], None]) -> None:
    """Override two judgements, one of them before all are re-judged; comment on one and tag it."""
    from evalsite.accounts.models import User
    from judging.filters.judgement_filter import Filters
    from judging.records.models import Run
    from judging.records.overrides import override_add
    from judging.runs.rerun.rejudge import run_rejudge
    from judging.runs.rerun.selection import Selection
    from judging.teamwork.comments import comment_add
    from judging.teamwork.marks import Change, change_one

    run, user = Run.objects.get(pk=run_pk), User.objects.get()
    early, late = run.judgements.filter(run_metric__name=METRIC).order_by("position")[:2]
    override_add(judgement=early, value=2, reason="Wrong date", by=user)
    run_rejudge(run=run, selection=Selection(Filters()), user=user)
    work()
    late = run.judgements.get(response=late.response, run_metric=late.run_metric, current=True)
    override_add(judgement=late, value=5, reason="Right after all", by=user)
    comment_add(judgement=late, text="See the **second** sentence.", by=user)
    change_one(judgement=late, change=Change(kind="tag", name="dates"), by=user)


def rate(user_pk: int) -> None:
    """Rate every pair of the sample's evaluation."""
    from evalsite.accounts.models import User
    from judging.people.models import Evaluation
    from tests.judging.people.make import rate_each

    steps = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
    rate_each(Evaluation.objects.get(), User.objects.get(pk=user_pk), lambda item: steps[item.number % 5])


def forget_derived() -> None:
    from django.apps import apps

    for label in LEFT_OUT:
        apps.get_model(label)._base_manager.all().delete()


def pack(data_dir: Path, archive: Path) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=DELETE")
        cursor.execute("VACUUM")
    connection.close()
    with tarfile.open(archive, "w:gz") as packed:
        for name in KEPT_FILES:
            packed.add(data_dir / name, arcname=name)


def dump(rows: str, database_url: str, path: Path) -> None:
    """Load the rows into PostgreSQL's tables of this release and write all of it as SQL."""
    with tempfile.TemporaryDirectory() as data_dir:
        environment = {**os.environ, "DATABASE_URL": database_url, "DATA_DIR": data_dir}
        file = Path(data_dir) / "rows.xml"
        file.write_text(rows)
        output("migrate", environment=environment)
        output("loaddata", str(file), environment=environment)
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", database_url]
    sql = subprocess.run(command, check=True, capture_output=True).stdout
    statements = (line for line in sql.splitlines(keepends=True) if not line.startswith(FOR_PSQL))
    path.write_bytes(gzip.compress(b"".join(statements), mtime=0))


def output(*arguments: str, environment: dict[str, str] | None = None) -> str:
    from evalsite.supervisor import manage

    done = subprocess.run(manage(*arguments), env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
