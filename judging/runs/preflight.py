"""Estimates before a run starts: tokens, cost, time and the minimum detectable difference.

Based on earlier runs of the same metrics in the project, or else on the length of a few rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean, stdev

from django.utils.translation import ngettext

from datasets.core.kinds import CATEGORY, CHECKLIST, PASS_FAIL
from datasets.models import Response, Row, Version
from evalsite.tasks import workers
from evalsite.templatetags.show import number
from judging.core.candidates import CandidateModel
from judging.core.lint import Lint
from judging.core.statistics.means import Estimate, smallest_difference
from judging.endpoints.models import Endpoint
from judging.endpoints.settings import default_concurrency
from judging.engine.budget import CHEAPER, LETTERS_A_TOKEN, WRITTEN
from judging.messages import lint_sentence
from judging.metrics import lint
from judging.metrics.lint import StoredLint
from judging.records.models import Judgement, JudgementState, JudgeReply, RunMetric
from judging.runs.selectors import Cost, MetricChoice
from judging.runs.services import called_endpoints, price_list

LOOKED_AT = 200  # number of earlier replies, scores or rows used
SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CallCost:
    """Input and output tokens and seconds of one call. `seen`: from earlier replies, not estimated from length."""

    read: float
    written: float
    seconds: float
    seen: bool


@dataclass(frozen=True, slots=True)
class Preflight:
    """Totals of a whole run. `seconds`: of the busiest endpoint. `money`: None without prices of all endpoints in one
    currency; half of it if the run is `batched`. `priced_on`: when the oldest of the prices was entered, if known.
    `differences`: (metric, minimum detectable difference of two candidates in points, at a power of 80 %)."""

    read: float
    written: float
    seconds: float
    money: float | None
    currency: str
    seen: bool
    differences: tuple[tuple[str, float], ...]
    batched: bool = False
    priced_on: date | None = None


def preflight(
    version: Version,
    metrics: Sequence[MetricChoice],
    cost: Cost,
    candidate_models: Sequence[CandidateModel] = (),
    *,
    batched: bool = False,
) -> Preflight | None:
    """Estimate a run; None if it makes no calls."""
    if not (cost.calls or cost.answers) or not metrics:
        return None
    definitions = [metric.definition for metric in metrics]
    endpoints = Endpoint.objects.in_bulk(called_endpoints(definitions, candidate_models))
    prices = price_list(definitions, candidate_models)
    read = written = money = 0.0
    busy: dict[int, float] = {}  # seconds of work per endpoint
    seen = True
    for endpoint, calls, call_cost in _requests(version, metrics, cost, candidate_models):
        seen = seen and call_cost.seen
        read, written = read + calls * call_cost.read, written + calls * call_cost.written
        price = prices.prices.get(str(endpoint), (0.0, 0.0))
        money += calls * (call_cost.read * price[0] + call_cost.written * price[1]) / 1_000_000
        rate = calls_a_second(endpoints.get(endpoint or 0), call_cost)
        busy[endpoint or 0] = busy.get(endpoint or 0, 0.0) + calls / rate
    differences = tuple(
        (metric.definition.name, smallest)
        for metric in metrics
        if (smallest := difference(metric, cost.rows))
    )
    return Preflight(
        read,
        written,
        max(busy.values(), default=0.0),
        money * (CHEAPER if batched else 1) if prices.currency else None,
        prices.currency,
        seen,
        differences,
        batched,
        min((row.priced_on for row in endpoints.values() if row.priced_on), default=None),
    )


def _requests(
    version: Version, metrics: Sequence[MetricChoice], cost: Cost, candidate_models: Sequence[CandidateModel]
) -> list[tuple[int | None, float, CallCost]]:
    """For each judge and candidate: its endpoint, the number of requests, and the cost of one."""
    requests: list[tuple[int | None, float, CallCost]] = [
        (
            judge.endpoint,
            judgements
            * (metric.calls if metric.definition.rules else judge.calls)
            * (cost.criteria if metric.definition.asks_by_criterion else 1),
            judge_call_cost(version, metric, judge.endpoint),
        )
        for judgements, metric in zip(cost.of_metrics, metrics, strict=True)
        for judge in metric.definition.judges
    ]
    requests += [
        (model.endpoint, cost.rows * model.n, answer_call_cost(version)) for model in candidate_models
    ]
    return requests


def unverified_endpoints(
    metrics: Sequence[MetricChoice], candidate_models: Sequence[CandidateModel] = ()
) -> list[Endpoint]:
    """Endpoints that the run would call and that were never tested or failed their last connection test, by name."""
    ids = called_endpoints((metric.definition for metric in metrics), candidate_models)
    return [
        endpoint for endpoint in Endpoint.objects.filter(pk__in=ids).order_by("name") if not endpoint.works
    ]


def judge_call_cost(version: Version, metric: MetricChoice, endpoint: int | None) -> CallCost:
    """Estimate one judge call of a metric."""
    last = last_use(metric)
    if last and endpoint:
        earlier = JudgeReply.objects.filter(
            judgement__run=last.run_id,
            judgement__position__lt=LOOKED_AT,
            judgement__run_metric=last,
            endpoint=endpoint,
            copy_of=None,
            prompt_tokens__isnull=False,
        )
        replies = list(earlier.values_list("prompt_tokens", "completion_tokens", "seconds")[:LOOKED_AT])
        if replies:
            read, written, seconds = zip(*replies, strict=True)
            return CallCost(fmean(read), fmean(tokens or 0 for tokens in written), fmean(seconds), True)
    texts = Response.uploaded.filter(row__version=version, row__valid=True).values_list("raw", "row__raw")
    sizes = [min(len(row), 20_000) + len(answer) for answer, row in texts[:50]] or [0]
    template = max((len(judge.template) for judge in metric.definition.judges), default=0)
    return CallCost((fmean(sizes) + template) / LETTERS_A_TOKEN, WRITTEN, SECONDS, False)


def answer_call_cost(version: Version) -> CallCost:
    """Estimate one call of a candidate model."""
    texts = Row.objects.filter(version=version, valid=True).order_by("line").values_list("raw", flat=True)
    sizes = [min(len(row), 20_000) for row in texts[:50]] or [0]
    return CallCost(fmean(sizes) / LETTERS_A_TOKEN, WRITTEN, SECONDS, False)


def last_use(metric: MetricChoice) -> RunMetric | None:
    """This metric in the newest run that has scored with any version of it."""
    if metric.version is None:
        return None
    used = RunMetric.objects.filter(metric_version__metric=metric.version.metric_id, run__scored__gt=0)
    return used.order_by("-pk").first()


def calls_a_second(endpoint: Endpoint | None, call_cost: CallCost) -> float:
    """The rate that the strictest of an endpoint's limits allows."""
    rates = [(endpoint.concurrency if endpoint else default_concurrency()) / max(0.01, call_cost.seconds)]
    if endpoint and endpoint.requests_per_minute:
        rates.append(endpoint.requests_per_minute / 60)
    if endpoint and endpoint.tokens_per_minute:
        rates.append(endpoint.tokens_per_minute / 60 / max(1.0, call_cost.read + call_cost.written))
    return min(rates)


