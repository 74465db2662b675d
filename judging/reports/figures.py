"""A run's statistics, computed and stored: by the page for small runs, by a worker for large ones, because a page
can't read a million judgements."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from evalsite.derived import Part
from evalsite.hooks import Hook
from evalsite.models import Job
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.drill_down import Paired, paired_under
from judging.core.statistics.frame import Kind, ScaledMetric
from judging.core.statistics.judges import Flagged, injected_verdicts
from judging.core.statistics.report import raters_of, report
from judging.core.statistics.resampling import rankings
from judging.core.statistics.verdicts import counted
from judging.people.selectors import evaluations_of
from judging.records.definitions import definitions_now
from judging.records.models import Run
from judging.records.seal import sealed_of
from judging.reports import selectors, slices, verdict_items
from judging.reports.checklists import Checklists, add_checklists, checklists_of, with_least
from judging.reports.frames import features_of_answers, run_frame
from judging.reports.outcomes import outcome_store
from judging.reports.pairing import ItemMeans, means_of
from judging.reports.rule_lines import RuleFigures, rule_figures
from judging.reports.stored import FIGURES, MEANS, OUTCOMES

if TYPE_CHECKING:
    from pandas import DataFrame

AddLicences = Callable[
    [Run, Mapping[int, MetricDefinition], Mapping[int, ScaledMetric], dict[str, Any], "DataFrame"], None
]
licences_added: Hook[AddLicences] = Hook("judging.reports.figures.licences_added")
"""What higher packages add to a document: the licences of its judges, and means corrected with them."""
JOB = "compute_figures"
FEW = 20_000  # judgements; up to this many a page computes the statistics itself, in a quarter of a second
FEW_POLLED = 2_000
RECOMPUTE_FACTOR = 10  # while running: recompute figures this many times older than their computation took
CACHE_SECONDS = 24 * 3600


class Figures(msgspec.Struct, frozen=True):
    """A core report with `overridden` in its cells; per rule metric the figures of its lines; number of repeated
    calls; number of judgements with a truncated judge's reply; per metric and judge the answers rated by both the
    judge and people; per metric how many judgements were read in which form."""

    report: dict[str, Any]
    rule_lines: dict[str, RuleFigures]
    retries: int
    truncated: int
    paired: dict[str, dict[str, Paired]]
    forms: dict[str, dict[str, int]] = {}

    def kind(self, metric: str) -> Kind | None:
        """Type of the values in the metric's mean."""
        return next((cells[metric]["kind"] for cells in self.report["candidates"].values()), None)


class RunFigures(msgspec.Struct, frozen=True):
    """Figures, the run's revision they belong to, when they were computed, and how many seconds that took."""

    figures: Figures
    revision: int
    made_at: datetime
    took: float

    def current(self, run: Run) -> bool:
        return self.revision == run.revision and not self.lapsed

    @property
    def lapsed(self) -> bool:
        """Whether the date of a licence that they rest on has passed since."""
        dates = (
            entry["expires_at"] for entry in self.figures.report["licences"] if entry["state"] == "valid"
        )
        return any(date is not None and datetime.fromisoformat(date) <= timezone.now() for date in dates)

    def outdated_since(self, run: Run) -> datetime | None:
        """When they were computed, if the run has changed since."""
        return None if self.current(run) else self.made_at

    def due(self, run: Run) -> bool:
        """Whether to recompute them. While a run is in progress, they are outdated all the time."""
        if self.current(run):
            return False
        return run.is_idle or old_enough(self.made_at, self.took)


def old_enough(made_at: datetime, took: float) -> bool:
    """Whether to recompute, while the run is in progress, what took `took` seconds."""
    return timezone.now() - made_at >= timedelta(seconds=RECOMPUTE_FACTOR * took)


_decode = msgspec.msgpack.Decoder(Figures).decode


def is_large(run: Run) -> bool:
    """Whether the run is too large for a page to compute its statistics."""
    return run.total > FEW


