"""What looks found: progress of a person, notes and groups with their shares, and where people disagree."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter

import numpy as np
from django.db.models import Count, Q, QuerySet

from datasets.core.variables import response_data
from datasets.models import Response
from datasets.versions.references import reference_of
from evalsite.accounts.models import Project, User
from judging.core.statistics.looking import group_share, quiet_failures
from judging.core.statistics.means import Rate
from judging.look.models import GroupedNote, Look, LookAnswer, Note, NoteGroup
from judging.look.services import FEWEST
from judging.records.stored_judgement import data_of

RARE_FAILURES = 0.25
"""Below this share of failing answers, a draw by the judge's score finds failures faster."""
EXAMPLES = 3
EXCERPT = 400  # characters of a question or answer beside a note
MOST_FIELDS = 12
MOST_VALUES = 12  # of a field; one with more does not sort rows into kinds


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a person is with a look. `quiet`: failing answers in a row, at the end, without a new kind of failure."""

    total: int
    done: int
    failed: int
    quiet: int

    @property
    def few_fail(self) -> bool:
        """Whether so few answers fail that a draw by score finds failures faster."""
        return self.done >= FEWEST and self.failed < RARE_FAILURES * self.done


def progress(look: Look, user: User) -> Progress:
    """A person's progress, in the order of the look."""
    notes = Note.objects.filter(answer__look=look, author=user, passed__isnull=False)
    values = [
        (bool(passed), new_kind)
        for passed, new_kind in notes.order_by("answer__place").values_list("passed", "new_kind")
    ]
    failed = sum(not passed for passed, _new_kind in values)
    return Progress(look.size, len(values), failed, quiet_failures(values))


def next_place(look: Look, user: User, after: int) -> int | None:
    """The place of the next answer that a person has not decided: after this one, else from the beginning."""
    decided = set(
        Note.objects.filter(answer__look=look, author=user, passed__isnull=False).values_list(
            "answer__place", flat=True
        )
    )
    places = [*range(after + 1, look.size + 1), *range(1, min(after, look.size) + 1)]
    return next((place for place in places if place not in decided), None)


def looks_of(project: Project) -> QuerySet[Look]:
    """The project's looks, newest first, with the number of people and of answers looked at."""
    decided = Q(answers__notes__passed__isnull=False)
    return (
        Look.objects.filter(project=project, version__deleted_at=None, version__dataset__deleted_at=None)
        .filter(Q(run=None) | Q(run__deleted_at=None))
        .select_related("run", "version__dataset", "created_by")
        .annotate(
            people=Count("answers__notes__author", filter=decided, distinct=True),
            looked_at=Count("answers", filter=decided, distinct=True),
        )
        .order_by("-pk")
    )


@dataclass(frozen=True, slots=True)
class NotedAnswer:
    """An answer with everybody's notes, and what pages show of it."""

    answer: LookAnswer
    notes: Sequence[Note]
    candidate: str
    question: str
    reference: str
    text: str
    fields: dict[str, str]

    @property
    def decided(self) -> bool:
        return any(note.passed is not None for note in self.notes)

    @property
    def failed(self) -> bool:
        """Whether anybody failed it."""
        return any(note.passed is False for note in self.notes)

    @property
    def disputed(self) -> bool:
        """Whether some pass it and some fail it."""
        return len({note.passed for note in self.notes} - {None}) > 1


