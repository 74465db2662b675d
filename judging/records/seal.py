"""The seal on a judge's test: until it is opened, people's labels of its rows are shown to nobody but the rater who
gave them, at the desk, and those who adjudicate them. Whatever else reads people's labels leaves out what
`sealed_labels` matches, and says how many are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_

from django.db.models import Q

from datasets.models import Version
from evalsite.hooks import Hook
from judging.core.people.criteria import Criterion
from judging.records.models import Judgement, JudgementQuerySet, Run, SourceKind

SealedRows = Mapping[str, frozenset[int]]
"""{name of the criterion that people rate: ids of rows}"""
BY_PEOPLE = (SourceKind.RATER, SourceKind.ADJUDICATOR)
_NONE = frozenset[int]()

sealed_rows: Hook[Callable[[Version], SealedRows]] = Hook("judging.records.seal.sealed_rows")
"""The rows of tests that were not opened yet."""
split_rows: Hook[Callable[[Version], frozenset[int]]] = Hook("judging.records.seal.split_rows")
"""Ids of all rows that are in a split, in whichever part."""
closed_rows: Hook[Callable[[Run], frozenset[int]]] = Hook("judging.records.seal.closed_rows")
"""Ids of the rows of closed tests, for an evaluation's run whose ratings may be in them."""


def sealed_of(run: Run) -> SealedRows:
    """The rows of a run on which people's labels under its criteria are sealed. What a rater wrote under a criterion of
    free text is sealed with the label."""
    rows: dict[str, frozenset[int]] = {}
    for read in () if run.by_workers else sealed_rows:
        for criterion, sealed in read(run.version).items():
            rows[criterion] = rows.get(criterion, _NONE) | sealed
    if not rows:
        return rows
    definitions = dict(run.metrics.values_list("name", "definition"))
    own = {name: rows[name] for name in definitions if name in rows}
    texts = [name for name in definitions if run.by_people and _is_text(definitions[name])]
    return own | {name: _NONE.union(*own.values()) for name in texts} if own else {}


def _is_text(definition: str) -> bool:
    return Criterion.from_json(definition).scale == "text"


def sealed_labels(run: Run) -> Q | None:
    """Matches the judgements of a run that are sealed labels of people; None if it has none."""
    rows = sealed_of(run)
    if not rows:
        return None
    metrics = run.metrics.filter(name__in=rows).values_list("pk", "name")
    sealed = reduce(or_, (Q(run_metric=pk, row__in=rows[name]) for pk, name in metrics))
    if run.imported:
        sources = run.verdict_sources.filter(kind__in=BY_PEOPLE).values_list("pk", flat=True)
        sealed &= Q(source__in=list(sources))
    return sealed


def unsealed(run: Run, judgements: JudgementQuerySet) -> JudgementQuerySet:
    """The judgements without sealed labels. The query is unchanged if the run has none."""
    sealed = sealed_labels(run)
    return judgements if sealed is None else judgements.exclude(sealed)


def is_sealed(judgement: Judgement) -> bool:
    """Whether it is a sealed label."""
    sealed = sealed_labels(judgement.run)
    return sealed is not None and Judgement.objects.filter(sealed, pk=judgement.pk).exists()


def without_sealed(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Those, of whichever runs, that are no sealed labels."""
    return [judgement for judgement in judgements if not is_sealed(judgement)]


def sealed_items(run: Run) -> frozenset[int]:
    """Ids of the rows whose ratings are sealed in an evaluation: a rating is shown whole or not at all."""
    return _NONE.union(*sealed_of(run).values())


def sealed_count(runs: Iterable[Run]) -> int:
    """How many current labels of people are sealed in these runs."""
    conditions = [(run, sealed) for run in runs if (sealed := sealed_labels(run)) is not None]
    return sum(Judgement.objects.filter(sealed, run=run, current=True).count() for run, sealed in conditions)


def sealed_header(run: Run) -> dict[str, str]:
    """A header of downloads that says how many labels they leave out; none without any."""
    count = sealed_count([run])
    return {"X-Sealed-Ratings": str(count)} if count else {}


def in_split(version: Version) -> frozenset[int]:
    """Ids of the rows that are in a split: they are never gold, training or a repeat."""
    return _NONE.union(*(read(version) for read in split_rows))


def closed_for_rating(run: Run) -> frozenset[int]:
    """Ids of the rows of which an evaluation may take no more ratings, because their test was closed."""
    return _NONE.union(*(read(run) for read in closed_rows))


def waiting_to_open(run: Run) -> frozenset[int]:
    """Ids of the rows of closed tests that were not opened yet: their labels count as they stood when they were
    closed, so nobody decides on them now."""
    closed = closed_for_rating(run)
    return closed & sealed_items(run) if closed else _NONE
