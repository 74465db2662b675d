"""The benchmarks of docs/benchmarks.md. Most are ratios to a bare loop in the same run, to be machine-independent."""

from __future__ import annotations

import sys


def help_if_asked(text: str | None) -> None:
    """Print a module's description and exit if `-h` or `--help` is among the arguments."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(text or "")
        sys.exit()