@dataclass(frozen=True, slots=True)
class Share:
    """A rate of answers under a name: of a candidate, or of a field's value."""

    name: str
    rate: Rate
    answers: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group with its notes, its share of all answers looked at, and the share by candidate and by field."""

    group: NoteGroup
    notes: Sequence[Note]
    rate: Rate
    by_candidate: Sequence[Share]
    by_field: Sequence[tuple[str, Sequence[Share]]]
    examples: Sequence[tuple[NotedAnswer, Note]]

    @property
    def others(self) -> int:
        """The number of notes beyond the examples."""
        return len(self.notes) - len(self.examples)


class LookResult:
    """Everything that was noted in a look. At most 100 answers, so it is computed for each page."""

    def __init__(self, look: Look) -> None:
        self.look = look

    @cached_property
    def answers(self) -> list[NotedAnswer]:
        """All drawn answers in order."""
        rows = LookAnswer.objects.filter(look=self.look).select_related("row").order_by("place")
        answers = list(rows)
        notes: dict[int, list[Note]] = defaultdict(list)
        for note in Note.objects.filter(answer__look=self.look).select_related("author").order_by("pk"):
            notes[note.answer_id].append(note)
        responses = Response.objects.select_related("candidate").in_bulk(
            [answer.response_id for answer in answers]
        )
        return [
            self._noted(answer, notes[answer.pk], responses[answer.response_id])
            for answer in answers
            if answer.response_id in responses
        ]

    def _noted(self, answer: LookAnswer, notes: list[Note], response: Response) -> NotedAnswer:
        raw = answer.row.raw
        question = str(data_of(raw, self.look.version.format)["question"] or "")
        reference = reference_of(answer.row, self.look.version.format) or ""
        text = str(response_data(response.raw)["content"])
        question, reference, text = (part[:EXCERPT] for part in (question, reference, text))
        return NotedAnswer(answer, notes, response.candidate.name, question, reference, text, _fields(raw))

    @cached_property
    def looked_at(self) -> list[NotedAnswer]:
        """The answers that somebody passed or failed."""
        return [answer for answer in self.answers if answer.decided]

    @property
    def failing(self) -> Rate:
        """The share of answers that anybody failed."""
        return self._rate(self.looked_at, {answer.answer.pk for answer in self.looked_at if answer.failed})

    @property
    def disputed(self) -> list[NotedAnswer]:
        """The answers on which people disagree."""
        return [answer for answer in self.answers if answer.disputed]

    @property
    def people(self) -> int:
        """The number of people who passed or failed an answer."""
        return len(
            {note.author_id for answer in self.answers for note in answer.notes if note.passed is not None}
        )

    @cached_property
    def by_note(self) -> dict[int, NotedAnswer]:
        return {note.pk: answer for answer in self.answers for note in answer.notes}

    @cached_property
    def groupable(self) -> list[Note]:
        """The notes that can be grouped: with a text, or of a failing answer."""
        notes = (note for answer in self.answers for note in answer.notes)
        return [note for note in notes if note.text.strip() or note.passed is False]

    @cached_property
    def groups(self) -> list[GroupView]:
        """The groups, the most frequent first."""
        members: dict[int, set[int]] = defaultdict(set)
        pairs = GroupedNote.objects.filter(group__look=self.look).values_list("group", "note")
        for group, note in pairs:
            members[group].add(note)
        groups = NoteGroup.objects.filter(look=self.look).order_by("pk")
        views = [self._view(group, members[group.pk]) for group in groups]
        return sorted(views, key=lambda view: (-(view.rate.rate or 0), view.group.pk))

    @property
    def ungrouped(self) -> list[Note]:
        """The notes that are in no group."""
        grouped = {note.pk for view in self.groups for note in view.notes}
        return [note for note in self.groupable if note.pk not in grouped]

    def _view(self, group: NoteGroup, members: set[int]) -> GroupView:
        notes = [note for answer in self.answers for note in answer.notes if note.pk in members]
        inside = {note.answer_id for note in notes}
        examples: dict[int, tuple[NotedAnswer, Note]] = {}
        for note in notes:
            examples.setdefault(note.answer_id, (self.by_note[note.pk], note))
        return GroupView(
            group,
            notes,
            self._rate(self.looked_at, inside),
            self._shares(inside, attrgetter("candidate")),
            [(name, self._shares(inside, partial(_value_of, name))) for name in self.fields],
            list(examples.values())[:EXAMPLES],
        )

    def _shares(self, inside: Collection[int], kind_of: Callable[[NotedAnswer], str]) -> list[Share]:
        by_kind: dict[str, list[NotedAnswer]] = defaultdict(list)
        for answer in self.looked_at:
            by_kind[kind_of(answer)].append(answer)
        return [
            Share(name, self._rate(answers, inside), len(answers))
            for name, answers in sorted(by_kind.items())
        ]

    def _rate(self, answers: Sequence[NotedAnswer], inside: Collection[int]) -> Rate:
        members = np.array([answer.answer.pk in inside for answer in answers], dtype=np.bool_)
        if not answers:
            return Rate(None, None, None, 0)
        rows = np.array([answer.answer.row_id for answer in answers], dtype=np.int64)
        weights = (
            np.array([1 / answer.answer.drawn_with for answer in answers]) if self.look.weighted else None
        )
        share, (low, high) = group_share(members, weights, rows)
        return Rate(share, low, high, int(members.sum()))

    @cached_property
    def fields(self) -> list[str]:
        """The rows' own fields that sort the answers into at least two and at most 12 kinds."""
        values: dict[str, Counter[str]] = defaultdict(Counter)
        for answer in self.looked_at:
            for name, value in answer.fields.items():
                values[name][value] += 1
        return [name for name, kinds in values.items() if 1 < len(kinds) <= MOST_VALUES][:MOST_FIELDS]


def _value_of(field: str, answer: NotedAnswer) -> str:
    return answer.fields.get(field, "–")


_NO_KINDS = ("id", "messages", "question", "answer", "ref_answer", "rubric", "history", "gt")


def _fields(raw: str) -> dict[str, str]:
    """A row's short fields by name."""
    row = json.loads(raw)
    plain = ((name, value) for name, value in row.items() if name not in _NO_KINDS)
    return {
        name: str(value)
        for name, value in plain
        if isinstance(value, str | int | bool) and len(str(value)) <= 60
    }
