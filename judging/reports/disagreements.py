"""Answers rated by both a judge and people, for display: with the question, both values and both reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets.models import Response
from evalsite.truncation import truncate
from judging.core.statistics.drill_down import ABOUT, Paired, value_key
from judging.core.statistics.frame import ScaledMetric
from judging.core.values import Value, scale_level, verdict_code
from judging.filters.addresses import judgement_url
from judging.filters.conditions import by_response
from judging.messages import pass_or_fail, verdict_texts
from judging.people.models import Adjudication, Assignment
from judging.people.selectors import evaluations_of
from judging.records.models import Judgement, JudgeReply, Run
from judging.records.seal import sealed_items
from judging.reports.selectors import candidates_of, questions_of

STRONGEST = 5
REASON = 400  # characters
MOST_CHOICES = 60  # values offered in a menu
Sides = frozenset[int]
"""Ids of the one or two responses that a verdict is about."""


@dataclass(frozen=True, slots=True)
class ValuePill:
    """A value; `level` from 1 (lowest of the scale) to 5, None if it is not a number."""

    text: str
    level: int | None


@dataclass(frozen=True, slots=True)
class PersonComment:
    """A person's comment; `by`: pseudonym, '' for an adjudicator."""

    by: str
    text: str


@dataclass(frozen=True, slots=True)
class ComparedAnswer:
    """One or two answers with both values. `url`: of the judgement, '' if there is none."""

    line: int
    candidate: str
    other: str
    number: int
    judge: ValuePill
    people: ValuePill
    difference: str
    question: str
    url: str
    reply: str = ""
    comments: Sequence[PersonComment] = ()


def pills(values: Sequence[Value], metric: ScaledMetric) -> list[ValuePill]:
    """The values of a column."""
    texts = zip(values, verdict_texts(values), strict=True)
    return [ValuePill(_verdict(value, metric) or text, _level(value, metric)) for value, text in texts]


def _verdict(value: Value, metric: ScaledMetric) -> str:
    """What a number of a comparison with the reference stands for, such as A=B; '' for anything else."""
    return verdict_code(value) if metric.compares else ""


def _level(value: Value, metric: ScaledMetric) -> int | None:
    if isinstance(value, str):
        return None
    if isinstance(value, bool):
        return 5 if value else 1
    low, high = metric.low, metric.high
    return None if low is None or high is None else scale_level(value, low, high)


def strongest(run: Run, metric: ScaledMetric, judge: str, paired: Paired) -> list[ComparedAnswer]:
    """The answers with the largest difference between judge and people, with both reasons."""
    places = [place for place in range(min(STRONGEST, len(paired))) if paired.differences[place] > 0]
    return compared_answers(run, metric, judge, paired, places, reasons=True)


def compared_answers(
    run: Run,
    metric: ScaledMetric,
    judge: str,
    paired: Paired,
    places: Sequence[int],
    *,
    reasons: bool = False,
) -> list[ComparedAnswer]:
    """The answers at these places; with `reasons`, also the beginning of the judge's reply, and people's comments."""
    if not places:
        return []
    lines = sorted({paired.rows[place] for place in places})
    questions, responses = questions_of(run, lines), _responses(run, lines)
    sides = {place: _sides(paired, place, responses) for place in places}
    answer_ids = frozenset[int]().union(*sides.values())
    judged = _judgements(run, metric, judge, answer_ids)
    replies = first_replies(dict(judged.values()), REASON) if reasons else {}
    comments = _comments(run, metric, answer_ids) if reasons else {}
    columns = (
        pills([paired.judge[place] for place in places], metric),
        pills([paired.people[place] for place in places], metric),
        verdict_texts([paired.differences[place] for place in places]),
    )
    answers = []
    for place, judge_pill, people_pill, difference in zip(places, *columns, strict=True):
        pk, _asked_by = judged.get(sides[place], (0, 0))
        answers.append(
            ComparedAnswer(
                line=paired.rows[place],
                candidate=paired.candidates[place],
                other=paired.others[place] or "",
                number=paired.responses[place],
                judge=judge_pill,
                people=people_pill,
                difference=difference,
                question=questions.get(paired.rows[place], ""),
                url=judgement_url(run, pk) if pk else "",
                reply=replies.get(pk, ""),
                comments=comments.get(sides[place], ()),
            )
        )
    return answers