def current_figures(run: Run) -> RunFigures:
    """The run's current figures, computed now if they are not cached. The database is not changed."""
    key = f"figures.{FIGURES.layout}:{run.pk}:{run.created_at.timestamp()}"
    stored: RunFigures | None = cache.get(key) or _stored(run)
    if stored is None or not stored.current(run):
        stored, _judgements = compute(run)
        cache.set(key, stored, CACHE_SECONDS)
    return stored


def for_page(run: Run, *, polled: bool = False) -> RunFigures | None:
    """The run's stored figures; wakes a worker if there are none or they are outdated. `polled`: asked for again every
    few seconds while people rate, who would wait for a page that computes them each time."""
    by_worker = is_large(run) or (polled and run.done > FEW_POLLED)
    stored = _stored(run) if by_worker else current_figures(run)
    if stored is None or stored.due(run):
        jobs.request(JOB, run.pk)
    else:
        _store_outcome(run, stored)
    return stored


def _store_outcome(run: Run, stored: RunFigures) -> None:
    """Store the run's result for lists, if that of these figures is not stored."""
    if run.is_idle and not OUTCOMES.all().filter(subject=run.pk, revision=stored.revision).exists():
        outcome_store(run, stored.figures.report, stored.revision)


def slices_for_page(run: Run, field: str, stored: RunFigures) -> slices.Slices:
    """Slices by a field. For a large run the stored ones; wakes a worker if there are none, or if they are older
    than `stored`."""
    if not is_large(run):
        return slices.Slices(slices.cached_breakdown(run, field, stored.revision), due=False)
    sliced = slices.stored_slices(run, field, stored.revision)
    if sliced.due:
        slices.request(run, field)
    return sliced


def request_results(runs: Collection[Run]) -> None:
    """Request the figures of runs whose stored results are of an earlier release."""
    pks = {run.pk for run in runs}
    requested = Job.objects.filter(kind=JOB, object_id__in=pks).exclude(state=Job.State.FAILED)
    for pk in sorted(pks - set(requested.values_list("object_id", flat=True))):
        jobs.request(JOB, pk)


@jobs.job(JOB, Run)
def compute_figures(hold: Hold, run: Run) -> None:
    """Compute and store the figures of a large run. After a failure, the next page that needs them tries again."""
    stored = _stored(run)
    if stored is None or stored.due(run):
        _store(hold, run, *compute(run))
    else:  # they were requested again during the computation, or only the result for lists is missing
        _store_outcome(run, stored)


@transaction.atomic
def _store(hold: Hold, run: Run, computed: RunFigures, judgements: DataFrame) -> None:
    hold.finish()
    packed = msgspec.msgpack.encode(computed.figures)
    FIGURES.put(run.pk, value=packed, revision=computed.revision, took=computed.took)
    if field := slices.default_field(run):
        slices.request(run, field)
    outcome_store(run, computed.figures.report, computed.revision)
    verdict_items.store(run, judgements, computed.figures.report, computed.revision)
    MEANS.replace(run.pk, dict(_means(run, computed.figures, judgements)), computed.revision)


def _means(run: Run, figures: Figures, judgements: DataFrame) -> Iterator[tuple[Part, bytes]]:
    """(ids of metric and candidate, packed means) of a run with several candidates."""
    candidates = selectors.candidates_of(run)
    if len(candidates) < 2:
        return
    for metric_id, metric in selectors.metrics_of(run).items():
        mine, kind = counted(judgements, metric), figures.kind(metric.name)
        for candidate_id, name in candidates.items():
            yield (str(metric_id), str(candidate_id)), means_of(mine, name, kind).packed()


def item_means(
    run: Run, figures: Figures, metric: int, candidates: tuple[int, int]
) -> list[ItemMeans] | None:
    """Means of the items behind a run's figures, for ids of the metric and the two candidates; None until a worker
    has computed them."""
    if not is_large(run):
        scale, names = selectors.metrics_of(run)[metric], selectors.candidates_of(run)
        mine, kind = counted(run_frame(run), scale), figures.kind(scale.name)
        return [means_of(mine, names[candidate], kind) for candidate in candidates]
    stored = [MEANS.get(run.pk, str(metric), str(candidate)) for candidate in candidates]
    return [ItemMeans.unpacked(row.value) for row in stored if row] if all(stored) else None


