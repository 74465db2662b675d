"""Validating a file takes the same memory whether it holds few rows or ten times as many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.datasets.conftest import numbered

ROOT = Path(__file__).parents[2]
FEW, MANY = 20_000, 200_000
MOST_MB = 30
pytestmark = pytest.mark.processes


def peak_mb(folder: Path, rows: int) -> float:
    """Of `manage.py validate` over so many rows."""
    file, usage = folder / f"{rows}.jsonl", folder / "usage.json"
    file.write_bytes(numbered(rows))
    watched = [sys.executable, "-m", "tools.bench.watched", str(usage), sys.executable, "manage.py"]
    environment = {**os.environ, "DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "evalsite.settings"}
    subprocess.run([*watched, "validate", str(file)], cwd=ROOT, env=environment, check=True, timeout=1200)
    return float(json.loads(usage.read_text())["peak_mb"])


def test_validating_ten_times_the_rows_takes_hardly_more(tmp_path: Path) -> None:
    assert peak_mb(tmp_path, MANY) - peak_mb(tmp_path, FEW) <= MOST_MB
