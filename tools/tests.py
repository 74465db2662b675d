"""`make test`: run the tests in three parts and return one result.

`together`: most tests, in one process more than there are cores, since some wait. `processes`: tests that start
processes or a browser, four files at a time, since they mostly wait; in order of their names, not of their number of
tests, since files with few tests take longest. `timed`: tests with limits of elapsed time, two at a time, since they
mostly wait. Every part runs, whatever the result of the others. Arguments are passed to pytest; a part without tests
does not fail if another part has some.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence

BY_FILE = ["-n", "4", "--dist", "loadfile", "--no-loadscope-reorder"]
TOGETHER = ["-n", str((os.cpu_count() or 1) + 1)]
PARTS = {"together": TOGETHER, "processes": BY_FILE, "timed": ["-n", "2"]}
NOTHING_COLLECTED = 5  # pytest's exit status
Run = Callable[[Sequence[str]], int]


def main(arguments: Sequence[str], run: Run = subprocess.call) -> int:
    """Return 0 if every part passed, otherwise the first status other than "no tests collected"."""
    found = [
        run([sys.executable, "-m", "pytest", "--part", part, *options, *arguments])
        for part, options in PARTS.items()
    ]
    bad = [status for status in found if status not in (0, NOTHING_COLLECTED)]
    return next(iter(bad), min(found))


if __name__ == "__main__":
    # Otherwise each of about a hundred processes would compile the project again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="evalsite-tests-") as os.environ[
        "EVALSITE_TESTS"
    ]:  # tests/migrated.py
        sys.exit(main(sys.argv[1:]))
