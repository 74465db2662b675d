"""What people and judges say of the single criteria of checklists: a judge's licence goes by them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from judging.core.checklists import Checklist, Met, checklist_from, met_of
from judging.people.item_criteria import judged_by
from judging.people.labels import values_of
from judging.people.models import Adjudication, Evaluation
from judging.people.sent_items import half_decided
from judging.records.models import Judgement, JudgementQuerySet, Run, RunMetric, SourceKind
from judging.records.seal import BY_PEOPLE
from judging.trust.answers import ADJUDICATED, MAJORITY, ONE, Answer, row_keys
from judging.trust.models import Licence


def judged_criteria(run_metric: RunMetric, keys: Mapping[int, str]) -> dict[Answer, Met]:
    """A judge's verdicts on the criteria of each answer of a run. `keys`: of its rows, by line."""
    judgements = Judgement.objects.filter(run=run_metric.run_id, run_metric=run_metric, current=True)
    return {answer: met_of(checklist) for answer, checklist in _checklists(judgements, keys)}


def pairs_of_criteria(
    judged: Mapping[Answer, Met], labels: Mapping[Answer, Mapping[str, Any]]
) -> list[tuple[Answer, bool, bool]]:
    """(answer, what the judge says, what people say) of each criterion of which both say something; `labels`: those of
    a closed test."""
    return [
        (answer, judged[answer][criterion], met)
        for answer, label in labels.items()
        for criterion, met in label.get("criteria", {}).items()
        if criterion in judged.get(answer, {})
    ]


def criteria_of_licence(licence: Licence) -> list[tuple[str, bool, bool]]:
    """(key of the row, what the judge says, what people say) of each criterion in the test behind a checklist's
    licence; empty if its run was deleted."""
    opening = licence.opening
    run = opening.run if opening else None
    run_metric = run.metrics.filter(metric_version=licence.metric_version_id).first() if run else None
    if opening is None or run is None or run.deleted_at is not None or run_metric is None:
        return []
    labels = {Answer.of(label): label for label in opening.test.labels}
    rows = {answer.row for answer in labels}
    keys = row_keys(run.version, by_id=opening.test.split.by_id)[0]
    judged = judged_criteria(run_metric, {line: key for line, key in keys.items() if key in rows})
    return [
        (answer.row, of_judge, of_people) for answer, of_judge, of_people in pairs_of_criteria(judged, labels)
    ]


class PeoplesCriteria(NamedTuple):
    """What people say of an answer's criteria, and where that comes from (`answers.TIERS`)."""

    met: Met
    tier: str


def criteria_of_people(
    run: Run, run_metric: RunMetric, keys: Mapping[int, str]
) -> dict[Answer, PeoplesCriteria]:
    """People's verdicts on the criteria of each answer, also if they are sealed: the adjudicated ones, or else those of
    the majority. A criterion without a majority, or of which nobody could tell, is left out."""
    judgements = Judgement.objects.filter(run=run, run_metric=run_metric, current=True)
    if run.imported:
        judgements = judgements.filter(source__kind__in=BY_PEOPLE)
    votes: dict[Answer, list[Met]] = defaultdict(list)
    decided: dict[Answer, PeoplesCriteria] = {}
    adjudicated = judgements.filter(source__kind=SourceKind.ADJUDICATOR)
    for answer, checklist in _checklists(judgements.exclude(pk__in=adjudicated), keys):
        votes[answer].append(met_of(checklist))
    for answer, checklist in (*_checklists(adjudicated, keys), *_adjudicated(run, run_metric, keys)):
        decided[answer] = PeoplesCriteria(met_of(checklist), ADJUDICATED)
    by_vote = {
        answer: PeoplesCriteria(majority(met), MAJORITY if len(met) > 1 else ONE)
        for answer, met in votes.items()
    }
    return by_vote | decided


def majority(votes: Iterable[Met]) -> Met:
    """What more say than not, by criterion; without ties."""
    balance: dict[str, int] = defaultdict(int)
    for vote in votes:
        for criterion, met in vote.items():
            balance[criterion] += 1 if met else -1
    return {criterion: sum_of > 0 for criterion, sum_of in balance.items() if sum_of}


def _checklists(judgements: JudgementQuerySet, keys: Mapping[int, str]) -> list[tuple[Answer, Checklist]]:
    parts = ("row__line", "candidate__name", "response__number", "checklist")
    rows = judgements.exclude(checklist="").order_by("position").values_list(*parts)
    return [
        (Answer(keys[line], candidate, number, "", 0), checklist)
        for line, candidate, number, text in rows.iterator()
        if line in keys and (checklist := checklist_from(text)) is not None
    ]


def _adjudicated(run: Run, run_metric: RunMetric, keys: Mapping[int, str]) -> list[tuple[Answer, Checklist]]:
    """The decisions of an evaluation, the newest last."""
    evaluation = Evaluation.objects.filter(run=run).first() if run.by_people else None
    if evaluation is None:
        return []
    decisions = Adjudication.objects.filter(item__evaluation=evaluation).order_by("pk")
    decisions = decisions.exclude(item__in=half_decided(evaluation))
    decided = []
    for decision in decisions.select_related("item__row", "item__response__candidate"):
        item, value = decision.item, values_of(decision.values).get(run_metric.number)
        if value is None or item.row.line not in keys:
            continue
        checklist = judged_by(evaluation, item, run_metric.number, value)[0].checklist
        if checklist is not None:
            name, number = item.response.candidate.name, item.response.number
            decided.append((Answer(keys[item.row.line], name, number, "", 0), checklist))
    return decided
