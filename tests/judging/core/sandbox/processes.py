"""Find a sandbox's processes by a marker in their command line."""

from pathlib import Path

import msgspec

from tests.deadlines import wait_until

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


def wait_until_gone(mark: str) -> None:
    wait_until(lambda: not processes_with(mark))
