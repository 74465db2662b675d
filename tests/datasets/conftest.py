"""Upload files in tests and import them in this process with the real importer."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from datasets.importing.worker import import_version
from datasets.models import Version, VersionState
from datasets.services import dataset_upload
from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold

Upload = Callable[..., Version]


@pytest.fixture(autouse=True)
def _own_data_dir(settings: LazySettings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def jsonl(*rows: Any) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def question(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def answers(**texts: str) -> list[dict[str, Any]]:
    return [{"model_name": name, "responses": [{"content": text}]} for name, text in texts.items()]


def numbered(count: int) -> bytes:
    return jsonl(
        *(question(f"question {n}", model_outputs=answers(alpha=f"answer {n}")) for n in range(1, count + 1))
    )


@pytest.fixture
def upload(project: Project) -> Upload:
    """Store a file as a new version; `read=True` also imports it."""

    def keep(
        content: bytes, *, name: str = "capitals", read: bool = False, user: User | None = None, **more: Any
    ) -> Version:
        options = {"file_name": f"{name}.jsonl", "project": project, **more}
        version = dataset_upload(name=name, file=io.BytesIO(content), user=user, **options)
        if read:
            import_version(version.pk)
            version.refresh_from_db()
        return version

    return keep


def begin_reading(version: Version, owner: str | None = None) -> Hold:
    """Claim a waiting version for a process, as if that read it."""
    hold = jobs.claim("read_version", version.pk, owner=owner)
    assert hold
    Version.objects.filter(pk=version.pk).update(state=VersionState.READING)
    return hold
