"""Processes of a sandbox, found by a mark in their command line."""

import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[4]
IMPORTS = {"PYTHONPATH": f"{ROOT}:{Path(msgspec.__file__).parents[1]}"}


def processes_with(mark: str) -> list[int]:
    """Processes that have the mark in their command line; a sandbox's have its limits there."""
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
