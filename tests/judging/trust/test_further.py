"""A further draw: rows that were in no part join a split, and its test stays an even draw."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from datasets.models import Candidate, Response, Row, Version, VersionState
from evalsite.accounts.models import Project, User
from judging.core.licensing import DEV, TEST, TRAIN, Growth, Sizes, draw_further
from judging.metrics.models import Metric
from judging.people.models import Item
from judging.records.models import Run
from judging.trust.dev import labels_in
from judging.trust.drawing import Asking
from judging.trust.further import FreeRows, free_rows, further_draw, proposed_sizes
from judging.trust.models import FurtherDraw, SealedTest, Split, SplitRow
from judging.trust.progress import progress_of
from judging.trust.seal import sealed_rows
from judging.trust.sources import Source
from tests.conftest import ClientOf
from tests.judging.people.make import rate_each
from tests.judging.trust.conftest import DEFINITION, Draw
from tests.make import asked, said


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return re.sub(r"(?:<[^>]*>|\s)+", " ", response.content.decode())


@pytest.mark.parametrize(
    ("growth", "fewest", "most"),
    [
        (Growth(earlier=500, tested=60, left=440, new=0), 0, 440),
        (Growth(earlier=500, tested=60, left=440, new=200), 24, 640),
        (Growth(earlier=500, tested=60, left=0, new=200), 24, 24),
        (Growth(earlier=0, tested=0, left=0, new=50), 0, 50),
    ],
)
def test_how_many_rows_can_join_a_test(growth: Growth, fewest: int, most: int) -> None:
    assert (growth.fewest, growth.most) == (fewest, most)
    for further in (fewest, (fewest + most) // 2, most):
        earlier, new = growth.divided(further)
        assert earlier + new == further
        assert 0 <= earlier <= growth.left
        assert 0 <= new <= growth.new
        if growth.earlier and growth.new:
            shares = (growth.tested + earlier) / growth.earlier, new / growth.new
            assert shares[0] == pytest.approx(shares[1], abs=1 / growth.new)
    for wrong in (fewest - 1, most + 1):
        with pytest.raises(ValueError, match=str(wrong)):
            growth.divided(wrong)


def test_every_row_is_as_likely_in_the_test() -> None:
    """Of 40 earlier rows 10 were in the test; 20 new ones came, and 10 more rows are drawn."""
    times = 600
    earlier, new = [f"e{n:02}" for n in range(40)], [f"n{n:02}" for n in range(20)]
    drawn: Counter[str] = Counter()
    for seed in range(times):
        first = draw_further((earlier, []), earlier, (10, 0), Sizes(5, 5, 10), seed)
        left = [key for key in earlier if key not in first]
        counts = Growth(40, 10, len(left), 20).divided(10)
        further = draw_further((left, new), [*left, *new], counts, Sizes(0, 5, 10), seed + times)
        drawn.update(key for parts in (first, further) for key, part in parts.items() if part == TEST)
    assert sum(drawn.values()) == 20 * times
    shares = [drawn[key] / times for key in (*earlier, *new)]
    assert min(shares) > 0.25
    assert max(shares) < 0.42


@pytest.fixture
def grown(run: Run) -> Version:
    """A new version of the run's data set: its thirty rows, and twelve new ones."""
    version = Version.objects.create(
        dataset=run.version.dataset,
        number=2,
        state=VersionState.READY,
        format="judge_only",
        rows=42,
        valid_rows=42,
        models_found=["alpha"],
    )
    candidate = Candidate.objects.create(version=version, name="alpha", responses=42)
    for line in range(1, 43):
        row = Row.objects.create(version=version, line=line, valid=True, raw=json.dumps(asked(line)))
        Response.objects.create(
            row=row, candidate=candidate, number=1, raw=json.dumps(said(candidate, row, 1))
        )
    return version


def fresh(split: Split) -> Split:
    return Split.objects.get(pk=split.pk)


def parts_of(split: Split) -> Counter[str]:
    return Counter(split.rows.values_list("part", flat=True))


