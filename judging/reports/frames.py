"""The table of a run's judgements that statistics are computed from: its own, the single verdicts behind them, and
people's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
from django.db.models import F, QuerySet

from datasets.core.kinds import CHECKLIST
from datasets.core.variables import response_data
from datasets.models import Response, Row
from datasets.versions.references import reference_of
from judging.core.metric_definition import MetricDefinition
from judging.core.pairs import ORDERS_DISAGREE
from judging.core.results import Verdict
from judging.core.statistics.corrected import SENT
from judging.core.statistics.frame import (
    COMBINED,
    REFERENCE,
    Author,
    ScaledMetric,
    Source,
    VerdictRow,
    joined,
    judgement_frame,
    ordered,
    verdict_frame,
)
from judging.core.statistics.judges import answer_features
from judging.core.statistics.orders import with_settled_orders
from judging.core.values import SCORED, UNSETTLED, Outcome, outcome_of_value
from judging.filters.row_filters import id_subquery
from judging.people.asking.drawn import DrawnItem, drawn_items, rows_for_improving
from judging.people.item_criteria import Judged, has_checklist, judged_by
from judging.people.labels import values_of
from judging.people.models import Adjudication, Evaluation, Item
from judging.people.sampling import strata_of_draw
from judging.people.selectors import evaluations_of, rater_names
from judging.people.sent_items import half_decided
from judging.records.definitions import definitions_now
from judging.records.models import IMPORTED, PEOPLE, Judgement, Run
from judging.records.seal import SealedRows, sealed_of, unsealed
from judging.records.stored_judgement import verdict_in_order
from judging.reports import selectors
from judging.teamwork.marks import exclusions_of

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_OPENED = 50_000
"""Limit of judgements whose single verdicts are read; larger runs use every n-th row."""
MOST_TEXTS = 5_000
"""Limit of answers whose texts are measured; larger runs use every n-th row."""
BATCH = 20_000
_PARTS = (
    "run_metric__name", "candidate__name", "candidate__version__number", "row__line", "response__number",
    "state_in_force", "value_in_force", "other_response__candidate__name",
    "other_response__candidate__version__number", "other_response__number", "rater_id", "source__kind",
    "source__name", "repeat", "shown_first", "drawn_with", "seconds", "override_value", "detail",
    "response_id", "other_response_id",
)  # fmt: skip
_OTHER = ("other_response__candidate__name", "other_response__number", "shown_first")
Definitions = dict[int, MetricDefinition]
_verdicts = msgspec.json.Decoder(list[Verdict]).decode


def run_frame(
    run: Run,
    definitions: Definitions | None = None,
    *,
    with_sealed: bool = False,
    lines: Collection[int] | None = None,
) -> DataFrame:
    """Build the table described in `core.statistics.frame`: the run's current judgements with the values in force,
    the verdicts behind them, and those of the human evaluations of its answers, whose criteria are matched with the
    run's metrics by name. Answers excluded from this run by a reviewer are left out, labels of answers that only a
    rule sent, and people's labels of a sealed test, unless `with_sealed`. A million judgements take about 150 MB.
    `definitions`: the run's current ones, if already loaded. `lines`: only the verdicts on these rows."""
    definitions, evaluations = definitions or definitions_now(run), evaluations_of(run)
    raters, others = (
        rater_names(evaluations),
        [evaluation for evaluation in evaluations if evaluation.run_id != run.pk],
    )
    names = _names([run, *(evaluation.run for evaluation in others)])
    metrics = {key: selectors.scaled(definition) for key, definition in definitions.items()}
    by_name = {metric.name: metric for metric in metrics.values()}
    verdicts = list(_verdicts_of(run, definitions, raters, with_sealed=with_sealed, lines=lines))
    if run.by_people:
        improving = frozenset[int]().union(*map(rows_for_improving, evaluations))
        verdicts = [each for each in verdicts if each.draw != SENT or each.row in improving]
    for each in others:
        rated = _verdicts_of(
            each.run, definitions_now(each.run), raters, with_sealed=with_sealed, lines=lines
        )
        unfair = frozenset[int]() if with_sealed else rows_for_improving(each)
        rated = (verdict for verdict in rated if verdict.row not in unfair and verdict.draw != SENT)
        verdicts += _drawn_from_all(each, run, rated)
    candidates = {name: name for name in names}
    covered = [
        verdict for verdict in verdicts if verdict.metric in by_name and verdict.candidate in candidates
    ]
    if len(evaluations) > 1:
        covered = _newest(covered)
    frames = [with_settled_orders(verdict_frame(covered, by_name, candidates))]
    if run.kind not in (PEOPLE, IMPORTED):
        frames.insert(0, _own_judgements(run, definitions, names, lines))
    frame = _clustered(_without_excluded(run, joined(frames)), selectors.clusters_of(run))
    return ordered(_with_strata(frame, others))


