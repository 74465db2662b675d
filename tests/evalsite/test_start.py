"""What a process imports at its start."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SLOW = {"aiohttp", "httpx", "jinja2", "openpyxl", "pandas", "pyarrow"}
"""Packages that take a tenth of a second or more, and that most processes do not need."""


def test_slow_packages_are_imported_when_they_are_needed() -> None:
    program = "import django, sys; django.setup(); print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert set(ran.stdout.split()) & SLOW == set()
