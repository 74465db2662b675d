"""A run's figures as one document: what the page shows, the command prints and `evaluate` writes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache

from judging.core.statistics.gather import gather
from judging.core.statistics.report import report
from judging.reports import selectors
from judging.reports.costs import cost_of
from judging.reports.rule_lines import RuleFigures, rule_figures
from judging.runs.models import Run

KEPT_SECONDS = 24 * 3600
SLOW_SECONDS = 1.0  # figures that took longer are not worked out again for every change of a running run
PATIENCE = 10  # … but only when they are this many times older than it takes to make them


@dataclass(frozen=True, slots=True)
class _Kept:
    """Figures as they were worked out: from which state of the run, when (Unix seconds), how long it took."""

    state: tuple[int, int]
    at: float
    took: float
    figures: dict[str, Any]


def report_document(run: Run) -> dict[str, Any]:
    """The document of `report --json` (spec: reports), in strict JSON types.

    `core.statistics.document` explains the figures. Beside them: `run_id`, `version`, `state`, `provisional`,
    `left_out` (see there), and `overridden` in each cell. Kept until a judgement of the run changes; of a large
    run that is under way the figures may be some seconds old.
    """
    version, figures = run.version, _figures(run)
    return {
        "run": run.name,
        "run_id": run.pk,
        "state": run.state,
        "provisional": not run.ended,
        "dataset": version.dataset.name,
        "version": version.number,
        "left_out": left_out(run),
        **{name: figures[name] for name in ("rows", "level", "power", "candidates", "pairs")},
        "cost": cost_of(run, figures["retries"]),
    }


def rule_lines(run: Run) -> dict[str, RuleFigures]:
    """Figures of each rule metric's lines, by its name; kept with the report's."""
    found: dict[str, RuleFigures] = _figures(run)["rule_lines"]
    return found


def truncated(run: Run) -> int:
    """Judgements with a judge's reply that ended with its limit of tokens; kept with the report's figures."""
    found: int = _figures(run)["truncated"]
    return found


def left_out(run: Run) -> dict[str, int | None]:
    """Rows of the version that the run does not judge, and why.

    `bad_rows`; `rows_not_drawn` with the `seed` of the draw, if there was one; `rows_without_answers` of the
    run's candidates, known once it is planned.
    """
    valid = run.version.valid_rows
    drawn = run.sample_size is not None and run.sample_size < valid
    meant = min(valid, run.sample_size or valid)
    return {
        "bad_rows": run.bad_rows_left_out,
        "rows_not_drawn": valid - meant,
        "seed": run.seed if drawn else None,
        "rows_without_answers": meant - run.rows if run.started_at else None,
    }


def _figures(run: Run) -> dict[str, Any]:
    """A core report with `overridden`, `retries` and `truncated` added, from the cache where it still holds."""
    state = (run.revision, selectors.count_overrides(run))
    key = f"report.4:{run.pk}:{run.created_at.timestamp()}"
    kept: _Kept | None = cache.get(key)
    if kept is None or not _still_holds(kept, state, run):
        started = time.monotonic()
        figures = _work_out(run)
        kept = _Kept(state, time.time(), time.monotonic() - started, figures)
        cache.set(key, kept, KEPT_SECONDS)
    return kept.figures


def _still_holds(kept: _Kept, state: tuple[int, int], run: Run) -> bool:
    if kept.state == state:
        return True
    fresh_enough = 0 <= time.time() - kept.at < PATIENCE * kept.took
    return not run.ended and kept.took > SLOW_SECONDS and fresh_enough


def _work_out(run: Run) -> dict[str, Any]:
    overrides = selectors.newest_overrides(run)
    judgements = selectors.current_judgements(run, overrides)
    columns = gather(judgements, selectors.metrics_of(run), selectors.candidates_of(run))
    document: dict[str, Any] = {**report(columns, run=run.name, dataset="", rows=run.rows)}
    counts = selectors.overridden(run) if overrides else {}
    for candidate, cells in document["candidates"].items():
        for metric, cell in cells.items():
            cell["overridden"] = counts.get((candidate, metric), 0)
    return {
        **document,
        "retries": selectors.retries_of(run),
        "truncated": selectors.truncated_of(run),
        "rule_lines": rule_figures(run),
    }
