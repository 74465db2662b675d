"""Take samples of the processes and detect growth."""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.soak.site import Site

ROLES = {"--web-only": "web", "data": "worker data", "runs": "worker runs"}
MEMORY_MB = 16.0  # growth allowed per kind of process from the end of the warm-up to the end
DESCRIPTORS = 8.0
WARM_UP = 1 / 3  # share of the time in which caches fill and threads and connections are created

Sample = dict[str, Any]


def sample(site: Site, requests_at: int, errors: int) -> Sample:
    """Memory (MB) and file descriptors by kind of process; database size, queues and judgement counts."""
    memory: dict[str, float] = defaultdict(float)
    descriptors: dict[str, float] = defaultdict(float)
    for process in site.processes:
        for pid, kind in _tree(process.pid, "supervisor"):
            try:
                memory[kind] += _pss_mb(pid)
                descriptors[kind] += len(list(Path(f"/proc/{pid}/fd").iterdir()))
            except OSError:
                continue  # it has exited
    figures = site.figures()
    wal = site.folder / "data" / "evalsite.sqlite3-wal"
    return {
        "at": time.time(),
        "memory": dict(memory),
        "descriptors": dict(descriptors),
        "database_mb": figures["database_bytes"] / 1e6,
        "wal_mb": wal.stat().st_size / 1e6 if wal.exists() else 0.0,
        "waiting": sum(value for name, value in figures.items() if name.startswith("queue_waiting")),
        "runs_under_way": sum(value for name, value in figures.items() if name.startswith("runs{")),
        "judgements": sum(value for name, value in figures.items() if name.startswith("judgements_total")),
        "judge_errors": figures['judgements_total{kind="errors"}'],
        "requests": requests_at,
        "errors": errors,
    }


def _tree(pid: int, inherited: str) -> Iterator[tuple[int, str]]:
    """Yield a process and its descendants with their kind. Children such as the sandbox inherit their parent's kind."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        threads = Path(f"/proc/{pid}/task").iterdir()
        below = [child for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return
    kind = next((ROLES[word] for word in words if word in ROLES), inherited)
    yield pid, kind
    for child in below:
        yield from _tree(int(child), kind)


def _pss_mb(pid: int) -> float:
    """Proportional set size (PSS) in MB: shared memory is divided among the processes that share it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def growth(samples: Sequence[Sample], what: str, kind: str) -> float:
    """Growth of a kind's figure from the end of the warm-up to the end, by linear regression."""
    began, ended = samples[0]["at"], samples[-1]["at"]
    later = [one for one in samples if one["at"] >= began + (ended - began) * WARM_UP and kind in one[what]]
    if len(later) < 3:
        return 0.0
    slope, _ = statistics.linear_regression([one["at"] for one in later], [one[what][kind] for one in later])
    return float(slope * (later[-1]["at"] - later[0]["at"]))


def problems(samples: Sequence[Sample], last: Sample, site: Site) -> list[str]:
    """All problems found: growth, unfinished work or judge errors in the `last` sample, and errors in the log."""
    found = []
    for what, most in (("memory", MEMORY_MB), ("descriptors", DESCRIPTORS)):
        for kind in sorted({kind for one in samples for kind in one[what]}):
            more = growth(samples, what, kind)
            if more > most:
                found.append(f"{what} of {kind} grew by {more:.1f}, more than {most:g}")
    for name in ("waiting", "runs_under_way", "judge_errors"):
        if last[name]:
            found.append(f"{name.replace('_', ' ')} at the end: {last[name]:.0f}")
    return found + [f"log: {line}" for line in log_errors(site.log)]


def log_errors(path: Path) -> Iterator[str]:
    """Log lines of level ERROR or CRITICAL, and tracebacks written outside the logging system."""
    for line in path.read_text(errors="replace").splitlines():
        try:
            said = json.loads(line)
            level = said["level"]
        except (ValueError, TypeError, KeyError):
            if line.startswith("Traceback"):
                yield line
            continue
        if level in ("ERROR", "CRITICAL"):
            yield f"{said['time']} {said['logger']}: {said['message']}"
