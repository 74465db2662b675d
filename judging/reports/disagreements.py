"""Answers rated by both a judge and people, for display: with the question, both values and both reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets.models import Response
from judging.core.statistics.drill_down import ABOUT, Paired, value_key
from judging.core.statistics.frame import ScaledMetric
from judging.core.values import Value, scale_level
from judging.people.models import Adjudication, Assignment, AssignmentState
from judging.people.selectors import evaluations_of
from judging.reports.labels import label_text
from judging.reports.selectors import candidates_of, questions_of
from judging.runs.addresses import judgement_url
from judging.runs.filters import BY_METRICS, BY_SOURCES
from judging.runs.models import Judgement, JudgeReply, Run

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


def pill(value: Value, metric: ScaledMetric) -> ValuePill:
    if isinstance(value, str):
        return ValuePill(value, None)
    if isinstance(value, bool):
        return ValuePill(value_key(value), 5 if value else 1)
    low, high = metric.low, metric.high
    level = None if low is None or high is None else scale_level(value, low, high)
    return ValuePill(label_text(value), level)


def strongest(run: Run, metric: ScaledMetric, judge: str, paired: Paired) -> list[ComparedAnswer]:
    """The answers with the largest difference between judge and people."""
    places = [place for place in range(min(STRONGEST, len(paired))) if paired.differences[place] > 0]
    return compared_answers(run, metric, judge, paired, places)


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
    known = frozenset[int]().union(*sides.values())
    judged = _judgements(run, metric, judge, known)
    replies = _replies(list(judged.values())) if reasons else {}
    comments = _comments(run, metric, known) if reasons else {}
    found = []
    for place in places:
        pk, _asked = judged.get(sides[place], (0, 0))
        found.append(
            ComparedAnswer(
                line=paired.rows[place],
                candidate=paired.candidates[place],
                other=paired.others[place] or "",
                number=paired.responses[place],
                judge=pill(paired.judge[place], metric),
                people=pill(paired.people[place], metric),
                difference=f"{paired.differences[place]:.3g}",
                question=questions.get(paired.rows[place], ""),
                url=judgement_url(run, pk) if pk else "",
                reply=replies.get(pk, ""),
                comments=comments.get(sides[place], ()),
            )
        )
    return found


def _responses(run: Run, lines: list[int]) -> dict[tuple[str, int, int], int]:
    """{(candidate, row, number): answer id} for these rows."""
    names = candidates_of(run)
    found = Response.objects.filter(
        row__version=run.version_id, row__line__in=lines, candidate__in=list(names)
    )
    parts = found.values_list("pk", "candidate_id", "row__line", "number")
    return {(names[candidate], line, number): pk for pk, candidate, line, number in parts}


def _sides(paired: Paired, place: int, responses: Mapping[tuple[str, int, int], int]) -> Sides:
    line = paired.rows[place]
    names = [(paired.candidates[place], line, paired.responses[place])]
    names.append((paired.others[place] or "", line, paired.other_responses[place]))
    return frozenset(responses[name] for name in names if name in responses)


def _judgements(run: Run, metric: ScaledMetric, judge: str, known: Sides) -> dict[Sides, tuple[int, int]]:
    """{answers: (judgement, attempt that asked)} of the judge."""
    found = Judgement.objects.filter(run=run, current=True, run_metric__name=metric.name, response__in=known)
    found = found.filter(BY_SOURCES, source__name=judge) if run.imported else found.filter(BY_METRICS)
    judged: dict[Sides, tuple[int, int]] = {}
    parts = ("pk", "asked_by", "response", "other_response")
    for pk, asked, response, other in found.order_by("repeat", "position").values_list(*parts):
        judged.setdefault(known & {response, other}, (pk, asked or pk))
    return judged


def _replies(judged: Sequence[tuple[int, int]]) -> dict[int, str]:
    """{judgement: beginning of the judge's first reply}."""
    asked = dict(judged)
    found = JudgeReply.objects.filter(judgement__in=asked.values()).exclude(content=None)
    replies: dict[int, str] = {}
    for pk, content in found.order_by("judge", "repeat", "swapped").values_list("judgement", "content"):
        replies.setdefault(pk, _beginning(content or ""))
    return {pk: replies[by] for pk, by in asked.items() if by in replies}


def _comments(run: Run, metric: ScaledMetric, known: Sides) -> dict[Sides, list[PersonComment]]:
    """Comments of raters and adjudicators on these answers, under the criterion with the metric's name."""
    evaluations = [one.pk for one in evaluations_of(run)]
    about: dict[str, Any] = {
        "item__evaluation__in": evaluations,
        "item__evaluation__run__metrics__name": metric.name,
        "item__response__in": known,
        "item__needed__gt": 0,
    }
    given = Assignment.objects.filter(**about, state=AssignmentState.GIVEN).exclude(rating__comment="")
    sides = ("item__response", "item__other_response")
    said = [*given.order_by("pk").values_list(*sides, "rater__pseudonym", "rating__comment")]
    decided = Adjudication.objects.filter(**about).exclude(reason="").order_by("pk")
    said += [(*one[:2], "", one[2]) for one in decided.values_list(*sides, "reason")]
    found: dict[Sides, list[PersonComment]] = {}
    for response, other, by, text in said:
        if text:
            found.setdefault(known & {response, other}, []).append(PersonComment(by, _beginning(text)))
    return found


def _beginning(text: str) -> str:
    text = text.strip()
    return text if len(text) <= REASON else f"{text[:REASON].rstrip()}…"


def choices(paired: Paired, values: Sequence[Value], chosen: str) -> list[tuple[str, str]]:
    """The values of a menu, lowest first, including the chosen one: (in the query, label)."""
    rounded = paired.numeric and (paired.rounded or len(set(values)) > MOST_CHOICES)
    known = {value_key(value, rounded=rounded): value for value in sorted(set(values), key=_rank)}
    keys = list(known)[:MOST_CHOICES]
    if chosen and chosen not in keys:
        keys.append(chosen)
    return [
        (key, f"≈ {key.removeprefix(ABOUT)}" if paired.numeric and key[0] == ABOUT else key) for key in keys
    ]


def _rank(value: Value) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (float(value), "")