def _stored(run: Run) -> RunFigures | None:
    row = FIGURES.get(run.pk)
    if row is None or row.computed_at is None:
        return None
    return RunFigures(_decode(row.value), row.revision, row.computed_at, row.seconds)


@dataclass(frozen=True, slots=True, eq=False)
class ReportInputs:
    """What a report is computed from, besides the licences of its judges.

    `judgements`: a table as in `core.statistics.frame`; `with_sealed`: the same with the labels of sealed tests, for
    the agreement among raters, None if none are sealed. `overridden`: number of overrides by (candidate, metric).
    `gold`: of each rater. `flagged`: answers with verdict-like text.
    """

    judgements: DataFrame
    metrics: Sequence[ScaledMetric]
    checklists: Checklists
    rows: int
    features: DataFrame | None
    overridden: Counter[tuple[str, str]]
    gold: Mapping[str, dict[str, int]]
    flagged: Mapping[tuple[str, str], Flagged]
    with_sealed: DataFrame | None = None


def report_inputs(
    run: Run, definitions: dict[int, MetricDefinition], scales: Mapping[int, ScaledMetric]
) -> ReportInputs:
    """What the run's report is computed from. `scales`: its metrics, with the labels that people could choose."""
    checklists = checklists_of(run, definitions)
    metrics = with_least(scales.values(), checklists)
    sealed = any(sealed_of(each) for each in (run, *(rated.run for rated in evaluations_of(run))))
    return ReportInputs(
        judgements=run_frame(run, definitions),
        metrics=metrics,
        checklists=checklists,
        rows=run.rows,
        features=features_of_answers(run, metrics),
        overridden=selectors.overridden(run),
        gold=selectors.gold_hits_of(run),
        flagged=selectors.answers_with_verdicts(run, scales, selectors.candidates_of(run)),
        with_sealed=run_frame(run, definitions, with_sealed=True) if sealed else None,
    )


def build_document(inputs: ReportInputs, add_licences: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The core report with everything that is added to it. Needs no database; `add_licences` adds `licences` and means
    corrected with them."""
    judgements, metrics = inputs.judgements, inputs.metrics
    document = dict[str, Any](report(judgements, metrics, rows=inputs.rows, features=inputs.features))
    add_checklists(document, judgements, metrics, inputs.checklists)
    if inputs.with_sealed is not None:
        document["raters"] = raters_of(inputs.with_sealed, metrics)
    for candidate, cells in document["candidates"].items():
        for metric, cell in cells.items():
            cell["overridden"] = inputs.overridden[candidate, metric]
    _add_gold(document, inputs.gold)
    add_licences(document)
    document["ranking"] = rankings(judgements, metrics, document)
    document["planted"] = injected_verdicts(inputs.flagged, judgements, metrics)
    return document


def compute(run: Run) -> tuple[RunFigures, DataFrame]:
    """The run's figures, and the judgements that they come from."""
    began, made_at = time.monotonic(), timezone.now()
    definitions = definitions_now(run)
    scales = {key: selectors.scaled(definition) for key, definition in definitions.items()}
    metrics_by_key = selectors.with_choices(run, scales)
    inputs = report_inputs(run, definitions, metrics_by_key)
    judgements, metrics = inputs.judgements, inputs.metrics

    def add_licences(document: dict[str, Any]) -> None:
        for add in licences_added:
            add(run, definitions, metrics_by_key, document, judgements)

    document = build_document(inputs, add_licences)
    figures = Figures(
        report=document,
        rule_lines=rule_figures(run),
        retries=selectors.retries_of(run),
        truncated=selectors.truncated_of(run),
        forms=selectors.forms_of(run),
        paired={metric.name: paired_under(judgements, metric) for metric in metrics},
    )
    return RunFigures(figures, run.revision, made_at, time.monotonic() - began), judgements


def _add_gold(document: Mapping[str, Any], hits: Mapping[str, dict[str, int]]) -> None:
    """Add the number of gold items that each rater answered correctly."""
    for rater in document["raters"]:
        for name, figures in rater["each"].items():
            if name in hits:
                figures["gold"] = hits[name]