def _without_excluded(run: Run, frame: DataFrame) -> DataFrame:
    """Drop all verdicts about an answer that is excluded under their metric, on either side."""
    import pandas as pd  # imported in functions: it takes 300 ms, and most processes do not need it

    excluded = exclusions_of(run)
    if not excluded.exists():
        return frame
    metrics = {
        pk: frame["metric"].cat.categories.get_loc(name) for pk, name in run.metrics.values_list("pk", "name")
    }
    candidates = frame["candidate"].cat.categories
    parts = ("run_metric_id", "response__candidate__name", "response__candidate__version__number",
             "response__row__line", "response__number")  # fmt: skip
    places = np.fromiter(
        (
            (metrics[metric], candidates.get_loc(selectors.shown_name(name, version)), line, number)
            for metric, name, version, line, number in excluded.values_list(*parts).iterator(BATCH)
        ),
        dtype=np.dtype((np.int64, 4)),
    )
    gone = pd.MultiIndex.from_arrays(list(places.T))
    others = candidates.get_indexer(frame["other"].cat.categories)
    sides = (
        (frame["candidate"].cat.codes, frame["response"]),
        (np.append(others, -1)[frame["other"].cat.codes], frame["other_response"]),
    )
    counted = np.ones(len(frame), dtype=np.bool_)
    for side, number in sides:
        counted &= ~pd.MultiIndex.from_arrays([frame["metric"].cat.codes, side, frame["row"], number]).isin(
            gone
        )
    return frame[counted].reset_index(drop=True)


def _clustered(frame: DataFrame, clusters: Mapping[int, str]) -> DataFrame:
    import pandas as pd

    return frame.assign(cluster=pd.Categorical(frame["row"].map(clusters))) if clusters else frame


def _with_strata(frame: DataFrame, evaluations: Sequence[Evaluation]) -> DataFrame:
    """Add the strata of the draw, if all of people's ratings come from a single one that had any."""
    import pandas as pd

    strata = strata_of_draw(evaluations[0]) if len(evaluations) == 1 else {}
    if not strata:
        return frame
    answers = Response.objects.filter(pk__in=id_subquery(list(strata)))
    parts = answers.values_list("candidate__name", "candidate__version__number", "row__line", "number", "pk")
    places = {
        (selectors.shown_name(name, version), line, number): strata[pk]
        for name, version, line, number, pk in parts.iterator(BATCH)
    }
    keys = zip(frame["candidate"].astype(object), frame["row"], frame["response"], strict=True)
    return frame.assign(stratum=pd.Categorical([places.get(key) for key in keys]))


def _names(runs: Sequence[Run]) -> list[str]:
    """All candidates, the run's first in the order of its data, the reference last."""
    names: dict[str, None] = {}
    for run in runs:
        pairs = run.run_candidates.order_by("candidate").values_list(
            "candidate__name", "candidate__version__number"
        )
        names |= dict.fromkeys(selectors.shown_name(*pair) for pair in pairs)
    return sorted(names, key=lambda name: name == REFERENCE)


def _own_judgements(
    run: Run, definitions: Definitions, names: list[str], lines: Collection[int] | None
) -> DataFrame:
    """The judgements of the run's metrics, one row each."""
    candidates = selectors.candidates_of(run)
    rest = {name: name for name in names if name not in set(candidates.values())}
    metrics = {key: selectors.scaled(definition) for key, definition in definitions.items()}
    authors = {key: author_of(definition) for key, definition in definitions.items()}
    frame = judgement_frame(
        selectors.current_judgements(run, lines), metrics, {**candidates, **rest}, authors=authors
    )
    frame["candidate"] = frame["candidate"].cat.reorder_categories(names)
    return _with_overrides(run, frame)


def author_of(definition: MetricDefinition) -> Author:
    """The author of a metric's judgements: its script, its rules, its only judge, or its judges combined."""
    if definition.scored_by_script:
        return Author("script", "script")
    if definition.rules:
        return Author("rules", "rules")
    if definition.votes > 1:
        return Author(COMBINED, "combined")
    (judge,) = definition.voters
    return Author(judge.name, "judge", "both" if judge.both_orders else "first")


