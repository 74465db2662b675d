"""Run a command and write its resource usage, with children: python -m tools.bench.watched OUT.json COMMAND…"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path


def main() -> None:
    done = subprocess.run(sys.argv[2:], check=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    usage = {"cpu": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}
    Path(sys.argv[1]).write_text(json.dumps(usage))
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
