"""A further draw: rows that were in no part of a split join it, with an evaluation of their own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from evalsite.accounts.models import User
from evalsite.audit import Action, record
from judging.core.licensing import TEST, TRAIN, Growth, Sizes, draw_further
from judging.core.metric_definition import MetricDefinition
from judging.trust.answers import row_keys
from judging.trust.drawing import SEEDS, Asking, RowCounts, ask, criterion_of
from judging.trust.leaks import refuse_test_texts
from judging.trust.models import FurtherDraw, SealedTest, SplitRow
from judging.trust.outdated import results_outdate
from judging.trust.services import rows_that_check_raters
from judging.trust.sources import Source


@dataclass(frozen=True, slots=True)
class FreeRows:
    """The rows of a source that are in no part of a split, by key. `earlier` and `new` rows can join the test, `others`
    train and dev; `looked_at` rows become train, without being rated."""

    lines: dict[str, int]
    earlier: Set[str]
    new: Set[str]
    others: Set[str]
    looked_at: Set[str]
    growth: Growth

    @property
    def count(self) -> int:
        """Those that can be drawn, for any part."""
        return len(self.earlier | self.new | self.others)


def free_rows(test: SealedTest, source: Source) -> FreeRows:
    """What a further draw from the source can take. Rows are new that no draw before could take; earlier ones that were
    set aside before anybody looked stay kept for the test."""
    split = test.split
    keys, _by_id = row_keys(source.version, by_id=split.by_id)
    checks = rows_that_check_raters(source.version)
    lines = {keys[line]: line for line in source.rows if line in keys and line not in checks}
    looked_at, aside = (
        {keys[line] for line in group if line in keys} & lines.keys()
        for group in (source.trained(split.metric), source.aside)
    )
    parts = dict(split.rows.values_list("key", "part"))
    free = lines.keys() - parts.keys()
    drawable = lines.keys() - looked_at
    before = drawable & _drawn_from(test, source)
    new = (free & drawable) - before
    left: set[str] = (free & before & aside) if aside else set() if split.weighted else free & before
    if aside and (not new or new & aside):
        before, new = before & aside, new & aside
    tested = sum(parts.get(key) == TEST for key in before)
    return FreeRows(
        lines=lines,
        earlier=left,
        new=new,
        others=(free & drawable) - aside,
        looked_at=free & looked_at,
        growth=Growth(len(before), tested, len(left), len(new)),
    )


def _drawn_from(test: SealedTest, source: Source) -> set[str]:
    """The keys of all rows that earlier draws could take."""
    keys: set[str] = set()
    draws: list[SealedTest | FurtherDraw] = [test]
    for draw in draws + list(test.further_draws.select_related("version", "evaluation__about_run")):
        if draw.version is None:
            continue
        about = draw.evaluation.about_run if draw.evaluation else None
        of_version, _by_id = row_keys(draw.version, by_id=test.split.by_id)
        rows = Source(draw.version, about, source.with_reference).rows
        keys |= {of_version[line] for line in rows if line in of_version}
    return keys


@transaction.atomic
def further_draw(
    *,
    test: SealedTest,
    definition: MetricDefinition,
    source: Source,
    sizes: Sizes,
    asking: Asking,
    user: User,
    seed: int | None = None,
) -> FurtherDraw:
    """Add rows that are in no part yet to a split, and have people rate them, blind. Every row stays as likely in the
    test as any other.

    Raises ValidationError if the rows cannot be drawn or rated, if the test takes no rows or not so many, or if the
    metric holds a text of a drawn test row; nothing is stored then.
    """
    test = SealedTest.objects.select_for_update().get(pk=test.pk)
    split, metric = test.split, test.split.metric
    seed = random.randrange(SEEDS) if seed is None else seed
    criterion = criterion_of(metric.name, definition)
    if criterion is None:
        raise ValidationError(_("People cannot rate on the scale of this metric."))
    if sizes == Sizes(0, 0, 0):
        raise ValidationError(_("Choose how many rows to draw."))
    free = free_rows(test, source)
    counts = _counts(test, free, sizes)
    parts = draw_further((free.earlier, free.new), free.others, counts, sizes, seed)
    if not parts:
        raise ValidationError(_("There are no rows to draw from."))
    SplitRow.objects.bulk_create(
        SplitRow(split=split, key=key, part=part)
        for key, part in (*parts.items(), *((key, TRAIN) for key in free.looked_at))
    )
    refuse_test_texts(metric, definition)
    rows = dict.fromkeys(source.rows[free.lines[key]] for key in parts)
    evaluation = ask(
        split, msgspec.structs.replace(criterion, name=split.criterion), source, asking, rows, user
    )
    drawn = FurtherDraw.objects.create(
        test=test, version=source.version, evaluation=evaluation, seed=seed, created_by=user
    )
    results_outdate(split.dataset)
    sizes_drawn: dict[str, Any] = Counter(parts.values())
    record(Action.SPLIT_DRAWN, project=metric.project, thing=metric, by=user, seed=seed, **sizes_drawn)
    return drawn


def _counts(test: SealedTest, free: FreeRows, sizes: Sizes) -> tuple[int, int]:
    """How many earlier and new rows join the test. Raises ValidationError."""
    if not sizes.test:
        return 0, 0
    if not test.can_grow:
        raise ValidationError(
            _(
                "This test takes no more rows: it is closed, or its labels were there before. Draw train and dev rows."
            )
        )
    try:
        return free.growth.divided(sizes.test)
    except ValueError:
        raise ValidationError(
            _(
                "So that every row is as likely in the test as any other, %(fewest)s to %(most)s rows can join it."
            )
            % {"fewest": free.growth.fewest, "most": free.growth.most}
        ) from None


def proposed_sizes(test: SealedTest, free: FreeRows) -> Sizes:
    """As many rows as a test usually lacks, or the new ones at the share of the earlier ones; where it takes none, dev
    rows."""
    usual = Sizes()
    further = min(_most(test, free), max(free.growth.fewest, usual.test - _tested(test)))
    return Sizes(0, 0 if further else min(usual.dev, len(free.others)), further)


def _most(test: SealedTest, free: FreeRows) -> int:
    """How many rows can join the test."""
    return free.growth.most if test.can_grow else 0


def rows_of_further_draw(test: SealedTest, free: FreeRows, sizes: Sizes) -> RowCounts:
    """What a further draw comes to."""
    tested, most = _tested(test), _most(test, free)
    further = min(sizes.test, most)
    others = min(sizes.dev + sizes.train, len(free.others), free.count - further)
    return RowCounts(tested + further, tested + most, further + others, len(free.looked_at))


def _tested(test: SealedTest) -> int:
    return test.split.rows.filter(part=TEST).count()
