"""Agreement of a metric's versions with people on the dev rows, and where they disagree. Test rows never enter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from django.db.models import Count, F, QuerySet

from datasets.core.kinds import CHECKLIST
from judging.core.licensing import DEV, TRAIN
from judging.core.statistics.means import Rate, rate_of, sign_test
from judging.core.statistics.verdicts import STEPS
from judging.core.values import Value
from judging.metrics.models import Metric
from judging.records.definitions import definition_now
from judging.records.models import Run, RunMetric
from judging.reports.labels import signed
from judging.trust.answers import (
    ONE,
    Answer,
    Label,
    judge_values,
    labels_of,
    row_keys,
    says_the_same,
    value_author,
    verdicts_of,
)
from judging.trust.criteria import PeoplesCriteria, criteria_of_people, judged_criteria
from judging.trust.looked import looked_labels
from judging.trust.models import Split

MOST_VERSIONS = 5
"""The newest versions whose agreement is computed."""


@dataclass(frozen=True, slots=True)
class Change:
    """From an earlier version to this one, on the answers that both judged: the difference of agreement (−1…1), how
    many verdicts turned right and wrong, and p of the exact sign test."""

    version: int
    difference: float
    right: int
    wrong: int
    p: float

    @property
    def signed(self) -> str:
        return signed(self.difference) if abs(self.difference) >= 0.0005 else "±0"


@dataclass(frozen=True, slots=True)
class DevAgreement:
    """A version's agreement with people on the dev rows, in its newest run."""

    run_metric: RunMetric
    version: int
    rate: Rate
    agrees: Agreeing
    change: Change | None

    @property
    def run(self) -> Run:
        return self.run_metric.run

    @property
    def wrong(self) -> int:
        return sum(not agrees for agrees in self.agrees.values())


def runs_of(metric: Metric, split: Split) -> QuerySet[RunMetric]:
    """The runs in which versions of the metric judged rows of the split's data set."""
    used = RunMetric.objects.filter(
        metric_version__metric=metric, run__version__dataset=split.dataset_id, run__deleted_at=None
    )
    return used.filter(run__in=Run.objects.by_workers().with_verdicts())


def run_metrics_of(metric: Metric, split: Split, *, fullest: bool = False) -> list[RunMetric]:
    """The newest run of each version of the metric on the split's data set, newest version first. `fullest`: the newest
    of those over the most answers."""
    used = runs_of(metric, split)
    newest: dict[int, RunMetric] = {}
    if fullest:
        used = used.annotate(answers=F("run__rows") * Count("run__run_candidates"))
    used = used.order_by(*(["-answers"] if fullest else []), "-run")
    for run_metric in used.select_related("run__version__dataset", "metric_version"):
        newest.setdefault(run_metric.metric_version_id or 0, run_metric)
    return sorted(
        newest.values(), key=lambda each: -(each.metric_version.number if each.metric_version else 0)
    )


def labels_in(split: Split, *parts: str) -> dict[Answer, Label]:
    """People's values on the rows of these parts, in train also those of answers that were looked at. Raises ValueError
    for the test, which is sealed."""
    if not {DEV, TRAIN}.issuperset(parts):
        raise ValueError(parts)
    labels: dict[Answer, Label] = {}
    if TRAIN in parts:
        labels = {answer: Label(label.passed, ONE) for answer, label in looked_labels(split).items()}
    for rated in _rated_criteria(split):
        keys = keys_in(split, rated.run, *parts)
        verdicts, _metric = verdicts_of(rated.run, rated, lines=keys)
        labels |= labels_of(verdicts, keys)
    return labels


def _rated_criteria(split: Split) -> list[RunMetric]:
    """Under which people's verdicts are stored, one for each draw; none if they were deleted."""
    of_runs = [run.metrics.filter(name=split.criterion) for run in split.test.labelled_runs]
    return [rated for found in of_runs for rated in found.select_related("run__version")]


def keys_in(split: Split, run: Run, *parts: str) -> dict[int, str]:
    """{line: key} of the rows of a run's version that are in the split; with `parts` only in these."""
    rows = split.rows.filter(part__in=parts) if parts else split.rows.all()
    keys = set(rows.values_list("key", flat=True))
    return {line: key for line, key in row_keys(run.version, by_id=split.by_id)[0].items() if key in keys}


def values_in(split: Split, run_metric: RunMetric) -> dict[Answer, Value]:
    """The metric's values in a run, by answer."""
    keys = keys_in(split, run_metric.run)
    verdicts, _metric = verdicts_of(run_metric.run, run_metric, lines=keys)
    judge = value_author(verdicts)
    return judge_values(verdicts, judge, keys) if judge else {}


class AnswersCriterion(NamedTuple):
    """A criterion of a checklist, of an answer."""

    answer: Answer
    criterion: str

    @property
    def row(self) -> str:
        """The key of the answer's row."""
        return self.answer.row


Agreeing = Mapping[Answer | AnswersCriterion, bool]
"""Whether judge and people say the same, of each answer with both, or of checklists by criterion."""