def _with_overrides(run: Run, frame: DataFrame) -> DataFrame:
    """Attribute overridden values to the reviewer."""
    import pandas as pd

    overridden = Judgement.objects.filter(run=run, current=True, override_value__isnull=False)
    singles = overridden.filter(other_response=None)
    places = set(singles.values_list("run_metric__name", "candidate__name", "row__line", "response__number"))
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


def _drawn_from_all(evaluation: Evaluation, run: Run, verdicts: Iterable[VerdictRow]) -> Iterable[VerdictRow]:
    """Scale the sampling probabilities to the run's current number of rows. Rows added later could not be drawn, but
    which rows came first was random too."""
    then = evaluation.about_rows
    if then is None or then >= run.rows:
        return verdicts
    return (
        verdict if verdict.draw > 0 else verdict._replace(drawn_with=verdict.drawn_with * then / run.rows)
        for verdict in verdicts
    )


def _newest(verdicts: Iterable[VerdictRow]) -> list[VerdictRow]:
    """If a person rated an answer in several evaluations, keep the newest verdict."""
    newest: dict[tuple[Any, ...], VerdictRow] = {}
    for verdict in verdicts:
        about = (
            verdict.metric,
            verdict.candidate,
            verdict.row,
            verdict.response,
            verdict.other,
            verdict.other_response,
        )
        shown_first = verdict.shown_first if verdict.source == "judge" else 0
        author = verdict.by, verdict.source, verdict.repeat, verdict.order, shown_first, verdict.main
        newest[*about, *author] = verdict
    return list(newest.values())


def _verdicts_of(
    run: Run,
    definitions: Definitions,
    raters: Mapping[int, str],
    *,
    with_sealed: bool,
    lines: Collection[int] | None = None,
) -> Iterator[VerdictRow]:
    """Verdicts that become rows of their own: people's, imported ones, and the single ones behind a run's
    judgements. `lines`: those on other rows may be left out."""
    if run.kind in (PEOPLE, IMPORTED):
        yield from _current_verdicts(run, definitions, raters, with_sealed=with_sealed, lines=lines)
        yield from _adjudications(run, {} if with_sealed else sealed_of(run))
    else:
        if any(definition.compares_candidates for definition in definitions.values()):
            yield from _current_verdicts(run, definitions, raters, with_sealed=with_sealed, lines=lines)
        yield from _single_verdicts(run, definitions, lines)
        yield from _overridden_verdicts(run, definitions)


def _current_verdicts(
    run: Run,
    definitions: Definitions,
    raters: Mapping[int, str],
    *,
    with_sealed: bool,
    lines: Collection[int] | None,
) -> Iterator[VerdictRow]:
    """All current verdicts of an imported run or of people; those that compare candidates of other runs."""
    authors = {definition.name: author_of(definition) for definition in definitions.values()}
    drawn = drawn_items(run)
    judgements = selectors.on_lines(Judgement.objects.filter(run=run, current=True), run, lines)
    judgements = judgements.order_by("position")
    if run.by_workers:
        judgements = judgements.exclude(other_response=None)
    elif not with_sealed:
        judgements = unsealed(run, judgements)
    for values in judgements.values_list(*_PARTS).iterator(BATCH):
        row = dict(zip(_PARTS, values, strict=True))
        by, source = _author(row, raters, authors)
        order = (
            authors[row["run_metric__name"]].order
            if source == "judge" and not row["source__kind"]
            else "first"
        )
        state, value = row["state_in_force"], row["value_in_force"]
        if row["source__kind"]:
            state, value = verdict_in_order(state, value, row["detail"])
        yield VerdictRow(
            metric=row["run_metric__name"],
            candidate=selectors.shown_name(row["candidate__name"], row["candidate__version__number"]),
            row=row["row__line"],
            response=row["response__number"],
            state=state,
            value=value,
            by=by,
            source=source,
            other=_other_name(row),
            other_response=row["other_response__number"] or 0,
            repeat=row["repeat"],
            order=order,
            shown_first=row["shown_first"] or 0,
            **_draw_of(drawn.get((row["response_id"], row["other_response_id"])), row["drawn_with"]),
            seconds=_or_nan(row["seconds"]),
        )


