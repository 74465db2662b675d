"""Memory for validating or importing a file does not grow with its rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.datasets.conftest import numbered
from tests.migrated import migrated

ROOT = Path(__file__).parents[2]
FEW, MANY = 10_000, 100_000
MOST_MB = 30
IMPORTED = (10_000, 50_000)
MOST_IMPORTED_MB = 15
pytestmark = pytest.mark.processes


def peak_mb(folder: Path, rows: int) -> float:
    """Peak memory (MB) of `manage.py validate` over a file with `rows` rows."""
    file, usage = folder / f"{rows}.jsonl", folder / "usage.json"
    file.write_bytes(numbered(rows))
    watched = [sys.executable, "-m", "tools.bench.watched", str(usage), sys.executable, "manage.py"]
    environment = {**os.environ, "DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "evalsite.settings"}
    subprocess.run([*watched, "validate", str(file)], cwd=ROOT, env=environment, check=True, timeout=1200)
    return float(json.loads(usage.read_text())["peak_mb"])


def test_validating_ten_times_the_rows_takes_hardly_more(tmp_path: Path) -> None:
    assert peak_mb(tmp_path, MANY) - peak_mb(tmp_path, FEW) <= MOST_MB


IMPORTING = """
import json, sys
from pathlib import Path
import django
django.setup()
from django.core.files import File
from datasets import services
from datasets.importing import worker
from datasets.versions import downloads
from evalsite.accounts.models import Project
project = Project.objects.create(name="P", slug="p")

def peak_mb():
    found = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    Path("/proc/self/clear_refs").write_text("5")  # the next peak counts from what is held now
    return found

peaks = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        made = services.dataset_upload(project=project, name=path, file=File(file), file_name="x.jsonl", user=None)
    assert worker.import_or_wait(made.pk).state == "ready"
    imported = peak_mb()
    made.refresh_from_db()
    assert sum(map(len, downloads.table_csv(made))) > 20 * made.rows
    peaks.append((imported, peak_mb()))
print(json.dumps(peaks))
"""


def test_importing_five_times_the_rows_takes_hardly_more_nor_does_their_table(tmp_path: Path) -> None:
    files = [tmp_path / "few.jsonl", tmp_path / "many.jsonl"]
    for file, rows in zip(files, IMPORTED, strict=True):
        file.write_bytes(numbered(rows))
    migrated(tmp_path / "evalsite.sqlite3")
    environment = {**os.environ, "DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "evalsite.settings"}
    environment.pop("DATABASE_URL", None)
    command = [sys.executable, "-c", IMPORTING, *map(str, files)]
    ran = subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=600, stdout=subprocess.PIPE)
    few, many = json.loads(ran.stdout.splitlines()[-1])
    assert [high - low for low, high in zip(few, many, strict=True) if high - low > MOST_IMPORTED_MB] == []
