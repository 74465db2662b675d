"""The sentinels of a watch: answers of an opened test, drawn evenly, stored as a data set of the watch's own."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from datasets.core.formats import LEGACY
from datasets.core.kinds import CHECKLIST, SCORE
from datasets.importing.worker import import_or_wait
from datasets.models import Dataset, Version
from datasets.services import dataset_upload
from datasets.versions.row_writer import WholeRow, as_json
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.watch import FEWEST_SENTINELS, MOST_SENTINELS, Sittings
from judging.core.values import NO_SCORE, UNPARSED, Value
from judging.records.definitions import definition_now
from judging.records.models import Judgement, Run
from judging.trust.answers import (
    Answer,
    ids_by_answer,
    judge_values,
    row_keys,
    says_the_same,
    value_author,
    verdicts_of,
)
from judging.trust.drills import modern_row
from judging.trust.models import Licence
from judging.trust.watch.models import Sitting, Watch

ANSWER, OTHER = "answer", "other"
"""The candidates of a watch's data set; the second one only where answers are compared."""
NONE = "none"


@dataclass(frozen=True, slots=True)
class Sentinel:
    """An answer of the licence's test with the judge's value in it, and people's."""

    answer: Answer
    judge: Value
    people: Value

    @classmethod
    def of(cls, stored: Sequence[Any]) -> Sentinel:
        *answer, judge, people = stored
        return cls(Answer(*answer), judge, people)


def sentinels_of(watch: Watch) -> list[Sentinel]:
    """In the order of the lines of the watch's data set."""
    return [Sentinel.of(stored) for stored in watch.sentinels]


def sentinels_draw(licence: Licence, number: int, seed: int) -> list[list[Any]]:
    """So many of the licence's answers, each with the same probability. Raises ValidationError for a number outside
    30 to 100, or if the test holds fewer, or its run was deleted."""
    if not FEWEST_SENTINELS <= number <= MOST_SENTINELS:
        raise ValidationError(_("A watch takes 30 to 100 sentinel answers."))
    if len(licence.answers) < number:
        text = ngettext(
            "The test behind this licence holds %(n)s answer: too few for so many sentinels.",
            "The test behind this licence holds %(n)s answers: too few for so many sentinels.",
            len(licence.answers),
        )
        raise ValidationError(text % {"n": len(licence.answers)})
    if run_of(licence) is None:
        raise ValidationError(
            _(
                "The run behind this licence was deleted, and with it the answers. Open a test anew to watch the judge."
            )
        )
    drawn = random.Random(f"sentinels:{seed}").sample(sorted(licence.answers, key=json.dumps), number)
    return sorted(drawn, key=json.dumps)


def run_of(licence: Licence) -> Run | None:
    """The run whose verdicts the licence rests on; None if it was deleted."""
    run = licence.opening.run if licence.opening else None
    return run if run is not None and run.deleted_at is None else None


def version_store(watch: Watch) -> Version:
    """Store the sentinels as a data set, a row each, archived so that it is in nobody's way. Raises ValidationError if
    its run was deleted meanwhile, or the data set cannot be read."""
    metric = watch.licence.metric_version.metric
    file = io.BytesIO("\n".join(_lines(watch)).encode())
    name = _("%(metric)s: sentinels %(n)s") % {"metric": metric.name[:150], "n": watch.pk}
    uploaded = dataset_upload(
        project=metric.project, name=name, file=file, file_name="sentinels.jsonl", user=watch.created_by
    )
    version = import_or_wait(uploaded.pk)
    Dataset.objects.filter(pk=version.dataset_id).update(archived_at=timezone.now())
    if not version.usable or version.valid_rows != len(watch.sentinels):
        raise ValidationError(_("The sentinel answers could not be read as a data set."))
    return version