def _draw_of(item: DrawnItem | None, drawn_with: float | None) -> dict[str, Any]:
    """What a verdict's item was drawn with."""
    if item is None:
        return {"drawn_with": _or_nan(drawn_with)}
    return {"drawn_with": _or_nan(item.drawn_with), "draw": item.draw, "known_to": item.known_to}


def _author(row: dict[str, Any], raters: Mapping[int, str], authors: dict[str, Author]) -> tuple[str, Source]:
    """The author of a verdict: a rater under the pseudonym, or the reviewer for an overridden value."""
    if row["override_value"] is not None and row["rater_id"] is None:
        return "override", "override"
    if row["rater_id"] is not None:
        return raters.get(row["rater_id"], f"rater {row['rater_id']}"), "rater"
    if row["source__kind"]:
        return row["source__name"], cast("Source", row["source__kind"])
    author = authors[row["run_metric__name"]]
    return author.by, author.source


def _other_name(row: dict[str, Any]) -> str | None:
    name = row["other_response__candidate__name"]
    return (
        None
        if name is None
        else selectors.shown_name(name, row["other_response__candidate__version__number"])
    )


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _adjudications(run: Run, sealed: SealedRows) -> Iterator[VerdictRow]:
    """The newest adjudication of each item, but for criteria and rows that are `sealed`, and for items sent with one
    that is not decided yet."""
    if run.kind != PEOPLE:
        return
    metrics = dict(run.metrics.values_list("number", "name"))
    evaluation = Evaluation.objects.get(run=run)
    adjudications = Adjudication.objects.filter(item__evaluation=evaluation).order_by("pk")
    adjudications = adjudications.exclude(item__in=half_decided(evaluation))
    drawn = drawn_items(run)
    newest = {adjudication.item_id: adjudication.values for adjudication in adjudications}
    candidates = [f"{answer}__candidate__version" for answer in ("response", "other_response")]
    items = Item.objects.filter(pk__in=newest).select_related("row", *candidates).order_by("pk")
    items = items.prefetch_related("further__response__candidate__version")
    items = items.defer("response__raw", "other_response__raw")
    for item in (items if has_checklist(evaluation) else items.defer("row__raw")).iterator(BATCH):
        for number, value in values_of(newest[item.pk]).items():
            if item.row_id not in sealed.get(metrics[number], ()):
                for judged in judged_by(evaluation, item, number, value):
                    draw = _draw_of(drawn.get((item.response_id, item.other_response_id)), item.drawn_with)
                    yield _decided(metrics[number], item, judged, draw)


def _decided(metric: str, item: Item, judged: Judged, draw: Mapping[str, Any]) -> VerdictRow:
    response = item.answers[judged.answer]
    other = None if judged.other is None else item.answers[judged.other]
    return VerdictRow(
        metric=metric,
        candidate=selectors.shown_name(response.candidate.name, response.candidate.version.number),
        row=item.row.line,
        response=response.number,
        state=judged.outcome.state,
        value=judged.outcome.value_json,
        by="adjudicator",
        source="adjudicator",
        other=selectors.shown_name(other.candidate.name, other.candidate.version.number) if other else None,
        other_response=other.number if other else 0,
        **draw,
    )


def _overridden_verdicts(run: Run, definitions: Definitions) -> Iterator[VerdictRow]:
    """The metric's own verdict where a reviewer overrode it."""
    authors = {definition.name: author_of(definition) for definition in definitions.values()}
    judgements = Judgement.objects.filter(
        run=run, current=True, override_value__isnull=False, state__in=(SCORED, UNSETTLED)
    )
    parts = ("run_metric__name", "candidate__name", "row__line", "response__number", "state", "value")
    for metric, name, line, number, state, value, other, other_number, shown_first in (
        judgements.order_by("position").values_list(*parts, *_OTHER).iterator(BATCH)
    ):
        author = authors[metric]
        yield VerdictRow(
            metric,
            name,
            line,
            number,
            state,
            value,
            author.by,
            author.source,
            other,
            other_number or 0,
            order=author.order,
            main=False,
            shown_first=shown_first or 0,
        )


