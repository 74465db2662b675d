"""The answers on which a judge and people differ, as a page shows them: both values and both reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datasets.core.variables import response_data
from datasets.models import Response, Row
from evalsite.truncation import truncate
from judging.core.licensing import TRAIN
from judging.filters.addresses import judgement_url
from judging.look.judge_from_group import as_text
from judging.messages import verdict_texts
from judging.people.models import Assignment, AssignmentState
from judging.records.models import Judgement, RunMetric
from judging.records.stored_judgement import data_of
from judging.reports.disagreements import first_replies
from judging.trust.answers import Answer
from judging.trust.dev import Disagreement, disagreements, keys_in
from judging.trust.models import Split

LISTED = 100
EXCERPT = 1_000  # characters
EXAMPLE = "Question: %(question)s\nAnswer: %(answer)s\nVerdict: %(people)s\nReason: %(note)s\n"


@dataclass(frozen=True, slots=True)
class ShownDisagreement:
    """`reply`: the judge's; `comments`: people's; `response`: id of the answer; `train`: whether it may be shown in a
    prompt, and then `example`, what to put there."""

    kind: str
    train: bool
    candidates: str
    question: str
    answer: str
    judge: str
    people: str
    reply: str
    comments: Sequence[str]
    url: str
    response: int
    example: str


def shown_disagreements(split: Split, run_metric: RunMetric) -> list[ShownDisagreement]:
    """False passes first, then false fails, then by distance; at most a hundred."""
    differing = disagreements(split, run_metric)[:LISTED]
    keys = keys_in(split, run_metric.run)
    lines = {key: line for line, key in keys.items()}
    wanted = [lines[each.answer.row] for each in differing]
    rows = {row.line: row for row in Row.objects.filter(version=run_metric.run.version_id, line__in=wanted)}
    judged = _judgements(run_metric, [row.pk for row in rows.values()], keys)
    attempts = {judgement.pk: judgement.replies_from_id or judgement.pk for judgement in judged.values()}
    replies = first_replies(attempts, EXCERPT)
    comments = _comments(split)
    shown = []
    for each in differing:
        answer = each.answer
        place = (answer.row, answer.candidate, answer.response, answer.other)
        judgement = judged.get(place)
        if judgement is not None:
            row = rows[lines[answer.row]]
            reply = replies.get(judgement.pk, "")
            shown.append(_shown(each, row, judgement, reply, comments.get(place, ())))
    return shown


Place = tuple[str, str, int, str]
"""Key of the row, candidate, number of its answer, and the candidate it is compared with, if any."""


def _judgements(
    run_metric: RunMetric, rows: Sequence[int], keys: Mapping[int, str]
) -> dict[Place, Judgement]:
    judgements = Judgement.objects.filter(
        run=run_metric.run_id, run_metric=run_metric, current=True, row__in=rows
    )
    parts = ("row", "response", "candidate", "other_response__candidate")
    return {
        (keys[each.row.line], each.candidate.name, each.response.number, _name_of(each.other_response)): each
        for each in judgements.select_related(*parts)
    }


def _name_of(response: Response | None) -> str:
    return response.candidate.name if response else ""


def _comments(split: Split) -> dict[Place, list[str]]:
    """What raters wrote on answers of the split's rows, by key of the row and names."""
    evaluation = split.test.evaluation
    if evaluation is None:
        return {}
    keys = keys_in(split, evaluation.run)
    rated = Assignment.objects.filter(
        evaluation=evaluation, state=AssignmentState.RATED, item__gold="", item__repeat_of=None
    )
    parts = ("item__row", "item__response__candidate", "item__other_response__candidate", "rating")
    comments: dict[Place, list[str]] = {}
    for each in rated.exclude(rating__comment="").select_related(*parts):
        item, comment = each.item, each.rating.comment if each.rating else ""
        place = (
            keys.get(item.row.line, ""),
            item.response.candidate.name,
            item.response.number,
            _name_of(item.other_response),
        )
        comments.setdefault(place, []).append(truncate(comment.strip(), EXCERPT))
    return comments


def _shown(
    each: Disagreement, row: Row, judgement: Judgement, reply: str, comments: Sequence[str]
) -> ShownDisagreement:
    answer: Answer = each.answer
    judge, people = verdict_texts([each.judge, each.people])
    question = truncate(str(data_of(row.raw, judgement.run.version.format)["question"] or ""), EXCERPT)
    text = truncate(str(response_data(judgement.response.raw)["content"] or ""), EXCERPT)
    train = each.part == TRAIN
    note = " ".join(comments)
    return ShownDisagreement(
        kind=_kind(each),
        train=train,
        candidates=" · ".join(name for name in (answer.candidate, answer.other) if name),
        question=question,
        answer=text,
        judge=judge,
        people=people,
        reply=reply,
        comments=comments,
        url=judgement_url(judgement.run, judgement.pk),
        response=judgement.response_id,
        example=as_text(EXAMPLE % {"question": question, "answer": text, "people": people, "note": note})
        if train
        else "",
    )


def _kind(each: Disagreement) -> str:
    if not isinstance(each.judge, bool):
        return "differs"
    return "false_pass" if each.judge else "false_fail"