def agreeing_on_dev(split: Split, run_metric: RunMetric, labels: Mapping[Answer, Label]) -> Agreeing:
    """On the dev rows, whose `labels` these are."""
    if definition_now(run_metric).kind == CHECKLIST:
        by_criterion = _agreeing_criteria(split, run_metric, DEV)
        return {criterion: agree for criterion, agree in by_criterion.items()}  # noqa: C416, a wider type of keys
    return agrees_with(values_in(split, run_metric), labels)


def _agreeing_criteria(split: Split, run_metric: RunMetric, *parts: str) -> dict[AnswersCriterion, bool]:
    people: dict[Answer, PeoplesCriteria] = {}
    for rated in _rated_criteria(split):
        people |= criteria_of_people(rated.run, rated, keys_in(split, rated.run, *parts))
    judged = judged_criteria(run_metric, keys_in(split, run_metric.run, *parts))
    return {
        AnswersCriterion(answer, criterion): judged[answer][criterion] == met
        for answer, said in people.items()
        for criterion, met in said.met.items()
        if criterion in judged.get(answer, {})
    }


def dev_agreements(split: Split) -> list[DevAgreement]:
    """Of the newest versions, newest first, each with what changed from the version before it."""
    labels = labels_in(split, DEV)
    agreements: list[DevAgreement] = []
    for run_metric in reversed(run_metrics_of(split.metric, split)[:MOST_VERSIONS] if labels else []):
        if run_metric.metric_version is not None:
            before = agreements[-1] if agreements else None
            number = run_metric.metric_version.number
            if agreement := agreement_of(split, run_metric, labels, number, before):
                agreements.append(agreement)
    return agreements[::-1]


def agreement_of(
    split: Split,
    run_metric: RunMetric,
    labels: Mapping[Answer, Label],
    version: int,
    before: DevAgreement | None,
) -> DevAgreement | None:
    """The agreement in a run with these labels, with what changed from another one; None without an answer that has
    both."""
    agrees = agreeing_on_dev(split, run_metric, labels)
    if not agrees:
        return None
    change = _change(before, agrees) if before else None
    return DevAgreement(run_metric, version, rate_by_rows(agrees), agrees, change)


def agrees_with(
    values: Mapping[Answer, Value], labels: Mapping[Answer, Label]
) -> dict[Answer | AnswersCriterion, bool]:
    """{answer: whether judge and people say the same} of the answers with both."""
    return {
        answer: says_the_same(values[answer], label.value)
        for answer, label in labels.items()
        if answer in values
    }


def rate_by_rows(agrees: Agreeing) -> Rate:
    """The share of equal values, with its interval by rows."""
    rows = np.unique([answer.row for answer in agrees], return_inverse=True)[1].astype(np.int64)
    return rate_of(np.array([float(equal) for equal in agrees.values()]), rows)


def _change(before: DevAgreement, agrees: Agreeing) -> Change | None:
    both = [answer for answer in agrees if answer in before.agrees]
    if not both:
        return None
    right = sum(agrees[answer] and not before.agrees[answer] for answer in both)
    wrong = sum(before.agrees[answer] and not agrees[answer] for answer in both)
    return Change(before.version, (right - wrong) / len(both), right, wrong, sign_test(right, wrong))


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer on which a judge and people differ."""

    answer: Answer
    part: str
    judge: Value
    people: Value
    distance: float


def disagreements(split: Split, run_metric: RunMetric) -> list[Disagreement]:
    """On dev and train rows: false passes first, then false fails, then by distance."""
    values = values_in(split, run_metric)
    differs = _criteria_that_differ(split, run_metric)
    parts = dict(split.rows.filter(part__in=(DEV, TRAIN)).values_list("key", "part"))
    differing = [
        Disagreement(
            answer, parts[answer.row], values[answer], label.value, _distance(values[answer], label.value)
        )
        for answer, label in labels_in(split, DEV, TRAIN).items()
        if answer in values and (answer in differs or not says_the_same(values[answer], label.value))
    ]
    return sorted(differing, key=_worst_first)


def _criteria_that_differ(split: Split, run_metric: RunMetric) -> set[Answer]:
    """The answers of whose checklists they say something else of a criterion."""
    if definition_now(run_metric).kind != CHECKLIST:
        return set()
    agrees = _agreeing_criteria(split, run_metric, DEV, TRAIN)
    return {each.answer for each, same in agrees.items() if not same}


def _worst_first(differing: Disagreement) -> tuple[int, float, bool]:
    kinds: Sequence[Value] = (True, False)
    place = kinds.index(differing.judge) if isinstance(differing.judge, bool) else 2
    return place, -differing.distance, differing.part == TRAIN


def _distance(judge: Value, people: Value) -> float:
    if judge in STEPS and people in STEPS:
        return abs(STEPS[str(judge)] - STEPS[str(people)])
    return 1.0 if isinstance(judge, str) or isinstance(people, str) else abs(float(judge) - float(people))
