"""A worker is killed while building a search index: the next one continues, and every row is found once."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest
from django.conf import LazySettings

from datasets.importing.worker import import_version
from datasets.models import SearchIndex, Version
from datasets.services import dataset_upload
from datasets.versions import search
from datasets.views import row_browser
from datasets.views.row_browser import BrowserFilter
from tests.datasets.conftest import numbered
from tests.make import a_project
from tests.processes.conftest import Processes, wait_until

ROWS = 40_000
pytestmark = pytest.mark.processes


@pytest.fixture
def version(processes: Processes, settings: LazySettings, tmp_path: Path) -> Version:
    settings.DATA_DIR = tmp_path
    file = io.BytesIO(numbered(ROWS))
    made = dataset_upload(project=a_project(), name="big", file=file, file_name="big.jsonl", user=None)
    import_version(made.pk)
    made.refresh_from_db()
    return made


def built(version: Version) -> int:
    return SearchIndex.objects.filter(pk=version.pk).values_list("rows", flat=True).first() or 0


def test_the_next_worker_goes_on_where_the_killed_one_was(version: Version, processes: Processes) -> None:
    first = processes.start("worker", "--queue", "data")
    wait_until(lambda: built(version) > 2000, 30)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert 2000 < built(version) < ROWS
    processes.start("worker", "--queue", "data")
    wait_until(lambda: search.state_of(version).indexed, 60)
    assert built(version) == ROWS
    page = row_browser.rows_page(version, BrowserFilter(text=f"question {ROWS}"))
    assert [row.line for row in page.rows] == [ROWS]
