"""Draw a split with its test, and the evaluation in which people rate its rows."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from datasets.core.kinds import CHECKLIST, COMPARISON, PASS_FAIL, SCORE
from evalsite.accounts.models import User
from judging.core.licensing import TEST, Sizes
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import Criterion
from judging.core.people.instructions import instruction_of
from judging.filters.row_filters import id_subquery
from judging.look.models import LookAnswer
from judging.metrics.models import Metric
from judging.people.blindness import is_named
from judging.people.models import Evaluation, Item, Scheme
from judging.people.presets import scale_of_kind, scale_of_scores
from judging.people.sampling import ItemChoice
from judging.people.services import Terms, evaluation_create
from judging.records.models import Judgement
from judging.runs.services import free_name
from judging.trust.closing import complete_tests_close
from judging.trust.labelled import Labels
from judging.trust.leaks import refuse_test_texts
from judging.trust.models import SealedTest, Split
from judging.trust.services import sealed_test_close, split_draw
from judging.trust.sources import Source

SEEDS = 2**31


@dataclass(frozen=True, slots=True)
class Asking:
    """Who rates the drawn rows, how many of them each item, their guideline (Markdown), and whether they see the
    reference beside an answer."""

    raters: Sequence[User] = ()
    overlap: int = 1
    guideline: str = ""
    shows_reference: bool = False


def criterion_of(metric_name: str, definition: MetricDefinition) -> Criterion | None:
    """What people rate for a metric, on the same scale; None where they cannot."""
    if definition.kind == COMPARISON:
        both_bad = definition.compares_candidates and definition.both_bad
        return Criterion(name=metric_name, scale="gsb", both_bad=both_bad)
    scale, names = scale_of_kind(definition)
    if scale := scale or scale_of_scores(definition):
        return Criterion(name=metric_name, scale=scale, categories=names)
    if definition.kind != SCORE or not definition.scale_declared:
        return None
    low, high = definition.min_score, definition.max_score
    return Criterion(name=metric_name, scale="ends", min_score=low, max_score=high)


def guideline_of(definition: MetricDefinition) -> str:
    """The first judge's instruction, to be offered to people."""
    if not definition.judges:
        return ""
    judge = definition.judges[0]
    return instruction_of(judge.template, definition.min_score, definition.max_score, judge.system_prompt)


def reads_reference(definition: MetricDefinition) -> bool:
    """Whether a prompt or script of the metric names the row's reference, so that people need it, too."""
    texts = [judge.template for judge in definition.judges] + [script.source for script in definition.scripts]
    return any(_REFERENCE.search(text) for text in texts)


_REFERENCE = re.compile(r"\b(?:ref_answer|gt)\b")


@transaction.atomic
def sealed_test_draw(
    *,
    metric: Metric,
    definition: MetricDefinition,
    source: Source,
    sizes: Sizes,
    user: User,
    asking: Asking | None = None,
    labels: Labels | None = None,
    weighted: bool = False,
    seed: int | None = None,
) -> Split:
    """Divide a source's rows into train, dev and test, and have people rate them, blind. `labels`: those that are there
    already, in place of `asking`; the test is closed at once if no more can come. `weighted`: rows with an answer that
    the judge failed or scored low are drawn more often for train and dev.

    Raises ValidationError if the rows cannot be drawn or rated, or if the metric holds a text of the drawn test, which
    could never be opened; nothing is stored then.
    """
    seed = random.randrange(SEEDS) if seed is None else seed
    criterion = criterion_of(metric.name, definition)
    if criterion is None:
        raise ValidationError(_("People cannot rate on the scale of this metric."))
    split = split_draw(
        version=source.version,
        metric=metric,
        sizes=sizes,
        seed=seed,
        aside=source.aside,
        train=source.trained(metric),
        lines=labels.lines if labels else source.rows,
        criterion=labels.run_metric.name if labels else criterion.name,
        evaluation=labels.evaluation if labels else None,
        imported=labels.run_metric.run if labels and labels.evaluation is None else None,
        weights=doubted_rows(metric, definition, source) if weighted and labels is None else None,
        user=user,
    )
    refuse_test_texts(metric, definition)
    if labels is None:
        evaluation = ask(split, criterion, source, asking or Asking(), _chances(split, source), user)
        if split.weighted:
            _mark_for_improving(split, source, evaluation)
        SealedTest.objects.filter(split=split).update(evaluation=evaluation)
    elif labels.final:
        sealed_test_close(test=split.test, run=labels.run_metric.run, user=user)
    elif labels.evaluation is not None:
        complete_tests_close(labels.evaluation)
    return split


DOUBTED = 3.0
"""How much more often than others a row is drawn on which the judge failed an answer or scored it low."""


