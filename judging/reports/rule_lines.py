"""Figures for each line of a rule program: number of answers, scores of 1, mean; and answers with an invalid format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from evalsite.templatetags.show import number, percent
from judging.core.metric_definition import MetricDefinition
from judging.core.rules.evaluate import ANSWER_LACKS
from judging.core.rules.program import WORST
from judging.reports.labels import decimal
from judging.reports.links import Links, linked
from judging.reports.page.tables import Table, columns_of
from judging.runs.models import Judgement, Run
from judging.runs.teamwork.marks import without_excluded

BATCH = 5000
MOST_LINES = 200  # `@all` may expand to any number of fields


class _LineScore(msgspec.Struct):
    line: int
    score: float | None
    field: str
    function: str
    reason: str


class _Kept(msgspec.Struct):
    """The parts of a judgement's `rules` that are read here."""

    lines: list[_LineScore]
    failure: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Kept).decode
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
    found: dict[str, RuleFigures] = {name: RuleFigures() for name in rule_metrics(run).values()}
    for metric, candidate, kept in _judged(run) if found else ():
        figures = found[metric]
        figures.judged[candidate] = figures.judged.get(candidate, 0) + 1
        if kept.failure is not None:
            figures.without_format[candidate] = figures.without_format.get(candidate, 0) + 1
        for one in kept.lines:
            by_candidate = figures.lines.setdefault((one.line, one.field, one.function), {})
            by_candidate.setdefault(candidate, LineFigures()).add(one.score, one.reason)
    return found


def rule_metrics(run: Run) -> dict[int, str]:
    """{id: name} of the run's metrics that are rule programs."""
    metrics = run.metrics.order_by("number")
    return {one.pk: one.name for one in metrics if MetricDefinition.from_json(one.definition).rules}


def _judged(run: Run) -> Iterator[tuple[str, str, _Kept]]:
    names = rule_metrics(run)
    candidates = dict(run.run_candidates.values_list("candidate_id", "candidate__name"))
    found = Judgement.objects.filter(run=run, current=True, run_metric__in=names).exclude(rules="")
    counted = without_excluded(run, found)
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
    scored, lowest = sum(one.scored for one in every), sum(one.lowest for one in every)
    lacking, failed = sum(one.lacking for one in every), sum(one.failed for one in every)
    of_lowest = linked(number(lowest), links.to("", metric, rule=str(line), rule_score="1"))
    means = [
        linked(decimal(by_candidate[one].mean, 2), links.to(one, metric, rule=str(line), rule_score="lower"))
        if one in by_candidate and by_candidate[one].scored
        else "–"
        for one in candidates
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
            percent(figures.without_format.get(one, 0) / figures.judged[one]),
            links.to(one, metric, flag="format_failed"),
        )
        if figures.judged.get(one)
        else "–"
        for one in candidates
    ]
    lacking = linked(number(without), links.to("", metric, flag="format_failed"))
    return [_("Invalid answer format"), number(judged), lacking, "–", "–", *shares]
