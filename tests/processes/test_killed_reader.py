"""A worker dies during an import: the next one starts over, and no row is lost or duplicated."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest
from django.conf import LazySettings

from datasets.models import Response, Row, Version, VersionState
from datasets.services import dataset_upload
from tests.datasets.conftest import numbered
from tests.make import a_project
from tests.processes.conftest import Processes, wait_until

ROWS = 60_000
pytestmark = pytest.mark.processes


@pytest.fixture
def waiting(processes: Processes, settings: LazySettings, tmp_path: Path) -> Version:
    settings.DATA_DIR = tmp_path
    file = io.BytesIO(numbered(ROWS))
    return dataset_upload(project=a_project(), name="big", file=file, file_name="big.jsonl", user=None)


def state(version: Version) -> str:
    return str(Version.objects.values_list("state", flat=True).get(pk=version.pk))


@pytest.mark.parametrize(
    ("sent", "left"), [(signal.SIGKILL, VersionState.READING), (signal.SIGTERM, VersionState.WAITING)]
)
def test_the_next_worker_reads_the_file_whole(
    waiting: Version, processes: Processes, sent: signal.Signals, left: str
) -> None:
    first = processes.start("worker", "--queue", "data")
    wait_until(lambda: Version.objects.get(pk=waiting.pk).rows > 2000, 30)
    first.send_signal(sent)
    first.wait()
    assert state(waiting) == left
    processes.start("worker", "--queue", "data")
    wait_until(lambda: state(waiting) == VersionState.READY, 60)
    lines = Row.objects.filter(version=waiting).values_list("line", flat=True)
    assert sorted(lines) == list(range(1, ROWS + 1))
    assert Response.objects.filter(row__version=waiting).count() == ROWS
