"""A run's figures as one document for the page, the `report` command and `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.frame import ScaledMetric
from judging.engine.budget import MILLION
from judging.engine.candidates import GeneratingCandidate, generating_candidates
from judging.people.asking.drawn import sent_ratings
from judging.people.guidelines.selectors import mixed_versions
from judging.people.selectors import evaluations_of
from judging.records.models import Run
from judging.records.seal import sealed_count
from judging.reports import selectors
from judging.reports.figures import Figures, current_figures
from judging.reports.headline import headlines
from judging.reports.slices import breakdowns_of
from judging.reports.verdict_shares import with_side_shares, with_verdicts
from judging.reports.version_orders import means_under_versions, with_version_orders
from judging.teamwork.marks import excluded_by
from judging.transfer.results_import.opened import evidence_of

FIGURES = (
    "rows", "level", "power", "seed", "candidates", "people_candidates", "pairs", "side_by_side", "judges",
    "repeats", "order", "length", "scale_ends", "planted", "raters", "corrected", "corrected_pairs", "licences",
    "ranking",
)  # fmt: skip
CELLS = ("candidates", "people_candidates")


def report_document(run: Run, figures: Figures | None = None) -> dict[str, Any]:
    """The document of `report --json`, in strict JSON types.

    For the figures see `core.statistics.document`. Additional keys: `run_id`, `version`, `state`, `provisional`,
    `left_out`, `guideline_versions` ({metric: {version: ratings}} where people's ratings mix several), `headline` (see
    `headlines`), `licences`, orders under other versions in `ranking`, `evidence` (see `evidence_of`), `overridden` in
    each cell, and the shares of verdicts (see `verdict_shares`). Without `figures`, the current ones are used.
    """
    version, current = run.version, figures or current_figures(run).figures
    metrics = list(selectors.metrics_of(run).values())
    figures_shown = shown_figures(current.report, metrics)
    ranking = figures_shown["ranking"]
    return {
        "run": run.name,
        "run_id": run.pk,
        "state": run.state,
        "provisional": not run.complete,
        "dataset": version.dataset.name,
        "version": version.number,
        "left_out": left_out(run),
        "guideline_versions": {
            name: {str(version): ratings for version, ratings in counts.items()}
            for name, counts in mixed_versions(evaluations_of(run)).items()
        },
        **figures_shown,
        "ranking": with_version_orders(ranking, means_under_versions(run) if ranking else {}),
        "cost": cost_of(run, current.retries),
        "evidence": evidence_of(run),
    }


def shown_figures(report: Mapping[str, Any], metrics: Sequence[ScaledMetric]) -> dict[str, Any]:
    """The part of the document that is computed from verdicts: `headline`, FIGURES, and the shares of verdicts."""
    comparisons = {metric.name for metric in metrics if metric.compares}
    return {
        "headline": headlines(report, metrics),
        **{name: report[name] for name in FIGURES},
        **{name: with_verdicts(report[name], comparisons) for name in CELLS},
        "side_by_side": with_side_shares(report["side_by_side"]),
    }


def report_by(run: Run, fields: Sequence[str]) -> dict[str, Any]:
    """The document with the cells by the values of these fields: `breakdowns`, one per field, and the first of them
    as `breakdown`. Raises FieldUnknown for a field that no row has."""
    document = report_document(run)
    if not fields:
        return document
    breakdowns = breakdowns_of(run, fields)
    return document | {"breakdown": breakdowns[0], "breakdowns": breakdowns}


def left_out(run: Run) -> dict[str, Any]:
    """Rows of the version that the run does not judge, judgements excluded from the figures, and why.

    `bad_rows`; whether the file was `not_read_to_its_end`; `rows_not_drawn` with the random `seed`, if rows were
    sampled; `rows_without_answers` of the run's candidates, and pairs of candidates that were not compared on a row
    because one has no answer to it (`pairs_without_answers`), known once the run is planned. `excluded`: number of
    answers (each under one metric) that reviewers excluded; `excluded_by`: who, with which `reason`, and how many
    `judgements`. `sealed`: how many of people's labels are in a judge's test that was not opened yet; `sent_by_rule`:
    how many are of answers that a rule sent to people and no draw drew.
    """
    valid = run.version.valid_rows
    drawn = run.sample_size is not None and run.sample_size < valid
    drawn_rows = min(valid, run.sample_size or valid)
    excluded, rated = excluded_by(run), evaluations_of(run)
    others = [evaluation for evaluation in rated if evaluation.run_id != run.pk]
    return {
        "bad_rows": run.bad_rows_left_out,
        "not_read_to_its_end": bool(run.version.stopped_by),
        "rows_not_drawn": valid - drawn_rows,
        "seed": run.seed if drawn else None,
        "rows_without_answers": max(0, drawn_rows - run.rows) if run.started_at else None,
        "pairs_without_answers": _pairs_without_answers(run, drawn_rows) if run.started_at else None,
        "excluded": sum(exclusion["judgements"] for exclusion in excluded),
        "excluded_by": excluded,
        "sealed": sealed_count([run, *(evaluation.run for evaluation in others)]),
        "sent_by_rule": sent_ratings(rated),
    }


def _pairs_without_answers(run: Run, rows: int) -> int:
    """How many pairs of candidates lack an answer, over all rows and metrics that compare candidates."""
    if not (run.by_workers and run.compares_candidates):
        return 0
    names = list(run.run_candidates.order_by("candidate").values_list("candidate__name", flat=True))
    definitions = {metric.pk: MetricDefinition.from_json(metric.definition) for metric in run.metrics.all()}
    wanted = rows * sum(len(definition.pairs(names)) for definition in definitions.values())
    first = {"attempt": 1, "response__number": 1, "other_response__number": 1}
    return wanted - run.judgements.filter(run_metric__in=definitions, **first).count()


def cost_of(run: Run, retries: int) -> dict[str, Any]:
    """Requests and tokens of all attempts; wall time from start to end, including pauses; judgements per second.

    `money` and `currency` if prices are set. If the run generated answers: `answers`, {candidate: its part}, and
    `judges`, the rest.
    """
    seconds = selectors.wall_seconds(run)
    candidates = generating_candidates(run)
    cost = {
        "requests": run.calls,
        "retries": retries,
        "failed_requests": run.calls_failed,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        **_money(run, run.spent / MILLION),
        "wall_seconds": seconds,
        "judgements_per_second": run.done / seconds if seconds else None,
    }
    return cost | (
        {"answers": _answers(run, candidates), "judges": _judges(run, candidates)} if candidates else {}
    )


def _answers(run: Run, candidates: list[GeneratingCandidate]) -> dict[str, dict[str, Any]]:
    return {
        candidate.model.name: {
            "requests": candidate.counts.calls,
            "prompt_tokens": candidate.counts.prompt_tokens,
            "completion_tokens": candidate.counts.completion_tokens,
            **_money(run, candidate.money or 0.0),
        }
        for candidate in candidates
    }


def _judges(run: Run, candidates: list[GeneratingCandidate]) -> dict[str, Any]:
    """Everything but the answers; includes requests for answers that were lost because their worker was killed."""
    counts = [candidate.counts for candidate in candidates]
    return {
        "requests": max(0, run.calls - sum(part.calls for part in counts)),
        "prompt_tokens": max(0, run.prompt_tokens - sum(part.prompt_tokens for part in counts)),
        "completion_tokens": max(0, run.completion_tokens - sum(part.completion_tokens for part in counts)),
        **_money(
            run, max(0.0, run.spent / MILLION - sum(candidate.money or 0.0 for candidate in candidates))
        ),
    }


def _money(run: Run, money: float) -> dict[str, Any]:
    return {"money": round(money, 6), "currency": run.currency} if run.currency else {}
