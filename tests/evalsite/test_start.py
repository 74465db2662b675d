"""What a process imports at its start, and what is left to do at its end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SLOW = {"aiohttp", "httpx", "jinja2", "openpyxl", "pandas", "pyarrow"}
"""Packages that take a tenth of a second or more, and that most processes do not need."""
PROGRAM = """
import contextlib, gc, io, json, sys
import django, manage
django.setup()
modules = list(sys.modules)
gc.unfreeze()  # as a run's worker does when it ends
sys.argv = ["manage.py", "help"]
with contextlib.redirect_stdout(io.StringIO()):
    manage.main()
print(json.dumps({"modules": modules, "searched": len(gc.get_objects())}))
"""


@pytest.fixture(scope="module")
def process() -> Any:
    """The modules that a process imported, and the objects that its end would search for garbage."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(ran.stdout)


def test_slow_packages_are_imported_when_they_are_needed(process: Any) -> None:
    assert set(process["modules"]) & SLOW == set()


def test_the_end_of_a_command_searches_no_module_for_garbage(process: Any) -> None:
    assert process["searched"] < 10_000
