"""A run's judgements as the table that figures are computed from: its own, the verdicts behind them, and people's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from django.db.models import Q

from datasets.core.formats.names import FORMATS
from datasets.core.variables import response_data
from datasets.models import Candidate, Response, Row
from datasets.references import NAME as REFERENCE_NAME
from datasets.references import reference_of
from judging.core.pipeline import MetricDefinition, Verdict as Said
from judging.core.statistics.frame import (
    COMBINED,
    REFERENCE,
    Author,
    Metric,
    Order,
    Source,
    Verdict,
    joined,
    judgement_frame,
    ordered,
    verdict_frame,
)
from judging.core.statistics.style import answer_features
from judging.core.values import SCORED, UNPARSED, outcome_of_value
from judging.people.models import Adjudication, EvaluationRater
from judging.people.messages import values_of
from judging.reports import selectors
from judging.runs.models import IMPORTED, PEOPLE, Judgement, Run

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_OPENED = 50_000
"""Judgements whose single verdicts are read: of a larger run those of every so many rows."""
MOST_TEXTS = 5_000
"""Answers whose texts are measured: of a larger run those of every so many rows."""
BATCH = 20_000
_PARTS = (
    "run_metric__name", "candidate__name", "candidate__version__number", "row__line", "response__number",
    "state_in_force", "value_in_force", "other_response__candidate__name",
    "other_response__candidate__version__number", "other_response__number", "rater_id", "source__kind",
    "source__name", "repeat", "shown_first", "drawn_with", "seconds", "override_value",
)  # fmt: skip
_verdicts = msgspec.json.Decoder(list[Said]).decode


def run_frame(run: Run, people: Iterable[Run] = ()) -> DataFrame:
    """The run's current judgements with the values in force, as `core.statistics.frame` describes, the verdicts behind
    them, and those of human evaluations (`people`, their runs) on the same answers, whose criteria are matched with the
    run's metrics by name. A million take some 150 MB."""
    metrics, evaluations = selectors.metrics_of(run), list(people)
    names = _names([run, *evaluations])
    by_name = {metric.name: metric for metric in metrics.values()}
    verdicts = [*_verdicts_of(run), *(one for each in evaluations for one in _verdicts_of(each))]
    candidates = {one: one for one in names}
    known = [one for one in verdicts if one.metric in by_name and one.candidate in candidates]
    frames = [verdict_frame(known, by_name, candidates)]
    if run.kind not in (PEOPLE, IMPORTED):
        frames.insert(0, _own(run, metrics, names))
    return ordered(joined(frames))


def shown_name(name: str, version: int) -> str:
    """A candidate's name in figures: references are kept with a version of their own, 0."""
    return REFERENCE if version == 0 and name == REFERENCE_NAME else name


def _names(runs: Sequence[Run]) -> list[str]:
    """Every candidate, those of the run first and in the order of its data, the reference last."""
    found: dict[str, None] = {}
    for run in runs:
        there = run.run_candidates.order_by("candidate").values_list(
            "candidate__name", "candidate__version__number"
        )
        found |= dict.fromkeys(shown_name(*one) for one in there)
    return sorted(found, key=REFERENCE.__eq__)


def _own(run: Run, metrics: dict[int, Metric], names: list[str]) -> DataFrame:
    """What the run's metrics say: one row for each judgement."""
    import pandas as pd

    known = selectors.candidates_of(run)
    rest = {name: name for name in names if name not in set(known.values())}
    definitions = selectors.definitions_of(run)
    authors = {key: author_of(one) for key, one in definitions.items()}
    frame = judgement_frame(
        selectors.current_judgements(run), metrics, {**known, **rest}, authors=authors
    )
    frame["candidate"] = frame["candidate"].cat.reorder_categories(names)
    both = [metrics[key].name for key, one in definitions.items() if in_both_orders(one)]
    if both:
        order = frame["order"].astype(object).where(~frame["metric"].isin(both).to_numpy(), "both")
        frame["order"] = pd.Categorical(order, categories=frame["order"].cat.categories)
    return _with_overrides(run, frame)


def author_of(definition: MetricDefinition) -> Author:
    """Who makes a metric's judgements: its last script, its rules, its one judge, or its judges together."""
    if definition.postprocess or not (definition.judges or definition.rules):
        return Author("script", "script")
    if definition.rules:
        return Author("rules", "rules")
    if definition.votes > 1:
        return Author(COMBINED, COMBINED)
    return Author(definition.judges[0].name, "judge")


def in_both_orders(definition: MetricDefinition) -> bool:
    """Whether a judgement is what one judge said in both orders."""
    alone = author_of(definition).source == "judge"
    return alone and definition.judges[0].both_orders


def _with_overrides(run: Run, frame: DataFrame) -> DataFrame:
    """Values that a reviewer set are the reviewer's, not a judge's."""
    import pandas as pd

    found = Judgement.objects.filter(run=run, current=True, override_value__isnull=False)
    places = set(
        found.values_list("run_metric__name", "candidate__name", "row__line", "response__number")
    )
    if not places:
        return frame
    lines = frame["row"].isin([line for _, _, line, _ in places]).to_numpy().nonzero()[0]
    part = frame.iloc[lines][["metric", "candidate", "row", "response"]].astype(object)
    mine = lines[[place in places for place in part.itertuples(index=False, name=None)]]
    by, source = frame["by"].astype(object), frame["source"].astype(object)
    by.iloc[mine] = source.iloc[mine] = "override"
    return frame.assign(
        by=pd.Categorical(by), source=pd.Categorical(source, categories=frame["source"].cat.categories)
    )


def _verdicts_of(run: Run) -> Iterator[Verdict]:
    """Verdicts that are rows of their own: people's, imported ones, and single ones behind a run's judgements."""
    if run.kind in (PEOPLE, IMPORTED):
        yield from _given(run)
        yield from _adjudicated(run)
    else:
        yield from _single(run)
        yield from _overridden(run)


def _given(run: Run) -> Iterator[Verdict]:
    raters = dict(EvaluationRater.objects.filter(evaluation__run=run).values_list("user_id", "pseudonym"))
    names = dict(run.verdict_sources.none().values_list("pk", "name"))
    authors = {metric: author_of(one) for metric, one in selectors.definitions_by_name(run).items()}
    found = Judgement.objects.filter(run=run, current=True).order_by("position")
    for values in found.values_list(*_PARTS).iterator(BATCH):
        given = dict(zip(_PARTS, values, strict=True))
        by, source = _author(given, raters, authors)
        yield Verdict(
            metric=given["run_metric__name"],
            candidate=shown_name(given["candidate__name"], given["candidate__version__number"]),
            row=given["row__line"],
            response=given["response__number"],
            state=given["state_in_force"],
            value=given["value_in_force"],
            by=by,
            source=source,
            other=_other(given),
            other_response=given["other_response__number"] or 0,
            repeat=given["repeat"],
            shown_first=given["shown_first"] or 0,
            drawn_with=_or_nan(given["drawn_with"]),
            seconds=_or_nan(given["seconds"]),
        )
