"""Where a test of a judge can be drawn: answers of a run or of a version, with the rows that are set aside."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from django.db.models import QuerySet

from datasets.core.kinds import CHECKLIST
from datasets.models import Candidate, Row, Version
from datasets.selectors import usable_versions
from datasets.versions.references import reference_of
from judging.core.checklists import checklist_from, met_of
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.looking import group_share
from judging.core.values import NOT_RUN
from judging.look.models import LookAnswer, SetAside, TrainLabel
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.people.presets import candidates_of
from judging.records.models import Judgement, Run, RunMetric
from judging.trust.answers import row_keys
from judging.trust.models import Split

OFFERED = 20
"""Runs, and versions, that the form offers, newest first."""
REFERENCES_SOUGHT = 200  # rows


@dataclass(frozen=True)
class AnswerSource:
    """The answers of a run, or those that came with a version."""

    version: Version
    run: Run | None = None

    @property
    def code(self) -> str:
        """Its name in the form."""
        return f"run-{self.run.pk}" if self.run else f"version-{self.version.pk}"

    @property
    def name(self) -> str:
        return self.run.name if self.run else f"{self.version.dataset.name} v{self.version.number}"


@dataclass(frozen=True)
class Source(AnswerSource):
    """Answers that people rate for a judge's test. `with_reference`: each beside the reference of its row."""

    with_reference: bool = False

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Those whose answers people rate."""
        if self.run is None:
            return list(candidates_of(self.version))
        of_run = self.run.run_candidates.values("candidate")
        return list(Candidate.objects.filter(pk__in=of_run).order_by("name"))

    @cached_property
    def rows(self) -> dict[int, int]:
        """{line: id} of the rows with answers to rate."""
        rows = Row.objects.filter(version=self.version, valid=True)
        if self.run is not None:
            judged = Judgement.objects.filter(run=self.run, current=True).exclude(state_in_force=NOT_RUN)
            rows = rows.filter(pk__in=judged.order_by().values("row").distinct())
        if self.with_reference:
            texts = rows.order_by("line").only("line", "raw").iterator(500)
            return {row.line: row.pk for row in texts if reference_of(row, self.version.format)}
        return dict(rows.order_by("line").values_list("line", "pk"))

    @cached_property
    def has_reference(self) -> bool:
        """Whether one of the first rows has a reference that raters can see beside an answer."""
        rows = Row.objects.filter(version=self.version, valid=True).order_by("line")[:REFERENCES_SOUGHT]
        return not self.with_reference and any(reference_of(row, self.version.format) for row in rows)

    @cached_property
    def keys(self) -> tuple[dict[int, str], bool]:
        """The keys of the version's rows (`row_keys`)."""
        return row_keys(self.version)

    @cached_property
    def aside(self) -> set[int]:
        """The lines of its rows that are set aside for tests, also before the version was changed."""
        ids: dict[int, set[int]] = {}
        for version, rows in SetAside.objects.filter(version__dataset=self.version.dataset_id).values_list(
            "version", "rows"
        ):
            ids.setdefault(version, set()).update(rows)
        return self._lines_of(ids)

    def trained(self, metric: Metric) -> set[int]:
        """The lines of its rows whose answers were looked at before the metric was written."""
        labels = TrainLabel.objects.filter(metric=metric, version__dataset=self.version.dataset_id)
        ids: dict[int, set[int]] = {}
        for version, row in labels.values_list("version", "row"):
            ids.setdefault(version, set()).add(row)
        return self._lines_of(ids) - self.aside

    def _lines_of(self, ids: dict[int, set[int]]) -> set[int]:
        """The lines of rows here that equal the rows with these ids, by version."""
        here = ids.pop(self.version.pk, set())
        lines = {line for line, pk in self.rows.items() if pk in here}
        keys, by_id = self.keys
        for version in Version.objects.filter(pk__in=ids):
            of_version = dict(Row.objects.filter(pk__in=ids[version.pk]).values_list("line", "pk"))
            theirs, _by_id = row_keys(version, by_id=by_id)
            wanted = {theirs[line] for line in of_version if line in theirs}
            lines |= {line for line in self.rows if keys.get(line) in wanted}
        return lines

    @property
    def drawable(self) -> int:
        """How many rows its test can have: those set aside, or all where nobody looked."""
        return len(self.aside & set(self.rows)) if self.aside else len(self.rows)

    @property
    def answers_per_row(self) -> int:
        return max(1, len(self.candidates))


