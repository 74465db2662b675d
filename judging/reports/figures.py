"""A run's statistics, computed and stored: by the page for small runs, by a worker for large ones, because a page
can't read a million judgements."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from django_tasks import task

from evalsite.tasks import workers
from judging.core.statistics.drill_down import Paired, paired_under
from judging.core.statistics.frame import Kind
from judging.core.statistics.judges import injected_verdicts
from judging.core.statistics.report import report
from judging.core.statistics.verdicts import counted
from judging.reports import selectors, slices, verdict_items
from judging.reports.frames import features_of_answers, run_frame
from judging.reports.models import KeptFigures, KeptMeans, RunOutcome
from judging.reports.outcomes import outcome_keep
from judging.reports.pairing import ItemMeans, means_of
from judging.reports.rule_lines import RuleFigures, rule_figures
from judging.runs.definitions import definitions_now
from judging.runs.models import Run

if TYPE_CHECKING:
    from pandas import DataFrame

LAYOUT = 9  # of Figures and KeptMeans; increase it when they change
FEW = 20_000  # judgements; up to this many a page computes the statistics itself, in a quarter of a second
RECOMPUTE_FACTOR = 10  # while running: recompute figures this many times older than their computation took
KEPT_SECONDS = 24 * 3600


class Figures(msgspec.Struct, frozen=True):
    """A core report with `overridden` in its cells; per rule metric the figures of its lines; number of repeated
    calls; number of judgements with a truncated judge's reply; per metric and judge the answers rated by both the
    judge and people."""

    report: dict[str, Any]
    rule_lines: dict[str, RuleFigures]
    retries: int
    truncated: int
    paired: dict[str, dict[str, Paired]]

    def kind(self, metric: str) -> Kind | None:
        """Type of the values in the metric's mean."""
        return next((cells[metric]["kind"] for cells in self.report["candidates"].values()), None)


class Kept(msgspec.Struct, frozen=True):
    """Figures, the run's revision they belong to, when they were computed, and how many seconds that took."""

    figures: Figures
    revision: int
    made_at: datetime
    took: float

    def current(self, run: Run) -> bool:
        return self.revision == run.revision

    def outdated_since(self, run: Run) -> datetime | None:
        """When they were computed, if the run has changed since."""
        return None if self.current(run) else self.made_at

    def due(self, run: Run) -> bool:
        """Whether to recompute them. While a run is in progress, they are outdated all the time."""
        if self.current(run):
            return False
        return run.rests or old_enough(self.made_at, self.took)


def old_enough(made_at: datetime, took: float) -> bool:
    """Whether to recompute, while the run is in progress, what took `took` seconds."""
    return timezone.now() - made_at >= timedelta(seconds=RECOMPUTE_FACTOR * took)


_decode = msgspec.msgpack.Decoder(Figures).decode


def is_large(run: Run) -> bool:
    """Whether the run is too large for a page to compute its statistics."""
    return run.total > FEW


def at_once(run: Run) -> Kept:
    """The run's current figures, computed now if they are not cached. The database is not changed."""
    key = f"figures.{LAYOUT}:{run.pk}:{run.created_at.timestamp()}"
    kept: Kept | None = cache.get(key) or _stored(run)
    if kept is None or not kept.current(run):
        kept, _judgements = work_out(run)
        cache.set(key, kept, KEPT_SECONDS)
    return kept


def for_page(run: Run) -> Kept | None:
    """The run's stored figures; wakes a worker if there are none or they are outdated."""
    kept = _stored(run) if is_large(run) else at_once(run)
    if kept is None or kept.due(run):
        if KeptFigures.objects.filter(run=run, wanted=True).exists():
            workers.wake(work_out_figures)
        else:
            _have_made(run)
    elif run.rests and not RunOutcome.objects.filter(run=run, revision=kept.revision).exists():
        outcome_keep(run, kept.figures.report, kept.revision)
    return kept


def slices_for_page(run: Run, field: str, kept: Kept) -> slices.Slices:
    """Slices by a field. For a large run the stored ones; wakes a worker if there are none, or if they are older
    than `kept`."""
    if not is_large(run):
        return slices.Slices(slices.at_once(run, field, kept.revision), due=False)
    found = slices.kept(run, field, kept.revision)
    if found.due:
        slices.want(run, field)
        workers.wake(work_out_figures)
    return found


def want(run_id: int) -> None:
    """Request a run's figures when it ends, before a page does."""
    run = Run.objects.get(pk=run_id)
    if run.done:
        _have_made(run)


