"""Data sets and runs written straight to the database, for the benchmarks of pages, reports and workers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

ROWS_A_BATCH = 5_000


def open_database(folder: str = "") -> None:
    """Connect this process to DATABASE_URL, or to SQLite in `folder`, DATA_DIR or a temporary folder."""
    if folder or "DATA_DIR" not in os.environ:
        os.environ["DATA_DIR"] = folder or tempfile.mkdtemp(prefix="evalsite-bench-")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    import django

    django.setup()
    from evalsite.storage import data_dir

    data_dir.prepare()


def signed_in_client() -> Any:
    """A test client of a site administrator."""
    from django.test import Client

    from evalsite.accounts.models import User

    user, _ = User.objects.get_or_create(username="admin", defaults={"is_superuser": True, "is_staff": True})
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(user)
    return client


def short_row(line: int) -> str:
    return f'{{"messages": [{{"role": "user", "content": "question {line}"}}]}}'


def short_answer(line: int, _model: str) -> str:
    return f'{{"content": "answer {line}"}}'


def stored_version(
    name: str,
    rows: int,
    models: Sequence[str],
    *,
    raw: Callable[[int], str] = short_row,
    answer: Callable[[int, str], str] = short_answer,
    project: str = "bench",
) -> Any:
    """A version with an answer of each model to each row, `raw` of a line, and `answer` of a line and a model; in the
    project of this address."""
    from datasets.models import Candidate, Dataset, Response, Row, Version
    from evalsite.accounts.models import Project

    owner, _ = Project.objects.get_or_create(slug=project, defaults={"name": project})
    dataset = Dataset.objects.create(project=owner, name=name)
    ready = {"state": "ready", "format": "judge_only", "rows": rows, "valid_rows": rows}
    version = Version.objects.create(dataset=dataset, number=1, **ready)
    candidates = [
        Candidate.objects.create(version=version, name=model, rows=rows, responses=rows) for model in models
    ]
    for start in range(1, rows + 1, ROWS_A_BATCH):
        lines = range(start, min(rows + 1, start + ROWS_A_BATCH))
        made = Row.objects.bulk_create(
            Row(version=version, line=line, valid=True, raw=raw(line)) for line in lines
        )
        Response.objects.bulk_create(
            Response(row=row, candidate=candidate, number=1, raw=answer(row.line, candidate.name))
            for row in made
            for candidate in candidates
        )
    return version