def doubted_rows(metric: Metric, definition: MetricDefinition, source: Source) -> dict[int, float]:
    """{line: weight} of the source's rows with an answer that the metric failed, or scored in the lower half of its
    scale; empty where it has not judged them, or has no such scale."""
    low = _scored_low(metric, definition, source)
    return dict.fromkeys(low.order_by().values_list("row__line", flat=True).distinct(), DOUBTED)


def has_doubted_rows(metric: Metric, definition: MetricDefinition, source: Source) -> bool:
    """Whether there are any `doubted_rows`."""
    return _scored_low(metric, definition, source).exists()


def _scored_low(metric: Metric, definition: MetricDefinition, source: Source) -> QuerySet[Judgement]:
    if source.run is None or definition.kind not in (PASS_FAIL, SCORE, CHECKLIST):
        return Judgement.objects.none()
    middle = 0.5 if definition.kind != SCORE else (definition.min_score + definition.max_score) / 2
    low = Judgement.objects.filter(run=source.run, current=True, run_metric__metric_version__metric=metric)
    return low.filter(score_in_force__lt=middle)


def _mark_for_improving(split: Split, source: Source, evaluation: Evaluation) -> None:
    """The items of train and dev, whose labels are no fair sample."""
    keys = source.keys[0]
    tested = set(split.rows.filter(part=TEST).values_list("key", flat=True))
    rows = [pk for line, pk in source.rows.items() if keys[line] not in tested]
    Item.objects.filter(evaluation=evaluation, row__in=id_subquery(rows)).update(for_improving=True)


def ask(
    split: Split,
    criterion: Criterion,
    source: Source,
    asking: Asking,
    rows: Mapping[int, float | None],
    user: User,
) -> Evaluation:
    """Have people rate rows of a source, given by id with the probability of each; None: not drawn evenly.

    Raises ValidationError if the guideline names a candidate.
    """
    named = [name for name in source.candidates if is_named(name.name, asking.guideline)]
    if named:
        text = _("Raters can read the guideline, and it contains the model name %(name)s. Remove the name.")
        raise ValidationError(text % {"name": named[0].name})
    scheme = Scheme.REFERENCE if source.with_reference else Scheme.EVERY_PAIR
    return evaluation_create(
        project=split.metric.project,
        name=free_name(split.metric.project, criterion.name),
        choice=ItemChoice(
            source.version,
            candidates=source.candidates,
            scheme=scheme if criterion.compares else Scheme.NONE,
            about=source.run,
            rows=rows,
            seed=split.seed,
        ),
        criteria=[criterion],
        raters=asking.raters,
        user=user,
        terms=Terms(
            overlap=asking.overlap, guideline=asking.guideline, shows_reference=asking.shows_reference
        ),
    )


def _chances(split: Split, source: Source) -> Mapping[int, float | None]:
    """{id of a row to rate: the probability with which it was drawn}. Rows that were looked at have labels already."""
    keys = source.keys[0]
    parts = dict(split.rows.values_list("key", "part"))
    own = dict(split.rows.filter(drawn_with__isnull=False).values_list("key", "drawn_with"))
    looked_at = source.trained(split.metric)
    lines = [line for line in source.rows if keys[line] in parts and line not in looked_at]
    tested = {line for line in lines if parts[keys[line]] == TEST}
    aside = source.aside & set(source.rows)
    if not aside and not own:
        even = len(lines) / len(source.rows)
        return dict.fromkeys((source.rows[line] for line in lines), even)
    if own:
        test = len(tested) / max(1, len(aside) or len(source.rows))
        return {source.rows[line]: test if line in tested else own.get(keys[line]) for line in lines}
    rest = (len(lines) - len(tested)) / max(1, len(source.rows) - len(aside))
    others = None if looked_at and _weighted(source) else rest
    return {source.rows[line]: len(tested) / len(aside) if line in tested else others for line in lines}


def _weighted(source: Source) -> bool:
    """Whether a look drew rows with low scores more often, so that those left over are not an even draw."""
    looks = LookAnswer.objects.filter(look__version__dataset=source.version.dataset_id)
    return looks.filter(look__by_score_of__isnull=False).exists()


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What a draw comes to, in rows: those of the `test` after it, of at `most` so many; `rated` by people; and those
    that were `looked_at`, which are train without being rated."""

    test: int
    most: int
    rated: int
    looked_at: int


def rows_of_draw(sizes: Sizes, source: Source, metric: Metric) -> RowCounts:
    """Those of a first draw."""
    looked_at = len(source.trained(metric))
    test = min(sizes.test, source.drawable)
    aside = len(source.aside & set(source.rows)) if source.aside else test
    others = len(source.rows) - aside - looked_at
    rated = test + min(max(0, sizes.train - looked_at) + sizes.dev, max(0, others))
    return RowCounts(test, source.drawable, rated, looked_at)
