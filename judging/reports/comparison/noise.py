"""What a judge's own variation explains of a change, from the repeats that two runs stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from datasets.core.kinds import SCORE
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.noise import noise_alone, repeat_variance
from judging.records.models import Judgement
from judging.records.stored_judgement import verdicts_by_place
from judging.reports.comparison.items import Items

_BATCH = 2_000


def noise_of(
    definitions: tuple[MetricDefinition, MetricDefinition], first: Items, second: Items
) -> float | None:
    """±, in score units; None unless one judge model gives the score itself, several times, in both runs."""
    if not all(map(_has_repeats, definitions)):
        return None
    shared = [
        key for key, item in first.items() if key in second and None not in (item.mean, second[key].mean)
    ]
    judged = [[part.judgement for key in shared for part in items[key].parts] for items in (first, second)]
    before, after = (repeat_variance(list(_repeats(ids))) for ids in judged)
    return noise_alone(before, after, min(map(len, judged)))


def _has_repeats(definition: MetricDefinition) -> bool:
    plain = not definition.compares_candidates and definition.kind == SCORE
    one = len(definition.judges) == 1 and definition.judges[0].repeats > 1
    return plain and one and not definition.value_scripts


def _repeats(judgements: Sequence[int]) -> Iterator[list[float]]:
    """The repeated verdicts of each judgement, as numbers."""
    for at in range(0, len(judgements), _BATCH):
        texts = Judgement.objects.filter(pk__in=judgements[at : at + _BATCH]).values_list(
            "verdicts", flat=True
        )
        for text in texts:
            values = (verdict["value"] for verdict in verdicts_by_place(text).values())
            yield [float(value) for value in values if isinstance(value, (int, float))]
