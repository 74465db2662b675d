"""A licence's figures as its page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets.core.kinds import CHECKLIST
from evalsite.rounding import rounded
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.licence import FEWEST_OF_LABEL, FEWEST_TEST_ROWS
from judging.core.statistics.uses import USES, Thresholds
from judging.trust.models import Licence, LicenceState
from judging.trust.selectors import licence_state

FEWEST_PLACES, MOST_PLACES = 2, 6


@dataclass(frozen=True, slots=True)
class CountedRate:
    """A rate as a count of verdicts, with its interval (0…1), to be shown with so many decimal `places`."""

    right: int
    of: int
    rate: float | None
    low: float | None
    high: float | None
    places: int


@dataclass(frozen=True, slots=True)
class LicencePage:
    """`failing`: the share of failures by people in the test, None where it does not hold passes and failures.
    `criteria`: whether its items are criteria of checklists, of so many `answers`. `allowed`: (use, whether it is now);
    `kappa_places`: decimal places of kappa's interval; `use_in_report`: whether it holds, and its run is there;
    `trends`, `gates`: the least lower bounds that were in force at the opening."""

    state: LicenceState
    passes: bool
    criteria: bool
    answers: int
    agreement: CountedRate
    positive: CountedRate | None
    negative: CountedRate | None
    failing: float | None
    allowed: list[tuple[str, bool]]
    kappa_places: int
    use_in_report: bool
    trends: float
    gates: float
    too_few_rows: bool
    too_few_labels: bool
    level: float


def licence_page(licence: Licence) -> LicencePage:
    """What its page shows."""
    figures, thresholds = licence.figures, Thresholds(**licence.thresholds)
    passes = figures["judged"] == "passes"
    kind = MetricDefinition.from_json(licence.metric_version.definition).kind
    people = [answer[-1] for answer in licence.answers]
    failures = figures.get("failed")
    if failures is None:  # an older licence
        failures = sum(value is False for value in people)
    items = figures["items"]
    state, run = licence_state(licence), licence.opening.run if licence.opening else None
    allowed = USES[: USES.index(licence.use) + 1] if licence.use in USES else ()
    needed = thresholds.rate if passes else thresholds.kappa
    least = (needed("trends"), needed("gates"))
    return LicencePage(
        state=state,
        passes=passes,
        agreement=_counted(figures["agreement"], items),
        positive=_counted(figures["positive"], items - failures, least) if passes else None,
        negative=_counted(figures["negative"], failures, least) if passes else None,
        failing=failures / items if passes and items else None,
        criteria=kind == CHECKLIST,
        answers=figures.get("answers") or len(people),
        allowed=[(use, use in allowed and state == LicenceState.VALID) for use in USES],
        kappa_places=FEWEST_PLACES if passes else places_below(figures["kappa_low"], least),
        use_in_report=state == LicenceState.VALID and run is not None and run.deleted_at is None,
        trends=needed("trends"),
        gates=needed("gates"),
        too_few_rows=figures["rows"] < FEWEST_TEST_ROWS,
        too_few_labels=figures["judged"] == "labels" and figures["rarest"] < FEWEST_OF_LABEL,
        level=1 - 0.05 / 2 ** (licence.opening_number - 1),
    )


def _counted(rate: Mapping[str, Any], of: int, least: Sequence[float] = ()) -> CountedRate:
    places = places_below(rate["low"], least)
    return CountedRate(rate["count"], of, rate["rate"], rate["low"], rate["high"], places)


def places_below(low: float | None, least: Sequence[float]) -> int:
    """The decimal places, at least two, with which a lower end is not shown as one of the `least` ones it misses."""
    missed = [threshold for threshold in least if low is not None and low < threshold]
    for places in range(FEWEST_PLACES, MOST_PLACES):
        if all(rounded(low or 0.0, places) < rounded(threshold, places) for threshold in missed):
            return places
    return MOST_PLACES


def judges_of(licence: Licence) -> list[str]:
    """The judge models of the licensed version."""
    definition = MetricDefinition.from_json(licence.metric_version.definition)
    return [judge.model or judge.name for judge in definition.judges]
