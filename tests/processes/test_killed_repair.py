"""A worker is killed during a repair: the next one completes the file and leaves no partial files."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest
from django.conf import LazySettings

from datasets.core.repair.apply import Repair
from datasets.importing.worker import import_version
from datasets.models import Row, Version, VersionState
from datasets.services import dataset_upload
from datasets.versions import temp_files
from datasets.versions.repair import version_repair
from tests.datasets.conftest import numbered
from tests.make import a_project
from tests.processes.conftest import Processes, wait_until

ROWS = 8_000
pytestmark = pytest.mark.processes


@pytest.fixture
def waiting(processes: Processes, settings: LazySettings, tmp_path: Path) -> Version:
    """A pending repair of every row of a file."""
    settings.DATA_DIR = tmp_path
    content = numbered(ROWS).replace(b"}\n", b"} // note\n")
    file = io.BytesIO(content)
    parent = dataset_upload(project=a_project(), name="big", file=file, file_name="big.jsonl", user=None)
    import_version(parent.pk)
    parent.refresh_from_db()
    return version_repair(version=parent, repairs=[Repair("strip_comments")], user=None)[0]


def state(version: Version) -> str:
    return str(Version.objects.values_list("state", flat=True).get(pk=version.pk))


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_the_next_worker_completes_the_file(
    waiting: Version, processes: Processes, sent: signal.Signals
) -> None:
    first = processes.start("worker", "--queue", "data")
    wait_until(lambda: bool(temp_files.folders("read_version")), 30)
    first.send_signal(sent)
    first.wait()
    processes.start("worker", "--queue", "data")
    wait_until(lambda: state(waiting) == VersionState.READY, 60)
    assert Row.objects.filter(version=waiting, valid=True).count() == ROWS
    assert waiting.path.read_bytes() == numbered(ROWS)
    assert temp_files.folders("read_version") == {}
