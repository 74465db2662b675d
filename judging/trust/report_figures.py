"""The licences of a run's judges in its report, and means corrected with their tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets.core.kinds import CHECKLIST, PASS_FAIL
from datasets.models import Dataset
from judging.core.licensing import coded, judged_as, places_of
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.carried_over import OpenedTest, carried_scores
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.licence import licence_figures, use_allowed, with_kappa_interval
from judging.core.statistics.means import Rate
from judging.core.statistics.ranking import under
from judging.core.statistics.report import report
from judging.core.statistics.uses import Thresholds
from judging.core.statistics.verdicts import with_own_values
from judging.records.models import Run, SourceKind
from judging.trust.criteria import criteria_of_licence
from judging.trust.models import Licence, LicenceState, Suspension
from judging.trust.selectors import licence_in_force, licence_state

if TYPE_CHECKING:
    from pandas import DataFrame

NO_RATE = Rate(None, None, None, 0, 0)


def add_licences(
    run: Run,
    definitions: Mapping[int, MetricDefinition],
    metrics: Mapping[int, ScaledMetric],
    document: dict[str, Any],
    judgements: DataFrame,
) -> None:
    """Add `licences`, one for each metric with judge models, and corrected means where the run has no ratings.
    `judgements`: the table that the document was computed from."""
    document["licences"] = []
    if not run.by_workers:
        document["licences"] = [
            licence_entry(name, None, judge) | {"here": None} for name, judge in _imported_judges(run)
        ]
        return
    for key, definition in definitions.items():
        if not definition.judges:
            continue
        licence = licence_in_force(definition, run.project)
        entry = licence_entry(metrics[key].name, licence, definition.judges[0].name)
        here = measured_on(licence, run.version.dataset) if licence else None
        document["licences"].append(entry | {"here": here})
    for licensed in licensed_tests(run, definitions, metrics):
        add_corrected(document, licensed, judgements)


@dataclass(frozen=True, slots=True, eq=False)
class LicensedTest:
    """The test behind the licence of a metric's judge. `kind`: of the verdicts; `opening`: its number; `state`: why the
    licence does not hold, if so; `labels`: whether the values are labels, which have no mean; `thresholds`: those in
    force at the opening; `criteria`: the test of a checklist by its criteria, None where it is not known."""

    metric: ScaledMetric
    judge: str
    kind: str
    opening: int
    state: str | None
    labels: bool
    test: OpenedTest
    thresholds: Thresholds
    criteria: OpenedTest | None = None


def licensed_tests(
    run: Run,
    definitions: Mapping[int, MetricDefinition],
    metrics: Mapping[int, ScaledMetric],
    *,
    with_criteria: bool = False,
) -> Iterator[LicensedTest]:
    """The tests behind the licences in a run's report, in the order of its metrics; `with_criteria`: those of
    checklists also by their criteria."""
    for key, definition in definitions.items() if run.by_workers else ():
        licence = licence_in_force(definition, run.project) if definition.judges else None
        if licence is not None:
            state = licence_state(licence)
            yield LicensedTest(
                metric=metrics[key],
                judge=licence.judge,
                kind=definition.kind,
                opening=licence.opening_number,
                state=None if state == LicenceState.VALID else state.value,
                labels=any(isinstance(value, str) for *_answer, value in licence.answers),
                test=opened_test(licence, definition.kind),
                thresholds=Thresholds(**licence.thresholds),
                criteria=_test_of_criteria(licence, definition) if with_criteria else None,
            )


def _imported_judges(run: Run) -> list[tuple[str, str]]:
    """(metric, its first judge model) of imported verdicts, which get no licence."""
    judged = run.judgements.filter(source__kind=SourceKind.JUDGE).order_by("run_metric__number", "source")
    pairs = judged.values_list("run_metric__name", "source__name").distinct()
    first: dict[str, str] = {}
    for name, judge in pairs:
        first.setdefault(name, judge)
    return list(first.items())


def measured_on(licence: Licence, dataset: Dataset) -> bool:
    """Whether its test was drawn from this data set."""
    opening = licence.opening
    return opening.test.split.dataset_id == dataset.pk if opening else licence.dataset_name == dataset.name


def failures_of(licence: Licence) -> float | None:
    """The share of people's failures in its test, of a checklist by criteria; None unless the verdicts are pass or
    fail."""
    if licence.figures["judged"] != "passes" or not licence.answers:
        return None
    passed, failed = (licence.figures.get(name) for name in ("passed", "failed"))
    if passed is not None and failed is not None:
        return float(failed / (passed + failed)) if passed + failed else None
    people = [float(answer[-1]) for answer in licence.answers]
    return 1 - sum(people) / len(people)


def licence_entry(
    metric: str, licence: Licence | None, judge: str, state: LicenceState | None = None
) -> dict[str, Any]:
    """An entry of the document's `licences`. `judge`: the name to give where there is no licence. `state`: its state,
    if already known."""
    state = (state or licence_state(licence)) if licence else None
    figures = licence.figures if licence else {}
    positive, negative = (figures.get(name) or {} for name in ("positive", "negative"))
    suspension = Suspension.objects.filter(licence=licence, lifted_at=None).first() if licence else None
    return {
        "metric": metric,
        "judge": licence.judge if licence else judge,
        "use": licence.use or None if licence and state == LicenceState.VALID else None,
        "state": state.value if state else "none",
        "reason": suspension.sentence if suspension else None,
        "dataset": licence.dataset_name if licence else None,
        "version": licence.dataset_version if licence else None,
        "opened_at": licence.opened_at.isoformat() if licence else None,
        "expires_at": licence.expires_at.isoformat() if licence and licence.expires_at else None,
        "opening": licence.opening_number if licence else None,
        "items": figures.get("items"),
        "failures": failures_of(licence) if licence else None,
        "tpr": positive.get("rate"),
        "tpr_low": positive.get("low"),
        "tpr_high": positive.get("high"),
        "tnr": negative.get("rate"),
        "tnr_low": negative.get("low"),
        "tnr_high": negative.get("high"),
        "kappa": figures.get("kappa"),
        "kappa_low": figures.get("kappa_low"),
        "kappa_high": figures.get("kappa_high"),
        "tier": licence.tier if licence else None,
    }


def opened_test(licence: Licence, kind: str) -> OpenedTest:
    """The values of both on the licence's test."""
    judge, people = ([answer[place] for answer in licence.answers] for place in (-2, -1))
    places = places_of(judge, people)
    rows = np.unique([answer[0] for answer in licence.answers], return_inverse=True)[1].astype(np.int64)
    of_judge, of_people = (np.array(coded(column, places)) for column in (judge, people))
    return OpenedTest(of_judge, of_people, rows, passes=kind == PASS_FAIL)