def draw_more(split: Split, source: Source, sizes: Sizes, alice: User, rita: User) -> FurtherDraw:
    return further_draw(
        test=split.test,
        definition=DEFINITION,
        source=source,
        sizes=sizes,
        asking=Asking([rita]),
        user=alice,
        seed=7,
    )


def test_rows_of_the_same_version_join_all_parts(split: Split, run: Run, alice: User, rita: User) -> None:
    with pytest.raises(ValidationError, match="no rows to draw"):
        draw_more(split, Source(run.version, run), Sizes(1, 1, 0), alice, rita)


def test_a_test_that_is_too_small_grows_and_its_labels_come_together(
    draw: Draw, run: Run, alice: User, rita: User
) -> None:
    split = fresh(draw(Sizes(4, 6, 5)))
    draw_more(split, Source(run.version, run), Sizes(2, 3, 7), alice, rita)
    assert parts_of(split) == {TRAIN: 6, DEV: 9, TEST: 12}
    test = SealedTest.objects.get(split=split)
    first, second = test.evaluations
    assert (first.items_count, second.items_count) == (15, 12)
    rate_each(first, rita, lambda item: item.row.line % 2 == 1)
    progress = progress_of(test)
    assert (progress.ratings, progress.needed, progress.next_evaluation) == (15, 27, second)
    rate_each(second, rita, lambda item: item.row.line % 2 == 1)
    assert len(labels_in(split, DEV)) == 9
    assert len(labels_in(split, DEV, TRAIN)) == 15
    assert len(sealed_rows(run.version)[split.criterion]) == 12
    test.refresh_from_db()
    assert (test.open, len(test.labels)) == (False, 12)


def test_new_rows_belong_to_no_part_until_they_are_drawn(
    draw: Draw, run: Run, grown: Version, alice: User, rita: User
) -> None:
    split = fresh(draw(Sizes(5, 5, 10)))
    assert not sealed_rows(grown)[split.criterion] & set(
        Row.objects.filter(version=grown, line__gt=30).values_list("pk", flat=True)
    )
    free = free_rows(split.test, Source(grown))
    assert (free.growth.earlier, free.growth.tested, free.growth.left, free.growth.new) == (30, 10, 10, 12)
    with pytest.raises(ValidationError, match="4 to"):
        draw_more(split, Source(grown), Sizes(0, 0, 3), alice, rita)
    drawn = draw_more(split, Source(grown), Sizes(0, 0, 4), alice, rita)
    assert drawn.evaluation is not None
    lines = Item.objects.filter(evaluation=drawn.evaluation).values_list("row__line", flat=True)
    assert len(lines) == 4
    assert min(lines) > 30
    assert split.test.newest_version == grown


def test_a_closed_test_takes_no_more_rows_but_dev_does(
    draw: Draw, run: Run, grown: Version, alice: User, rita: User
) -> None:
    split = fresh(draw(Sizes(0, 0, 10)))
    test = split.test
    assert test.evaluation is not None
    rate_each(test.evaluation, rita, lambda item: True)
    split = fresh(split)
    with pytest.raises(ValidationError, match="no more rows"):
        draw_more(split, Source(grown), Sizes(0, 0, 4), alice, rita)
    draw_more(split, Source(grown), Sizes(3, 5, 0), alice, rita)
    assert parts_of(split) == {TRAIN: 3, DEV: 5, TEST: 10}


def test_rows_left_by_a_weighted_draw_join_no_test(draw: Draw, run: Run, grown: Version) -> None:
    split = fresh(draw(Sizes(5, 5, 10)))
    Split.objects.filter(pk=split.pk).update(weighted=True)
    free = free_rows(fresh(split).test, Source(grown))
    assert free.growth.fewest == free.growth.most == 4


