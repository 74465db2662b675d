"""The answers that a gallery metric can be measured on: its own examples, and what people of the project said of others
in evaluations, imported results and looks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import msgspec

from datasets.core.formats import Format
from datasets.core.kinds import CATEGORY, CHECKLIST, PASS_FAIL, SCORE
from datasets.core.variables import response_data
from datasets.models import Response, Row, Version
from evalsite.accounts.models import Project
from judging.core.checklists import judged, met_of, rubric_of
from judging.core.gallery import Card, Example
from judging.core.gallery.fields import guessed_fields, unmapped
from judging.core.gallery.measured import Said
from judging.core.metric_definition import Label, MetricDefinition
from judging.core.results import JudgedItem
from judging.engine.chunks import RowReader
from judging.look.models import Look, LookAnswer, Note, NoteGroup
from judging.look.results import looks_of
from judging.records.models import IMPORTED, PEOPLE, RunMetric
from judging.records.seal import unsealed
from judging.trust.answers import Answer, labels_of, verdicts_of
from judging.trust.criteria import criteria_of_people
from judging.trust.gallery.measuring import Labelled
from judging.trust.labelled import PeoplesScale, peoples_verdicts, scale_of_people
from judging.trust.models import Measurement

MOST_ANSWERS = 500
"""Labelled answers of a data set that one measurement uses, the first of its rows."""
UNDECLARED = (1, 10)
"""The ends of imported scores whose scale was not declared."""
_OFFERED = 20
_SEARCHED = 200
_Place = tuple[int, str, int]  # line of the row, candidate, number of the answer


def answers_of(card: Card, examples: Sequence[Example]) -> dict[str, Labelled]:
    """Examples of the card's form as labelled answers, by key."""
    answers = {}
    for number, example in enumerate(examples, 1):
        item = card.item(example)
        rubric = rubric_of(item.data) if card.gives == CHECKLIST else None
        said: Said = met_of(judged(rubric, example.met)) if rubric else example.value
        answers[f"example {number}"] = Labelled(item, said, str(number))
    return answers


class LabelledData(ABC):
    """Verdicts of people on answers of a data set that a metric can be measured on."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Tells it from others of the project."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def origin(self) -> Mapping[str, RunMetric | Look | NoteGroup]:
        """The fields of a Measurement that name it."""

    @property
    @abstractmethod
    def version(self) -> Version: ...

    @property
    @abstractmethod
    def answers(self) -> int:
        """How many answers have a verdict that may be seen; those of sealed tests may not."""

    @abstractmethod
    def _verdicts(self, lines: Mapping[int, str]) -> Mapping[Answer, Said]:
        """People's verdicts where they have a majority. `lines`: of the rows that count, as their keys."""

    def mapping(self, card: Card) -> dict[str, str]:
        """The data set's columns for the fields that the metric reads, guessed by name."""
        return guessed_fields(card.needs, self.version.fields_found)

    def fitted(self, metric: MetricDefinition) -> MetricDefinition:
        """The metric with what these verdicts are."""
        return metric

    def load(self) -> dict[str, Labelled]:
        """The answers on which people agree, by key, in the order of rows."""
        rows = Row.objects.filter(version=self.version, valid=True)
        lines = {line: str(line) for line in rows.values_list("line", flat=True)}
        verdicts = self._verdicts(lines)
        chosen = sorted(verdicts, key=lambda answer: (int(answer.row), answer))[:MOST_ANSWERS]
        responses, reader = self._responses(chosen), RowReader(cast(Format, self.version.format))
        answers = {}
        for answer in chosen:
            item = _item(answer, responses, reader)
            if item is not None:
                answers[" · ".join(map(str, answer))] = Labelled(item, verdicts[answer], answer.row)
        return answers

    def _responses(self, chosen: Iterable[Answer]) -> dict[_Place, Response]:
        lines = {int(answer.row) for answer in chosen}
        responses = Response.objects.filter(row__version=self.version, row__line__in=lines)
        return {
            (response.row.line, response.candidate.name, response.number): response
            for response in responses.select_related("row", "candidate")
        }


def _item(answer: Answer, responses: dict[_Place, Response], rows: RowReader) -> JudgedItem | None:
    """What is judged; None if an answer is not of this data set."""
    response = responses.get((int(answer.row), answer.candidate, answer.response))
    other = responses.get((int(answer.row), answer.other, answer.other_response))
    if response is None or (answer.other and other is None):
        return None
    item = rows.item(response.row_id, response.row.raw, response.raw, "plain")
    if other is None:
        return item
    return JudgedItem(item.data, item.response, other=response_data(other.raw))


