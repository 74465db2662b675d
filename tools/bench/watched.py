"""Run a command and write its resource usage, with children: python -m tools.bench.watched OUT.json COMMAND…"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from tools.bench import python


def run_watched(folder: Path, *arguments: str, **environment: str) -> tuple[str, dict[str, float]]:
    """Run Python; return what it prints, and `cpu` (seconds) and `peak_mb` of it and its children."""
    usage = folder / "usage.json"
    watched = ("-m", "tools.bench.watched", str(usage), sys.executable, *arguments)
    return python(*watched, **environment), json.loads(usage.read_text())


def main() -> None:
    # A small process of its own: the peak of a child counts the memory of the process that starts it.
    done = subprocess.run(sys.argv[2:], check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    usage = {"cpu": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}
    Path(sys.argv[1]).write_text(json.dumps(usage))
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
