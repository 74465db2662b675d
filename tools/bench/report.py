"""Benchmark of reports: building the data frame of a million judgements and its report, in a separate process."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator

from judging.core.statistics.frame import JudgementTuple, ScaledMetric, judgement_frame
from judging.core.statistics.report import report
from tools.bench import Figure, command_line, python

JUDGEMENTS, MOST_SECONDS, MOST_MEGABYTES = 1_000_000, 5.0, 1000
CANDIDATES, METRICS = 4, 3


def report_figures() -> Iterator[Figure]:
    frame, figures, megabytes = json.loads(python("-m", "tools.bench.report"))
    name = f"processor time for the table of {JUDGEMENTS:,} judgements and their report, s"
    yield Figure.at_most(name, frame + figures, MOST_SECONDS, f"table {frame:.2f}, report {figures:.2f}")
    detail = f"{CANDIDATES} candidates, {METRICS} metrics"
    yield Figure.at_most("memory of that process at most, MB", megabytes, MOST_MEGABYTES, detail)


def _judgements() -> Iterator[JudgementTuple]:
    for row in range(JUDGEMENTS // (CANDIDATES * METRICS)):
        for candidate in range(CANDIDATES):
            for metric in range(METRICS):
                value = str((row * 7 + candidate * 3 + metric) % 10 + 1)
                yield (metric, candidate, row, 1, "scored", value, None)


def main() -> None:
    command_line(__doc__).parse_args()
    metrics = {key: ScaledMetric(f"m{key}", 1, 10) for key in range(METRICS)}
    began = time.process_time()
    frame = judgement_frame(_judgements(), metrics, {key: f"c{key}" for key in range(CANDIDATES)})
    made = time.process_time()
    report(frame, list(metrics.values()))
    ended = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([made - began, ended - made, peak]))


if __name__ == "__main__":
    main()
