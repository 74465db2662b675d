"""The answers on which a judge and people differ, as a page shows them: both values and both reasons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from datasets.core.variables import response_data
from datasets.models import Response
from datasets.versions.references import reference_of
from evalsite.truncation import truncate
from judging.core.licensing import TRAIN
from judging.core.statistics.frame import REFERENCE
from judging.core.statistics.verdicts import LABELS, STEPS
from judging.core.values import Value
from judging.core.worked_examples import as_text
from judging.filters.addresses import judgement_url
from judging.messages import verdict_texts
from judging.people.models import Assignment
from judging.records.definitions import definition_now
from judging.records.models import Judgement, RunMetric
from judging.records.stored_judgement import data_of
from judging.reports.disagreements import first_replies
from judging.rule_messages import reader_language
from judging.trust.answers import Answer, ids_by_answer
from judging.trust.dev import Disagreement, disagreements, keys_in
from judging.trust.doubts import doubts_of, items_of_answers
from judging.trust.looked import LookedLabel, looked_labels
from judging.trust.models import Split

LISTED = 200
EXCERPT = 1_000  # characters
_EXAMPLE = {
    "en": "Example\nQuestion: %(question)s\n%(answers)s\nVerdict: %(people)s%(because)s",
    "zh": "示例\n问题：%(question)s\n%(answers)s\n判定：%(people)s%(because)s",
}
_ANSWER = {"en": "Answer%s: %s", "zh": "回答%s：%s"}
_BECAUSE = {"en": ", because: %s", "zh": "，理由：%s"}


@dataclass(frozen=True, slots=True)
class ShownDisagreement:
    """`answer` and `other` ('' if nothing is compared): A and B as the judge saw them first, whose `names` these are,
    and in whose order both verdicts stand; `reference`: the row's, '' without one, or if it is compared; `reply`: the
    judge's; `comments`: people's;
    `response`: id of the answer; `train`: whether it may be shown in a prompt, and then `example`, what to put there;
    `doubt`: whether it was sent to those who adjudicate, or `can_be_sent`: not answers that were only looked at."""

    kind: str
    train: bool
    candidates: str
    names: Sequence[str]
    question: str
    reference: str
    answer: str
    other: str
    judge: str
    people: str
    reply: str
    comments: Sequence[str]
    url: str
    response: int
    example: str
    doubt: str
    can_be_sent: bool


@dataclass(frozen=True, slots=True)
class ListedDisagreement:
    """`number`: from 1, in their order; `judgement`: its id, which names it."""

    number: int
    judgement: int
    kind: str
    train: bool
    candidates: str
    line: int


@dataclass(frozen=True, slots=True)
class DisagreementPage:
    """One disagreement among the `listed` ones, of `total`; None where there is none."""

    listed: Sequence[ListedDisagreement]
    total: int
    current: ListedDisagreement | None
    shown: ShownDisagreement | None
    previous: int | None
    following: int | None


class Disagreements:
    """The disagreements of a version with people: false passes first, then false fails, then by distance."""

    def __init__(self, split: Split, run_metric: RunMetric) -> None:
        self.split, self.run_metric = split, run_metric
        self.keys = keys_in(split, run_metric.run)
        self.lines = {key: line for line, key in self.keys.items()}
        differing = disagreements(split, run_metric)
        self.total = len(differing)
        differing = differing[:LISTED]
        judged = _judgements(run_metric, {self.lines[each.answer.row] for each in differing}, self.keys)
        self.by_judgement = {judged[each.answer]: each for each in differing if each.answer in judged}

    def page(self, judgement: int | None) -> DisagreementPage:
        """The page of the disagreement in this judgement, or of the first."""
        listed = [self._listed(number, *each) for number, each in enumerate(self.by_judgement.items(), 1)]
        ids = list(self.by_judgement)
        at = ids.index(judgement) if judgement in self.by_judgement else 0
        if not ids:
            return DisagreementPage((), self.total, None, None, None, None)
        return DisagreementPage(
            listed,
            self.total,
            listed[at],
            self.shown(ids[at]),
            ids[at - 1] if at else None,
            ids[at + 1] if at + 1 < len(ids) else None,
        )

    def _listed(self, number: int, judgement: int, each: Disagreement) -> ListedDisagreement:
        line = self.lines[each.answer.row]
        return ListedDisagreement(
            number, judgement, _kind(each), each.part == TRAIN, _candidates(each.answer), line
        )

    def shown(self, judgement: int) -> ShownDisagreement:
        """The disagreement in a judgement, with both reasons."""
        each = self.by_judgement[judgement]
        parts = ("row", "response__candidate", "other_response", "run__version")
        stored = Judgement.objects.select_related(*parts).get(pk=judgement)
        stored.run.project = self.split.metric.project
        reply = first_replies({judgement: stored.replies_from_id or judgement}, EXCERPT).get(judgement, "")
        comments = _comments(self.items.get(each.answer))
        if not comments and (looked := self.looked.get(each.answer)) and looked.note:
            comments = [truncate(looked.note, EXCERPT)]
        doubt, rated = self.doubts.get(each.answer, ""), each.answer in self.items
        return _shown(each, stored, reply, comments, doubt, rated=rated)

    @cached_property
    def items(self) -> Mapping[Answer, int]:
        """{answer: id of its item}."""
        return items_of_answers(self.split)

    @cached_property
    def looked(self) -> Mapping[Answer, LookedLabel]:
        """The answers that were looked at, with their notes."""
        return looked_labels(self.split)

    @cached_property
    def doubts(self) -> Mapping[Answer, str]:
        """The answers with adjudicators."""
        return doubts_of(self.split, self.items)


def _judgements(run_metric: RunMetric, lines: Collection[int], keys: Mapping[int, str]) -> dict[Answer, int]:
    """{answer: id of its judgement} on these rows."""
    judgements = Judgement.objects.filter(
        run=run_metric.run_id, run_metric=run_metric, current=True, row__line__in=lines
    )
    definition = definition_now(run_metric)
    return ids_by_answer(judgements, keys, with_reference=definition.compares_reference)


def _comments(item: int | None) -> list[str]:
    """What raters wrote on an answer."""
    if item is None:
        return []
    rated = Assignment.objects.counted().filter(item=item).exclude(rating__comment="")
    comments = rated.order_by("pk").values_list("rating__comment", flat=True)
    return [truncate(comment.strip(), EXCERPT) for comment in comments if comment]


def _shown(
    each: Disagreement,
    judgement: Judgement,
    reply: str,
    comments: Sequence[str],
    doubt: str,
    *,
    rated: bool,
) -> ShownDisagreement:
    sides, turned = _sides(each.answer, judgement)
    judge, people = verdict_texts(
        [_turned(value) if turned else value for value in (each.judge, each.people)]
    )
    question = str(data_of(judgement.row.raw, judgement.run.version.format)["question"] or "")
    question = truncate(question, EXCERPT)
    names, (text, *others) = zip(*sides, strict=True)
    compared = each.answer.other == REFERENCE
    reference = "" if compared else reference_of(judgement.row, judgement.run.version.format) or ""
    train = each.part == TRAIN
    return ShownDisagreement(
        kind=_kind(each),
        train=train,
        candidates=" · ".join(names),
        names=names,
        question=question,
        reference=truncate(reference, EXCERPT),
        answer=text,
        other="".join(others),
        judge=judge,
        people=people,
        reply=reply,
        comments=comments,
        url=judgement_url(judgement.run, judgement.pk),
        response=judgement.response_id,
        example=_example(question, (text, *others), people, comments) if train else "",
        doubt=doubt,
        can_be_sent=rated and not doubt,
    )


def _sides(answer: Answer, judgement: Judgement) -> tuple[list[tuple[str, str]], bool]:
    """(name, text) of the answer, or of both that were compared, in the order in which the judge saw them first; and
    whether `answer` has them in the other order. A reference is A to a judge (core.builtin)."""
    sides = [(answer.candidate, _content(judgement.response))]
    turned = False
    if judgement.other_response is not None:
        turned = (judgement.response.candidate.name, judgement.response.number) != (
            answer.candidate,
            answer.response,
        )
        names = (answer.other, answer.candidate) if turned else (answer.candidate, answer.other)
        sides = list(zip(names, map(_content, (judgement.response, judgement.other_response)), strict=True))
    elif answer.other:
        reference = reference_of(judgement.row, judgement.run.version.format) or ""
        sides, turned = [(_("reference"), reference), *sides], True
    return [(name, truncate(text, EXCERPT)) for name, text in sides], turned


def _turned(value: Value) -> Value:
    """A verdict on two answers in the other order."""
    step = STEPS.get(value) if isinstance(value, str) else None
    return LABELS[-step] if step else value


def _content(response: Response) -> str:
    return str(response_data(response.raw)["content"] or "")


def _example(question: str, answers: Sequence[str], people: str, comments: Sequence[str]) -> str:
    language = reader_language()
    because = _BECAUSE[language] % " ".join(comments) if comments else ""
    compared = len(answers) > 1
    named = zip("AB", answers, strict=True) if compared else [("", *answers)]
    said = "\n".join(_ANSWER[language] % (f" {letter}" if letter else "", text) for letter, text in named)
    texts = {"question": question, "answers": said, "people": people, "because": because}
    return as_text(_EXAMPLE[language] % texts)


def _candidates(answer: Answer) -> str:
    other = _("reference") if answer.other == REFERENCE else answer.other
    return " · ".join(name for name in (answer.candidate, other) if name)


def _kind(each: Disagreement) -> str:
    if not isinstance(each.judge, bool):
        return "differs"
    return "false_pass" if each.judge else "false_fail"
