"""`make test`: two parts, one result. First what bears neighbours, on every core; then, one by one, what does not.

What starts processes or a browser, or measures seconds, has the machine to itself: no bound depends on who else runs.
Both parts run, whatever the first one finds. Arguments go to pytest as they are; a part without tests is no failure
if the other one has some.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

PARTS = {"together": ["-n", "auto"], "alone": []}
NOTHING_COLLECTED = 5  # pytest's exit status
Run = Callable[[Sequence[str]], int]


def main(arguments: Sequence[str], run: Run = subprocess.call) -> int:
    """0 if every part passed; otherwise the first status that tells of more than a part without tests."""
    found = [
        run([sys.executable, "-m", "pytest", "--part", part, *options, *arguments])
        for part, options in PARTS.items()
    ]
    bad = [status for status in found if status not in (0, NOTHING_COLLECTED)]
    return next(iter(bad), min(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