def _have_made(run: Run) -> None:
    KeptFigures.objects.update_or_create(run=run, defaults={"wanted": True})
    workers.wake(work_out_figures)


@task(queue_name=workers.DATA)
def work_out_figures() -> None:
    """Task: compute the requested figures of large runs."""
    keep_wanted()


def keep_wanted() -> None:
    """Compute and store requested figures and slices; they have priority over the worker's longer tasks.

    After a failure, the next request by a page tries again.
    """
    wanted = KeptFigures.objects.filter(wanted=True).order_by("run").values_list("run", flat=True)
    for pk in list(wanted):
        KeptFigures.objects.filter(run=pk).update(wanted=False)
        # Read after the update: a later change creates a new request.
        run = Run.objects.get(pk=pk)
        kept = _stored(run)
        if kept is not None and not kept.due(run):
            continue  # they were requested again during the computation
        _keep(run, *work_out(run))
        if field := slices.default_field(run):
            slices.want(run, field)
    slices.keep_wanted()


@transaction.atomic
def _keep(run: Run, made: Kept, judgements: DataFrame) -> None:
    KeptFigures.objects.filter(run=run).update(
        layout=LAYOUT,
        revision=made.revision,
        made_at=made.made_at,
        took=made.took,
        packed=msgspec.msgpack.encode(made.figures),
    )
    outcome_keep(run, made.figures.report, made.revision)
    verdict_items.keep(run, judgements, made.figures.report, made.revision)
    KeptMeans.objects.filter(run=run).delete()
    candidates = selectors.candidates_of(run)
    if len(candidates) < 2:
        return
    for metric_id, metric in selectors.metrics_of(run).items():
        mine, kind = counted(judgements, metric), made.figures.kind(metric.name)
        for candidate_id, name in candidates.items():
            means = means_of(mine, name, kind)
            KeptMeans.objects.create(
                run=run, run_metric_id=metric_id, candidate_id=candidate_id, packed=means.packed()
            )


def item_means(
    run: Run, figures: Figures, metric: int, candidates: tuple[int, int]
) -> list[ItemMeans] | None:
    """Means of the items behind a run's figures, for ids of the metric and the two candidates; None until a worker
    has computed them."""
    if not is_large(run):
        scale, names = selectors.metrics_of(run)[metric], selectors.candidates_of(run)
        mine, kind = counted(run_frame(run), scale), figures.kind(scale.name)
        return [means_of(mine, names[one], kind) for one in candidates]
    kept = KeptMeans.objects.filter(run=run, run_metric=metric, candidate__in=candidates)
    packed = dict(kept.values_list("candidate_id", "packed"))
    if len(packed) < 2:
        return None
    return [ItemMeans.unpacked(packed[one]) for one in candidates]


def _stored(run: Run) -> Kept | None:
    found = KeptFigures.objects.filter(run=run, layout=LAYOUT).first()
    if found is None or found.made_at is None:
        return None
    return Kept(_decode(found.packed), found.revision, found.made_at, found.took)


def work_out(run: Run) -> tuple[Kept, DataFrame]:
    """The run's figures, and the judgements that they come from."""
    began, made_at = time.monotonic(), timezone.now()
    definitions = definitions_now(run)
    metrics_by_key = {key: selectors.scaled(one) for key, one in definitions.items()}
    judgements, metrics = run_frame(run, definitions), list(metrics_by_key.values())
    features = features_of_answers(run, metrics)
    document = dict[str, Any](report(judgements, metrics, rows=run.rows, features=features))
    counts = selectors.overridden(run)
    for candidate, cells in document["candidates"].items():
        for metric, cell in cells.items():
            cell["overridden"] = counts[candidate, metric]
    _add_gold(document, selectors.gold_hits_of(run))
    flagged = selectors.answers_with_verdicts(run, metrics_by_key, selectors.candidates_of(run))
    document["planted"] = injected_verdicts(flagged, judgements, metrics)
    figures = Figures(
        report=document,
        rule_lines=rule_figures(run),
        retries=selectors.retries_of(run),
        truncated=selectors.truncated_of(run),
        paired={metric.name: paired_under(judgements, metric) for metric in metrics},
    )
    return Kept(figures, run.revision, made_at, time.monotonic() - began), judgements


def _add_gold(document: Mapping[str, Any], hits: Mapping[str, dict[str, int]]) -> None:
    """Add the number of gold items that each rater answered correctly."""
    for one in document["raters"]:
        for name, figures in one["each"].items():
            if name in hits:
                figures["gold"] = hits[name]