def _lines(watch: Watch) -> list[str]:
    run = run_of(watch.licence)
    if run is None or watch.licence.opening is None:
        raise ValidationError(_("The run behind this licence was deleted."))
    keys = row_keys(run.version, by_id=watch.licence.opening.test.split.by_id)[0]
    run_metrics = run.metrics.filter(metric_version=watch.licence.metric_version)
    judgements = Judgement.objects.filter(run=run, current=True, run_metric__in=run_metrics)
    against_reference = definition_of(watch.licence).compares_reference
    ids = ids_by_answer(judgements, keys, with_reference=against_reference)
    rows = judgements.select_related("row", "response", "other_response").in_bulk(
        [ids[sentinel.answer] for sentinel in sentinels_of(watch)]
    )
    return [_line(rows[ids[sentinel.answer]], run.version.format) for sentinel in sentinels_of(watch)]


def _line(judgement: Judgement, fmt: str) -> str:
    responses = [(ANSWER, judgement.response)]
    if judgement.other_response is not None:
        responses.append((OTHER, judgement.other_response))
    answers = [(name, response.raw) for name, response in responses]
    raw = judgement.row.raw
    if fmt in LEGACY:
        raw = json.dumps(modern_row(raw, fmt), ensure_ascii=False)
    return as_json(WholeRow(judgement.row.line, valid=True, raw=raw, answers=answers), "judge_only")


def definition_of(licence: Licence) -> MetricDefinition:
    """The licensed definition, as its run froze it."""
    run = run_of(licence)
    frozen = run.metrics.filter(metric_version=licence.metric_version).first() if run else None
    return definition_now(frozen) if frozen else MetricDefinition.from_json(licence.metric_version.definition)


def as_judged(definition: MetricDefinition) -> MetricDefinition:
    """The definition of a sitting: where answers are compared, those of a row meet."""
    if not definition.compares_candidates:
        return definition
    return msgspec.structs.replace(definition, compares="all", baseline="")


# --- verdicts --------------------------------------------------------------------------------------------------


def verdicts_in(watch: Watch, run: Run) -> list[Any]:
    """The verdicts of a sitting's run, as `Sitting.verdicts` stores them."""
    run_metric = run.metrics.get()
    verdicts, _metric = verdicts_of(run, run_metric)
    author = value_author(verdicts)
    lines = range(1, len(watch.sentinels) + 1)
    values = judge_values(verdicts, author, {line: str(line) for line in lines}) if author else {}
    by_line: dict[int, Any] = {int(answer.row): value for answer, value in values.items()}
    states = dict(run.judgements.filter(current=True).values_list("row__line", "state"))
    return [
        by_line[line]
        if line in by_line
        else {NONE: states[line]}
        if states.get(line) in (UNPARSED, NO_SCORE)
        else None
        for line in lines
    ]


def has_numbers(definition: MetricDefinition) -> bool:
    """Whether its verdicts are numbers, of which the mean may shift."""
    return definition.kind in (SCORE, CHECKLIST) and not definition.compares_candidates


def differs(verdict: Any, own: Value) -> bool:
    """Whether a verdict differs from the licence's own; comparisons by their direction."""
    return isinstance(verdict, Mapping) or not says_the_same(verdict, own)


def sittings_of(watch: Watch, sittings: Sequence[Sitting], numbers: bool) -> Sittings:
    """The verdicts of these sittings, for the tests."""
    sentinels = sentinels_of(watch)
    changed = np.full((len(sentinels), len(sittings)), math.nan)
    values = np.full_like(changed, math.nan)
    for column, sitting in enumerate(sittings):
        for place, (verdict, sentinel) in enumerate(zip(sitting.verdicts or (), sentinels, strict=True)):
            if verdict is not None:
                changed[place, column] = differs(verdict, sentinel.judge)
                if not isinstance(verdict, (Mapping, str)):
                    values[place, column] = float(verdict)
    return Sittings(changed, values if numbers else None)


def agreement_of(watch: Watch, sitting: Sitting) -> tuple[int, int]:
    """(how many verdicts people agree with, of how many)."""
    pairs = [
        not differs(verdict, sentinel.people)
        for verdict, sentinel in zip(sitting.verdicts or (), sentinels_of(watch), strict=True)
        if verdict is not None
    ]
    return sum(pairs), len(pairs)
