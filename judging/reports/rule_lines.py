"""Figures for each line of a rule program: number of answers, scores of 1, mean; and answers with an invalid format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from evalsite.templatetags.show import number, share
from judging.core.metric_definition import MetricDefinition
from judging.core.rules.evaluate import ANSWER_LACKS
from judging.core.rules.program import WORST
from judging.records.models import Judgement, Run
from judging.reports.labels import decimal
from judging.reports.links import Links, linked
from judging.reports.page.tables import Table, columns_of
from judging.teamwork.marks import without_excluded

BATCH = 5000
MOST_LINES = 200  # `@all` may expand to any number of fields


class _LineScore(msgspec.Struct):
    line: int
    score: float | None
    field: str
    function: str
    reason: str


class _RuleResult(msgspec.Struct):
    """The parts of a judgement's `rules` that are read here."""

    lines: list[_LineScore]
    failure: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_RuleResult).decode
LineKey = tuple[int, str, str]  # line of the program, field, function


@dataclass(slots=True)
class LineFigures:
    """`lowest`: number of scores of 1; `lacking`: how many of these because the answer lacks the field; `failed`:
    number of answers without a score."""

    scored: int = 0
    lowest: int = 0
    lacking: int = 0
    failed: int = 0
    total: float = 0.0

    def add(self, score: float | None, reason: str) -> None:
        if score is None:
            self.failed += 1
            return
        self.scored += 1
        self.lowest += score == WORST
        self.lacking += reason == ANSWER_LACKS
        self.total += score

    @property
    def mean(self) -> float | None:
        return self.total / self.scored if self.scored else None


@dataclass(slots=True)
class RuleFigures:
    """One metric's lines by candidate; `judged` and `without_format`: {candidate: number of answers}."""

    lines: dict[LineKey, dict[str, LineFigures]] = field(default_factory=dict)
    judged: dict[str, int] = field(default_factory=dict)
    without_format: dict[str, int] = field(default_factory=dict)


def rule_figures(run: Run) -> dict[str, RuleFigures]:
    """{name of a rule metric: figures}, from the current attempts."""
    by_metric: dict[str, RuleFigures] = {name: RuleFigures() for name in rule_metrics(run).values()}
    for metric, candidate, result in _judged(run) if by_metric else ():
        figures = by_metric[metric]
        figures.judged[candidate] = figures.judged.get(candidate, 0) + 1
        if result.failure is not None:
            figures.without_format[candidate] = figures.without_format.get(candidate, 0) + 1
        for line in result.lines:
            by_candidate = figures.lines.setdefault((line.line, line.field, line.function), {})
            by_candidate.setdefault(candidate, LineFigures()).add(line.score, line.reason)
    return by_metric


def rule_metrics(run: Run) -> dict[int, str]:
    """{id: name} of the run's metrics that are rule programs."""
    metrics = run.metrics.order_by("number")
    return {
        metric.pk: metric.name for metric in metrics if MetricDefinition.from_json(metric.definition).rules
    }


def _judged(run: Run) -> Iterator[tuple[str, str, _RuleResult]]:
    names = rule_metrics(run)
    candidates = dict(run.run_candidates.values_list("candidate_id", "candidate__name"))
    judgements = Judgement.objects.filter(run=run, current=True, run_metric__in=names).exclude(rules="")
    counted = without_excluded(run, judgements)
    stored = counted.values_list("run_metric_id", "candidate_id", "rules").iterator(BATCH)
    return ((names[metric], candidates[candidate], _decode(rules)) for metric, candidate, rules in stored)


def rule_table(figures: RuleFigures, metric: str, candidates: list[str], links: Links) -> Table | None:
    """A row per line and field: numbers of answers scored, scored 1 and not scored, and each candidate's mean; the
    last row counts invalid formats. At most MOST_LINES; `left_out_lines` returns the number of others."""
    if not figures.judged:
        return None
    keys = sorted(figures.lines, key=lambda key: key[0])[:MOST_LINES]
    rows = [_row(key, figures.lines[key], metric, candidates, links) for key in keys]
    rows.append(_format_row(figures, metric, candidates, links))
    heads = (_("Answers"), _("Scored 1"), _("Missing field"), _("Not scored"), *candidates)
    return Table(_("Results by rule"), columns_of([_("Rule")], heads), rows)


def _row(
    key: LineKey, by_candidate: dict[str, LineFigures], metric: str, candidates: list[str], links: Links
) -> list[str]:
    line, name, function = key
    every = by_candidate.values()
    scored, lowest = sum(figures.scored for figures in every), sum(figures.lowest for figures in every)
    lacking, failed = sum(figures.lacking for figures in every), sum(figures.failed for figures in every)
    of_lowest = linked(number(lowest), links.to("", metric, rule=str(line), rule_score="1"))
    means = [
        linked(
            decimal(by_candidate[candidate].mean, 2),
            links.to(candidate, metric, rule=str(line), rule_score="lower"),
        )
        if candidate in by_candidate and by_candidate[candidate].scored
        else "–"
        for candidate in candidates
    ]
    counts = [number(scored), of_lowest, number(lacking), number(failed)]
    return [f"{line} · {name} · {function}", *counts, *means]


def left_out_lines(figures: RuleFigures) -> int:
    """Number of lines that the table omits."""
    return max(0, len(figures.lines) - MOST_LINES)


def _format_row(figures: RuleFigures, metric: str, candidates: list[str], links: Links) -> list[str]:
    judged, without = sum(figures.judged.values()), sum(figures.without_format.values())
    shares = [
        linked(
            share(figures.without_format.get(candidate, 0) / figures.judged[candidate]),
            links.to(candidate, metric, flag="format_failed"),
        )
        if figures.judged.get(candidate)
        else "–"
        for candidate in candidates
    ]
    lacking = linked(number(without), links.to("", metric, flag="format_failed"))
    return [_("Invalid answer format"), number(judged), lacking, "–", "–", *shares]