def _test_of_criteria(licence: Licence, definition: MetricDefinition) -> OpenedTest | None:
    pairs = criteria_of_licence(licence) if definition.kind == CHECKLIST else []
    if not pairs:
        return None
    keys, judge, people = zip(*pairs, strict=True)
    rows = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return OpenedTest(
        np.array(judge, dtype=np.float64), np.array(people, dtype=np.float64), rows, passes=True
    )


def add_corrected(document: dict[str, Any], licensed: LicensedTest, judgements: DataFrame) -> None:
    """Add means corrected with a licence's test, where the run has no ratings. Only of means of scores and passes:
    labels have none, and comparisons have win rates."""
    metric = licensed.metric
    if (
        licensed.labels
        or under(document, "corrected", metric.name)
        or any(
            cells[metric.name]["kind"] not in ("bool", "number", None)
            for cells in document["candidates"].values()
        )
    ):
        return
    own = _without_overrides(document, metric, judgements)
    scores, pairs = carried_scores(own, metric, licensed.judge, licensed.test, licensed.state)
    document["corrected"] += scores
    document["corrected_pairs"] += pairs


def _without_overrides(
    document: Mapping[str, Any], metric: ScaledMetric, judgements: DataFrame
) -> Mapping[str, Any]:
    """The document, with the metric's figures of the judge's own verdicts where some were overridden."""
    if not any(cells[metric.name]["overridden"] for cells in document["candidates"].values()):
        return document
    mine = judgements[(judgements["metric"] == metric.name).to_numpy()]
    own: Mapping[str, Any] = report(with_own_values(mine), [metric], rows=document["rows"])
    return own


def figures_of_test(licensed: LicensedTest) -> dict[str, Any]:
    """The figures in `licence_entry` that follow from the test's values, and the use that they allow. Empty for a
    checklist of which the criteria are not known."""
    test = licensed.criteria if licensed.kind == CHECKLIST else licensed.test
    if test is None:
        return {}
    judged = judged_as(licensed.kind)
    figures = licence_figures(test.judge, test.people, test.units, judged, licensed.opening)
    passes = judged == "passes"
    if passes:
        figures = with_kappa_interval(figures, test.judge, test.people, test.units)
    positive, negative = figures.positive or NO_RATE, figures.negative or NO_RATE
    return {
        "use": use_allowed(figures, licensed.thresholds) if licensed.state is None else None,
        "items": figures.items,
        "failures": float((test.people == 0).mean()) if passes else None,
        "tpr": positive.rate,
        "tpr_low": positive.low,
        "tpr_high": positive.high,
        "tnr": negative.rate,
        "tnr_low": negative.low,
        "tnr_high": negative.high,
        "kappa": figures.kappa,
        "kappa_low": figures.kappa_low,
        "kappa_high": figures.kappa_high,
    }
