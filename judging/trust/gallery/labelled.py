"""The answers that a gallery metric can be measured on: its own examples, and what people of the project rated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from datasets.core.formats import Format
from datasets.core.variables import response_data
from datasets.models import Response, Row, Version
from evalsite.accounts.models import Project
from judging.core.gallery import Card, Example
from judging.core.gallery.fields import guessed_fields, unmapped
from judging.core.people.criteria import Criterion
from judging.core.results import JudgedItem
from judging.engine.chunks import RowReader
from judging.records.models import PEOPLE, JudgementState, RunMetric
from judging.records.seal import unsealed
from judging.trust.answers import Answer, Label, labels_of, verdicts_of
from judging.trust.gallery.measuring import Labelled

MOST_ANSWERS = 500
"""Labelled answers of a data set that one measurement uses, the first of its rows."""
_OFFERED = 20
_Place = tuple[int, str, int]  # line of the row, candidate, number of the answer


def answers_of(card: Card, examples: Sequence[Example]) -> dict[str, Labelled]:
    """Examples of the card's form as labelled answers, by key."""
    return {
        f"example {number}": Labelled(card.item(example), example.value, str(number))
        for number, example in enumerate(examples, 1)
    }


@dataclass(frozen=True)
class LabelledData:
    """A criterion that people rated on answers of a data set, in an evaluation."""

    run_metric: RunMetric

    @property
    def version(self) -> Version:
        return self.run_metric.run.version

    @property
    def name(self) -> str:
        """The evaluation and, if it is not the only one, its criterion."""
        return f"{self.run_metric.run.name} · {self.run_metric.name}"

    @cached_property
    def answers(self) -> int:
        """How many answers have a rating that may be seen; those of sealed tests may not."""
        run = self.run_metric.run
        rated = run.judgements.filter(run_metric=self.run_metric, current=True, state=JudgementState.SCORED)
        return unsealed(run, rated).order_by().values("response", "other_response").distinct().count()

    def mapping(self, card: Card) -> dict[str, str]:
        """The data set's columns for the fields that the metric reads, guessed by name."""
        return guessed_fields(card.needs, self.version.fields_found)

    def load(self) -> dict[str, Labelled]:
        """The rated answers on which people agree, by key, in the order of rows."""
        lines = {line: str(line) for line in self._lines()}
        labels = labels_of(verdicts_of(self.run_metric.run, self.run_metric, sealed=False)[0], lines)
        chosen = sorted(labels.items(), key=lambda pair: (int(pair[0].row), pair[0]))[:MOST_ANSWERS]
        responses, rows = self._responses(chosen), RowReader(cast(Format, self.version.format))
        answers = {}
        for answer, label in chosen:
            item = _item(answer, responses, rows)
            if item is not None:
                answers[" · ".join(map(str, answer))] = Labelled(item, label.value, answer.row)
        return answers

    def _lines(self) -> list[int]:
        rows = Row.objects.filter(version=self.version, valid=True)
        return list(rows.values_list("line", flat=True))

    def _responses(self, chosen: list[tuple[Answer, Label]]) -> dict[_Place, Response]:
        lines = {int(answer.row) for answer, _label in chosen}
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


def labelled_data(project: Project, card: Card) -> list[LabelledData]:
    """The criteria of the project's evaluations that give what the card's metric gives, on data sets with the columns
    that it needs, newest first."""
    rated = RunMetric.objects.filter(run__project=project, run__kind=PEOPLE, run__archived_at=None)
    rated = rated.filter(run__deleted_at=None, run__version__deleted_at=None)
    sources = [
        LabelledData(run_metric)
        for run_metric in rated.select_related("run__version__dataset").order_by("-run", "number")[:200]
        if _fits(Criterion.from_json(run_metric.definition), card)
    ]
    usable = [data for data in sources if not unmapped(card.needs, data.mapping(card))]
    return [data for data in usable[:_OFFERED] if data.answers]


def _fits(criterion: Criterion, card: Card) -> bool:
    if criterion.gives != card.gives or criterion.compares != card.compares_candidates:
        return False
    if criterion.gives == "score":
        metric = card.metrics["en"]
        return (criterion.min_score, criterion.max_score) == (metric.min_score, metric.max_score)
    return criterion.gives in ("pass_fail", "comparison")
