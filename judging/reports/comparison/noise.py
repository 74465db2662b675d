"""What a judge's own variation explains of a change, from the repeats that two runs stored."""

from __future__ import annotations

from collections import defaultdict
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
    """±, in score units; None unless the score is the mean of what judge models gave, each of them several times, in
    both runs. (Of a majority or a median the variance is not that of the votes divided by their number.)"""
    if not all(map(_is_mean_of_repeats, definitions)):
        return None
    shared = [
        key for key, item in first.items() if key in second and None not in (item.mean, second[key].mean)
    ]
    judged = [[part.judgement for key in shared for part in items[key].parts] for items in (first, second)]
    before, after = (repeat_variance(list(_repeats(ids))) for ids in judged)
    return noise_alone(before, after, min(map(len, judged)))


def _is_mean_of_repeats(definition: MetricDefinition) -> bool:
    numbers = definition.kind == SCORE or definition.compares_reference
    repeated = bool(definition.voters) and all(judge.repeats > 1 for judge in definition.voters)
    return numbers and repeated and definition.jury == "mean" and not definition.value_scripts


def _repeats(judgements: Sequence[int]) -> Iterator[list[list[float]]]:
    """For each judgement each judge's repeated verdicts, as numbers; of both orders the combined one."""
    for at in range(0, len(judgements), _BATCH):
        texts = Judgement.objects.filter(pk__in=judgements[at : at + _BATCH]).values_list(
            "verdicts", flat=True
        )
        for text in texts:
            by_judge: dict[int, list[float]] = defaultdict(list)
            verdicts = verdicts_by_place(text)
            both = {place[:2] for place in verdicts if place[2] == "both"}
            for (judge, repeat, order, _criterion), verdict in verdicts.items():
                if isinstance(verdict["value"], int | float) and (
                    order == "both" or (judge, repeat) not in both
                ):
                    by_judge[judge].append(float(verdict["value"]))
            yield list(by_judge.values())