def _responses(run: Run, lines: list[int]) -> dict[tuple[str, int, int], int]:
    """{(candidate, row, number): answer id} for these rows."""
    names = candidates_of(run)
    responses = Response.objects.filter(
        row__version=run.version_id, row__line__in=lines, candidate__in=list(names)
    )
    parts = responses.values_list("pk", "candidate_id", "row__line", "number")
    return {(names[candidate], line, number): pk for pk, candidate, line, number in parts}


def _sides(paired: Paired, place: int, responses: Mapping[tuple[str, int, int], int]) -> Sides:
    line = paired.rows[place]
    names = [(paired.candidates[place], line, paired.responses[place])]
    names.append((paired.others[place] or "", line, paired.other_responses[place]))
    return frozenset(responses[name] for name in names if name in responses)


def _judgements(
    run: Run, metric: ScaledMetric, judge: str, answer_ids: Sides
) -> dict[Sides, tuple[int, int]]:
    """{answers: (judgement, attempt that asked)} of the judge."""
    judgements = Judgement.objects.filter(
        run=run, current=True, run_metric__name=metric.name, response__in=answer_ids
    )
    judgements = judgements.filter(by_response(run))
    judgements = judgements.filter(source__name=judge) if run.imported else judgements
    judged: dict[Sides, tuple[int, int]] = {}
    parts = ("pk", "replies_from", "response", "other_response")
    for pk, replies_from, response, other in judgements.order_by("repeat", "position").values_list(*parts):
        judged.setdefault(answer_ids & {response, other}, (pk, replies_from or pk))
    return judged


def first_replies(attempts: Mapping[int, int], length: int) -> dict[int, str]:
    """{judgement: beginning of the judge's first reply, at most `length` characters}. `attempts`: the attempt that
    asked, by judgement."""
    stored_replies = JudgeReply.objects.filter(judgement__in=attempts.values()).exclude(content=None)
    replies: dict[int, str] = {}
    for pk, content in stored_replies.order_by("judge", "repeat", "swapped", "criterion").values_list(
        "judgement", "content"
    ):
        replies.setdefault(pk, truncate((content or "").strip(), length))
    return {pk: replies[by] for pk, by in attempts.items() if by in replies}


def _comments(run: Run, metric: ScaledMetric, answer_ids: Sides) -> dict[Sides, list[PersonComment]]:
    """Comments of raters and adjudicators on these answers, under the criterion with the metric's name."""
    evaluations = [evaluation.pk for evaluation in evaluations_of(run)]
    about: dict[str, Any] = {
        "item__evaluation__in": evaluations,
        "item__evaluation__run__metrics__name": metric.name,
        "item__response__in": answer_ids,
        "item__needed__gt": 0,
    }
    sealed = {row for evaluation in evaluations_of(run) for row in sealed_items(evaluation.run)}
    rated = Assignment.objects.counted().filter(**about).exclude(rating__comment="")
    rated = rated.exclude(item__row__in=sealed)
    sides = ("item__response", "item__other_response")
    said = [*rated.order_by("pk").values_list(*sides, "rater__pseudonym", "rating__comment")]
    decided = Adjudication.objects.filter(**about).exclude(reason="").exclude(item__row__in=sealed)
    decided = decided.order_by("pk")
    said += [(*decision[:2], "", decision[2]) for decision in decided.values_list(*sides, "reason")]
    comments: dict[Sides, list[PersonComment]] = {}
    for response, other, by, text in said:
        if text:
            comments.setdefault(answer_ids & {response, other}, []).append(
                PersonComment(by, _beginning(text))
            )
    return comments


def _beginning(text: str) -> str:
    return truncate(text.strip(), REASON)


def choices(
    paired: Paired, values: Sequence[Value], chosen: str, metric: ScaledMetric
) -> list[tuple[str, str]]:
    """The values of a menu, lowest first, including the chosen one: (in the query, label)."""
    rounded = paired.numeric and (paired.rounded or len(set(values)) > MOST_CHOICES)
    by_key = {value_key(value, rounded=rounded): value for value in sorted(set(values), key=_rank)}
    keys = list(by_key)[:MOST_CHOICES]
    if chosen and chosen not in keys:
        keys.append(chosen)
    return [(key, _choice_label(paired, key, by_key.get(key, key), metric)) for key in keys]


def _choice_label(paired: Paired, key: str, value: Value, metric: ScaledMetric) -> str:
    if paired.numeric and key[0] == ABOUT:
        return f"≈ {key.removeprefix(ABOUT)}"
    return pass_or_fail(value) if isinstance(value, bool) else _verdict(value, metric) or key


def _rank(value: Value) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (float(value), "")