def _single_verdicts(
    run: Run, definitions: Definitions, lines: Collection[int] | None
) -> Iterator[VerdictRow]:
    """Each judge's single verdicts, for metrics with more than one verdict per judgement. A checklist's are about
    criteria, not the answer."""
    opened = {key: definition for key, definition in definitions.items() if _is_opened(definition)}
    if not opened:
        return
    judgements = Judgement.objects.filter(run=run, current=True, run_metric__in=opened)
    judgements = selectors.on_lines(judgements.exclude(verdicts=""), run, lines)
    every = 1 if lines is not None else -(-run.total // MOST_OPENED)
    if every > 1:
        judgements = judgements.annotate(part=F("row__line") % every).filter(part=0)
    parts = ("run_metric_id", "verdicts", "candidate__name", "row__line", "response__number", *_OTHER[:2])
    for metric, text, *answers in judgements.order_by("position").values_list(*parts).iterator(BATCH):
        definition = opened[metric]
        for verdict in _verdicts(text):
            if not (verdict.order == "both" and author_of(definition).source == "judge"):
                yield single_verdict(definition, verdict, *answers)


def _is_opened(definition: MetricDefinition) -> bool:
    judged = bool(definition.judges) and not definition.rules and definition.gives != CHECKLIST
    return judged and (author_of(definition).source != "judge" or definition.judges[0].both_orders)


def single_verdict(
    definition: MetricDefinition,
    verdict: Verdict,
    name: str,
    line: int,
    number: int,
    other: str | None,
    other_number: int | None,
) -> VerdictRow:
    shown_first = 0
    if other is not None and verdict.order != "both":
        shown_first = 1 if verdict.order == "first" else 2
    if verdict.value is not None:
        outcome = outcome_of_value(verdict.value)
    elif verdict.reason == ORDERS_DISAGREE:
        outcome = Outcome.unsettled(verdict.reason)
    else:
        outcome = Outcome.unparsed(verdict.reason)
    return VerdictRow(
        metric=definition.name,
        candidate=name,
        row=line,
        response=number,
        state=outcome.state,
        value=outcome.value_json,
        by=definition.judge_name(verdict.judge),
        source="judge",
        other=other,
        other_response=other_number or 0,
        repeat=verdict.repeat + 1,
        order=verdict.order,
        main=False,
        shown_first=shown_first,
    )


def features_of_answers(run: Run, metrics: Collection[ScaledMetric] | None = None) -> DataFrame:
    """Features of the run's answers and of references compared with them; for a large run only of some rows.
    `metrics`: the run's, if already loaded."""
    metrics = selectors.metrics_of(run).values() if metrics is None else metrics
    return answer_features(texts_of_answers(run, metrics, every=measured_rows(run)))


def measured_rows(run: Run) -> int:
    """Every how manieth row has its answers measured."""
    return max(1, -(-run.rows * len(selectors.candidates_of(run)) // MOST_TEXTS))


def texts_of_answers(
    run: Run, metrics: Iterable[ScaledMetric], *, every: int = 1
) -> Iterator[tuple[str, int, int, str]]:
    """(candidate, row, response, text) of the run's answers in every n-th row, then of references if compared."""
    candidates = selectors.candidates_of(run)
    answers = answers_of(run, list(candidates), every)
    texts = ((name, row, number, str(response_data(raw)["content"])) for name, row, number, raw in answers)
    return chain(texts, references_of(run, candidates, metrics, every))


def _some_rows(run: Run, every: int) -> QuerySet[Row]:
    rows = Row.objects.filter(version=run.version_id, valid=True)
    return rows.annotate(part=F("line") % every).filter(part=0) if every > 1 else rows


def answers_of(run: Run, candidates: Sequence[int], every: int = 1) -> Iterator[tuple[str, int, int, str]]:
    """(candidate, row, response, its JSON) of the candidates' answers in every n-th row."""
    responses = Response.objects.filter(candidate__in=candidates, row__version=run.version_id).exclude(raw="")
    if every > 1:
        responses = responses.filter(row__in=_some_rows(run, every).values("pk"))
    parts = ("candidate__name", "row__line", "number", "raw")
    yield from responses.values_list(*parts).iterator(BATCH)


def references_of(
    run: Run, candidates: Mapping[int, str], metrics: Iterable[ScaledMetric], every: int = 1
) -> Iterator[tuple[str, int, int, str]]:
    """References as answers, if answers are compared with them."""
    compared = any(metric.compares for metric in metrics)
    if not compared and REFERENCE not in candidates.values():
        return
    for row in _some_rows(run, every).iterator(BATCH):
        text = reference_of(row, run.version.format)
        if text is not None:
            yield REFERENCE, row.line, 1, text