@dataclass(frozen=True)
class RatedData(LabelledData):
    """A criterion that people rated in an evaluation, or a metric with people's verdicts among imported results."""

    run_metric: RunMetric

    @property
    def key(self) -> str:
        return str(self.run_metric.pk)

    @property
    def origin(self) -> Mapping[str, RunMetric | Look | NoteGroup]:
        return {"labels": self.run_metric}

    @property
    def version(self) -> Version:
        return self.run_metric.run.version

    @property
    def name(self) -> str:
        """The run and its criterion."""
        return f"{self.run_metric.run.name} · {self.run_metric.name}"

    @cached_property
    def scale(self) -> PeoplesScale:
        return scale_of_people(self.run_metric)

    @cached_property
    def answers(self) -> int:
        rated = peoples_verdicts(self.run_metric)
        return (
            unsealed(self.run_metric.run, rated)
            .order_by()
            .values("response", "other_response")
            .distinct()
            .count()
        )

    def fits(self, card: Card) -> bool:
        """Whether the metric gives verdicts like these."""
        if self.scale.gives != card.gives or self.scale.compares != card.compares_candidates:
            return False
        metric = card.metrics["en"]
        ends = (metric.min_score, metric.max_score)
        return self.scale.gives != SCORE or (self.scale.ends or UNDECLARED) == ends

    def fitted(self, metric: MetricDefinition) -> MetricDefinition:
        if self.scale.gives != CATEGORY or set(self.scale.labels) == set(metric.label_names):
            return metric
        return msgspec.structs.replace(
            metric, labels=tuple(Label(label=label) for label in self.scale.labels)
        )

    def _verdicts(self, lines: Mapping[int, str]) -> Mapping[Answer, Said]:
        run = self.run_metric.run
        labels = labels_of(verdicts_of(run, self.run_metric, sealed=False)[0], lines)
        if self.scale.gives == CHECKLIST:
            criteria = criteria_of_people(run, self.run_metric, lines)
            return {answer: criteria[answer].met for answer in labels if answer in criteria}
        return {answer: label.value for answer, label in labels.items()}


@dataclass(frozen=True)
class LookedData(LabelledData):
    """Answers that people passed or failed in a look; with a group of its notes, an answer fails if it is in there."""

    look: Look
    group: NoteGroup | None = None

    @property
    def key(self) -> str:
        return f"group-{self.group.pk}" if self.group else f"look-{self.look.pk}"

    @property
    def origin(self) -> Mapping[str, RunMetric | Look | NoteGroup]:
        return {"look": self.look, "group": self.group} if self.group else {"look": self.look}

    @property
    def version(self) -> Version:
        return self.look.version

    @property
    def name(self) -> str:
        return f"{self.look.name} · {self.group.name}" if self.group else self.look.name

    @cached_property
    def answers(self) -> int:
        return len(self._passed)

    @cached_property
    def _passed(self) -> dict[int, bool]:
        """Whether each drawn answer passes, by its id."""
        votes: dict[int, int] = {}
        decided = Note.objects.filter(answer__look=self.look, passed__isnull=False)
        for answer, passed in decided.values_list("answer", "passed"):
            votes[answer] = votes.get(answer, 0) + (1 if passed else -1)
        if self.group is None:
            return {answer: balance > 0 for answer, balance in votes.items() if balance}
        inside = set(self.group.notes.values_list("answer", flat=True))
        return {answer: answer not in inside for answer in votes}

    def _verdicts(self, lines: Mapping[int, str]) -> Mapping[Answer, Said]:
        drawn = LookAnswer.objects.filter(look=self.look, pk__in=self._passed).select_related("row")
        by_response = {answer.response_id: answer for answer in drawn if answer.row.line in lines}
        responses = Response.objects.filter(pk__in=by_response).select_related("candidate")
        return {
            Answer(
                lines[by_response[response.pk].row.line], response.candidate.name, response.number, "", 0
            ): self._passed[by_response[response.pk].pk]
            for response in responses
        }


def labelled_by(measurement: Measurement) -> LabelledData | None:
    """What a measurement is on; None for the card's examples."""
    if measurement.labels is not None:
        return RatedData(measurement.labels)
    return LookedData(measurement.look, measurement.group) if measurement.look is not None else None


def labelled_data(project: Project, card: Card) -> list[LabelledData]:
    """The project's verdicts of people that are what the card's metric gives, on data sets with the columns that it
    needs, newest first: ratings and imported verdicts, then looks with their groups."""
    sources = (*_rated(project, card), *(_looked(project) if card.gives == PASS_FAIL else ()))
    usable = [data for data in sources if not unmapped(card.needs, data.mapping(card))]
    return [data for data in usable[:_OFFERED] if data.answers]


def _rated(project: Project, card: Card) -> Iterator[RatedData]:
    rated = RunMetric.objects.filter(run__project=project, run__kind__in=(PEOPLE, IMPORTED))
    rated = rated.filter(run__archived_at=None, run__deleted_at=None, run__version__deleted_at=None)
    for run_metric in rated.select_related("run__version__dataset").order_by("-run", "number")[:_SEARCHED]:
        data = RatedData(run_metric)
        if data.fits(card):
            yield data


def _looked(project: Project) -> Iterator[LookedData]:
    groups: dict[int, list[NoteGroup]] = {}
    looks = list(looks_of(project)[:_OFFERED])
    for group in NoteGroup.objects.filter(look__in=looks).order_by("pk"):
        groups.setdefault(group.look_id, []).append(group)
    for look in looks:
        yield LookedData(look)
        yield from (LookedData(look, group) for group in groups.get(look.pk, ()))