def difference(metric: MetricChoice, rows: int) -> float | None:
    """The minimum difference of two candidates' means that this many rows detect with a power of 80 %.

    Uses the standard deviation of earlier scores, or else a quarter of the scale, and assumes a correlation of 0.5
    between the candidates' scores on a row, so that the difference has the standard deviation of a single score. None
    where a metric gives no points.
    """
    without_points = metric.definition.kind in (PASS_FAIL, CATEGORY, CHECKLIST)
    if rows < 3 or without_points or metric.definition.compares_candidates:
        return None
    spread = (metric.definition.max_score - metric.definition.min_score) / 4
    last = last_use(metric)
    if last:
        earlier = Judgement.objects.filter(
            run=last.run_id, run_metric=last, current=True, state=JudgementState.SCORED, score__isnull=False
        ).filter(position__lt=10 * LOOKED_AT)
        scores = [score or 0.0 for score in earlier.values_list("score", flat=True)[: 10 * LOOKED_AT]]
        if len(scores) >= 20:
            spread = stdev(scores)
    error = spread / math.sqrt(rows)
    return smallest_difference(Estimate(0.0, error, None, None, rows, rows))


_SENTENCES = 3
_REFERENCES = ("data.ref_answer", "data.gt")


@dataclass(frozen=True, slots=True)
class LintNote:
    """A metric whose prompts have lint findings on the rows, or whose lint is still in progress (`waits`)."""

    choice: MetricChoice
    errors: int = 0
    warnings: int = 0
    sentences: tuple[str, ...] = ()
    waits: bool = False
    worker_missing: str = ""  # why no worker picks it up, see workers.obstacle


def lint_notes(version: Version, choices: Sequence[MetricChoice]) -> list[LintNote]:
    """Notes for metrics with findings or unfinished lints. Small versions are linted here, large ones by a worker;
    results from the editor are reused."""
    notes = (
        _rules_note(version, choice) if choice.definition.rules else _note(version, choice)
        for choice in choices
    )
    return [note for note in notes if note.waits or note.errors or note.warnings]


def _note(version: Version, choice: MetricChoice) -> LintNote:
    definition = choice.definition
    templates = dict.fromkeys(definition.judges[number].template for number in definition.first_row)
    of_pairs = definition.compares_candidates
    lints = [
        lint.request(version, template, definition.first_scripts, of_pairs=of_pairs) for template in templates
    ]
    done: list[Lint] = [result for stored in lints if (result := lint.result_of(stored)) is not None]
    errors = [finding for result in done for finding in result.errors]
    warnings = [finding for result in done for finding in result.warnings]
    sentences = [lint_sentence(finding) for finding in (*errors, *warnings)[:_SENTENCES]]
    missing = max((result.without_reference for result in done), default=0)
    warned = any(warning.code == "name_none" and warning.name in _REFERENCES for warning in warnings)
    unscored = missing > 0 and not warned
    if unscored:
        text = ngettext(
            "%(rows)s row has no reference, but the template uses one. The judge may give no score there.",
            "%(rows)s rows have no reference, but the template uses one. The judge may give no score there.",
            missing,
        )
        sentences.append(text % {"rows": number(missing)})
    return LintNote(choice, len(errors), len(warnings) + unscored, tuple(sentences), *_waits(lints))


def _rules_note(version: Version, choice: MetricChoice) -> LintNote:
    """The note for a rule program: only the number of rows without a reference, which certainly can't be scored."""
    stored = lint.request(version, choice.definition.rules, choice.definition.first_scripts, lint.RULES)
    missing = lint.rules_result(stored.result).missing if stored.result else 0
    text = ngettext(
        "%(rows)s row has no reference to compare with, so its answers can't be scored.",
        "%(rows)s rows have no reference to compare with, so their answers can't be scored.",
        missing,
    ) % {"rows": number(missing)}
    return LintNote(choice, 0, int(missing > 0), (text,) if missing else (), *_waits([stored]))


def _waits(lints: Sequence[StoredLint]) -> tuple[bool, str]:
    """Whether a lint is unfinished, and why no worker picks it up ('' if one does)."""
    waits = any(stored.waits for stored in lints)
    return waits, workers.obstacle(workers.DATA) if waits else ""
