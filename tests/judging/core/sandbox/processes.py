"""Find a sandbox's processes by a marker in their command line."""

import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[4]
IMPORTS = {"PYTHONPATH": f"{ROOT}:{Path(msgspec.__file__).parents[1]}"}


def processes_with(mark: str) -> list[int]:
    """Ids of processes with `mark` in their command line. A sandbox's command lines contain its limits."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in place.read_bytes():
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def gone(mark: str) -> bool:
    for _ in range(200):
        if not processes_with(mark):
            return True
        time.sleep(0.05)
    return False
