"""Train and dev drawn more often where the judge failed an answer: no fair sample, and the test even all the same."""

from __future__ import annotations

from collections import Counter

import pytest

from evalsite.accounts.models import User
from judging.core.licensing import DEV, TEST, Sizes, draw_parts, weighted_chances
from judging.metrics.models import Metric
from judging.people.models import Item
from judging.records.models import Run
from judging.reports.frames import run_frame
from judging.trust.drawing import Asking, sealed_test_draw
from judging.trust.models import SealedTest, Split
from judging.trust.sources import Source
from tests.judging.people.make import rate_all
from tests.judging.trust.conftest import DEFINITION

pytestmark = pytest.mark.django_db
KEYS = [f"k{number}" for number in range(30)]
WEIGHTS = dict.fromkeys(KEYS[:6], 3.0)


def test_chances_follow_the_weights_and_add_up() -> None:
    chances = weighted_chances(KEYS, WEIGHTS, 10)
    assert sum(chances.values()) == pytest.approx(10)
    assert chances["k0"] == pytest.approx(3 * chances["k29"])


def test_no_chance_is_above_one() -> None:
    chances = weighted_chances(KEYS, dict.fromkeys(KEYS[:2], 100.0), 10)
    assert (chances["k0"], sum(chances.values())) == (1.0, pytest.approx(10))


def test_rows_are_drawn_as_often_as_their_chance_says() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1000):
        parts = draw_parts(KEYS, (), Sizes(0, 10, 0), seed, weights=WEIGHTS)
        assert len(parts) == 10
        counts.update(list(parts))
    chances = weighted_chances(KEYS, WEIGHTS, 10)
    for key in KEYS:
        assert counts[key] / 1000 == pytest.approx(chances[key], abs=0.06)


@pytest.fixture
def weighted(run: Run, metric: Metric, alice: User, rita: User) -> Split:
    return sealed_test_draw(
        metric=metric,
        definition=DEFINITION,
        source=Source(run.version, run),
        sizes=Sizes(5, 5, 10),
        user=alice,
        asking=Asking([rita]),
        weighted=True,
        seed=5,
    )


def test_chances_are_stored_for_train_and_dev_alone(weighted: Split) -> None:
    assert weighted.weighted
    assert weighted.rows.filter(drawn_with__isnull=False).exclude(part=TEST).count() == 10
    assert not weighted.rows.filter(part=TEST, drawn_with__isnull=False).exists()
    chances = Item.objects.filter(for_improving=True).values_list("drawn_with", flat=True)
    assert len(chances) == 10
    assert len(set(chances)) == 2
    assert len(set(Item.objects.filter(for_improving=False).values_list("drawn_with", flat=True))) == 1


def test_their_labels_are_in_no_report_of_the_judged_run(weighted: Split, run: Run, rita: User) -> None:
    evaluation = SealedTest.objects.get(split=weighted).evaluation
    assert evaluation is not None
    rate_all(evaluation, rita, True)
    assert not (run_frame(run)["source"] == "rater").any()
    assert weighted.rows.filter(part=DEV).exists()