def sources_of(metric: Metric) -> list[Source]:
    """The runs and versions with answers on data sets that are not split for the metric yet: those that the metric
    judged or was written from first, then the newest."""
    split = Split.objects.filter(metric=metric).values("dataset")
    judged = _judged(metric).exclude(version__dataset__in=split)
    return _sources(metric, judged, usable_versions(metric.project).exclude(dataset__in=split))


def sources_in(split: Split) -> list[Source]:
    """The runs and versions with answers on the data set of a split, the newest first."""
    metric = split.metric
    judged = _judged(metric).filter(version__dataset=split.dataset_id)
    sources = _sources(metric, judged, usable_versions(metric.project).filter(dataset=split.dataset_id))
    return sorted(sources, key=lambda source: -source.version.number)


def _sources(metric: Metric, judged: QuerySet[Run], usable: QuerySet[Version]) -> list[Source]:
    runs = _runs_of(metric, judged)
    versions = [version for version in usable[:OFFERED] if version.models_found]
    looked = TrainLabel.objects.filter(metric=metric).values_list("run", "version").first()
    compared = MetricDefinition.from_json(newest_version(metric).definition).compares_reference
    sources = [
        *(Source(run.version, run, compared) for run in runs),
        *(Source(version, None, compared) for version in versions),
    ]
    return sorted(sources, key=lambda source: not _looked_at(source, looked))


def _looked_at(source: Source, looked: tuple[int | None, int] | None) -> bool:
    return looked is not None and looked == (source.run.pk if source.run else None, source.version.pk)


def _judged(metric: Metric) -> QuerySet[Run]:
    judged = Run.objects.by_workers().with_verdicts().filter(project=metric.project, archived_at=None)
    return judged.filter(version__deleted_at=None).select_related("version__dataset").order_by("-pk")


def _runs_of(metric: Metric, judged: QuerySet[Run]) -> list[Run]:
    mine = list(judged.filter(metrics__metric_version__metric=metric).distinct()[:OFFERED])
    others = [run for run in judged[:OFFERED] if run not in mine]
    return mine + others


LOOK, JUDGE = "look", "judge"
LOOKED_AT = 500  # judgements


@dataclass(frozen=True, slots=True)
class FailureRate:
    """The share of failures (0…1) and who says so: people in a look, or the judge in a run."""

    share: float
    by: str


def failure_rate(metric: Metric) -> FailureRate | None:
    """What is known of how often answers fail: by people where they looked, else by the judge; None if nothing is."""
    labels = list(TrainLabel.objects.filter(metric=metric).values_list("response", "row", "passed"))
    if labels:
        chances = _chances([response for response, _row, _passed in labels])
        share, _interval = group_share(
            np.array([not passed for *_of, passed in labels]),
            np.array([1 / chances.get(response, 1.0) for response, *_of in labels]),
            np.array([row for _response, row, _passed in labels]),
        )
        return FailureRate(share, LOOK)
    run_metric = RunMetric.objects.filter(metric_version__metric=metric, run__deleted_at=None)
    newest = run_metric.filter(run__scored__gt=0).order_by("-pk").first()
    if newest is None:
        return None
    if MetricDefinition.from_json(newest.definition).kind == CHECKLIST:
        return _unmet_share(newest)
    judged = _scored(newest)
    total = judged.count()
    return FailureRate(judged.filter(score_in_force=0).count() / total, JUDGE) if total else None


def _unmet_share(run_metric: RunMetric) -> FailureRate | None:
    """The share of criteria that the judge says are not met, over the first judgements."""
    judged = Judgement.objects.filter(run=run_metric.run_id, run_metric=run_metric, current=True)
    texts = judged.exclude(checklist="").order_by("position").values_list("checklist", flat=True)
    checklists = [checklist for text in texts[:LOOKED_AT] if (checklist := checklist_from(text))]
    met = [met for checklist in checklists for met in met_of(checklist).values()]
    return FailureRate(1 - sum(met) / len(met), JUDGE) if met else None


def _scored(run_metric: RunMetric) -> QuerySet[Judgement]:
    judged = Judgement.objects.filter(run=run_metric.run_id, run_metric=run_metric, current=True)
    return judged.filter(score_in_force__isnull=False)


def _chances(responses: Collection[int]) -> dict[int, float]:
    """{response: the probability with which a look drew it}."""
    drawn = LookAnswer.objects.filter(response__in=responses).order_by("-pk")
    return dict(drawn.values_list("response", "drawn_with"))