def test_the_page_says_what_can_be_drawn_and_draws_it(
    draw: Draw, run: Run, grown: Version, metric: Metric, alice: User, rita: User, client_of: ClientOf
) -> None:
    split = fresh(draw(Sizes(5, 5, 10)))
    base = f"/p/physics/judges/tests/{split.pk}/further/"
    page = client_of(alice)
    shown = text_of(page, f"{base}?source=version-{grown.pk}")
    assert "12 of them are new since the last draw." in shown
    assert "None, or 4 to" in shown
    assert "Draw more rows" in text_of(page, f"/p/physics/judges/{metric.pk}/")
    sent = {"source": f"version-{grown.pk}", "test": 2, "dev": 0, "train": 0, "overlap": 1, "raters": rita.pk}
    refused = page.post(base, sent)
    assert refused.status_code == 422
    assert "4 to" in refused.content.decode()
    empty = page.post(base, sent | {"test": 0})
    assert "Choose how many rows to draw." in empty.content.decode()
    assert page.post(base, sent | {"test": 4, "dev": 2}).status_code == 302
    assert parts_of(split) == {TRAIN: 5, DEV: 7, TEST: 14}
    assert client_of(rita).get(base).status_code == 403


def test_the_page_tells_what_the_test_is_worth_with_the_new_rows(
    draw: Draw, run: Run, alice: User, client_of: ClientOf
) -> None:
    split = draw(Sizes(5, 5, 10))
    base = f"/p/physics/judges/tests/{split.pk}/further/"
    shown = text_of(client_of(alice), f"{base}?source=run-{run.pk}")
    assert "10 of them are in no part yet." in shown
    assert "new since the last draw" not in shown
    assert "At most 10." in shown
    assert "Test answers, with the earlier ones 20 Ratings in all 10" in shown
    assert "It can have only 20 here." in shown
    more = text_of(client_of(alice), f"{base}?source=run-{run.pk}&test=4&dev=40&train=0&overlap=1")
    assert "with the earlier ones 14 Ratings in all 10" in more


@pytest.mark.parametrize(
    ("tested", "new", "sizes"),
    [(10, 0, Sizes(0, 0, 50)), (90, 200, Sizes(0, 0, 36)), (60, 0, Sizes(0, 0, 0)), (55, 3, Sizes(0, 0, 5))],
)
def test_a_further_draw_proposes_what_a_test_lacks(draw: Draw, tested: int, new: int, sizes: Sizes) -> None:
    split = fresh(draw(Sizes(10, 10, 10)))
    SplitRow.objects.filter(split=split).delete()
    SplitRow.objects.bulk_create(SplitRow(split=split, key=f"k{n}", part=TEST) for n in range(tested))
    free = FreeRows({}, set(), set(), set(), set(), Growth(500, tested, 300, new))
    assert proposed_sizes(split.test, free) == sizes


def test_nothing_left_to_draw_is_said(split: Split, run: Run, alice: User, client_of: ClientOf) -> None:
    shown = text_of(client_of(alice), f"/p/physics/judges/tests/{split.pk}/further/")
    assert "No row is left" in shown


def test_dev_rows_can_be_rated_where_the_evaluation_of_the_test_was_deleted(
    draw: Draw, run: Run, alice: User, rita: User
) -> None:
    split = fresh(draw(Sizes(4, 6, 5)))
    drawn = draw_more(split, Source(run.version, run), Sizes(0, 2, 0), alice, rita)
    SealedTest.objects.filter(split=split).update(evaluation=None)
    assert drawn.evaluation is not None
    rate_each(drawn.evaluation, rita, lambda item: True)
    assert fresh(split).test.open


def test_a_project_that_deletes_the_further_evaluation_keeps_the_split(
    draw: Draw, run: Run, alice: User, rita: User, project: Project
) -> None:
    split = fresh(draw(Sizes(4, 6, 5)))
    drawn = draw_more(split, Source(run.version, run), Sizes(0, 2, 0), alice, rita)
    assert drawn.evaluation is not None
    FurtherDraw.objects.filter(pk=drawn.pk).update(evaluation=None)
    assert len(SealedTest.objects.get(split=split).evaluations) == 1
