"""Changes between two versions: compared once in the background, shown in pages."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from datasets.models import Difference, DifferenceRow, Version
from datasets.versions import compare, temp_files
from datasets.versions.compare import difference_ask
from datasets.versions.row_diff import row_diffs
from evalsite.accounts.models import User
from evalsite.models import Job
from evalsite.tasks import jobs
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, numbered, question

pytestmark = pytest.mark.django_db
OLD = [question("a", id=1, ref_answer="one"), question("b", id=2), question("c", id=3)]
NEW = [question("b", id=2), question("a", id=1, ref_answer="two"), question("d", id=4)]


@pytest.fixture
def two(upload: Upload) -> tuple[Version, Version]:
    return upload(jsonl(*OLD), read=True), upload(jsonl(*NEW), read=True)


def compared(old: Version, new: Version) -> Difference:
    difference = difference_ask(old=old, new=new)
    jobs.run("compare_versions", difference.pk)
    difference.refresh_from_db()
    return difference


def counts(difference: Difference) -> tuple[int, int, int, int]:
    return difference.same, difference.changed, difference.added, difference.removed


def found(difference: Difference) -> list[tuple[Any, ...]]:
    rows = DifferenceRow.objects.filter(difference=difference).order_by("position")
    return list(rows.values_list("position", "kind", "old_line", "new_line"))


def test_rows_are_counted_and_listed(two: tuple[Version, Version]) -> None:
    difference = compared(*two)
    assert (difference.ready, difference.by_id, counts(difference)) == (True, True, (1, 1, 1, 1))
    assert found(difference) == [(1, "changed", 1, 2), (2, "removed", 3, None), (3, "added", None, 3)]


def test_a_version_and_its_copy_are_the_same(upload: Upload) -> None:
    old, new = upload(numbered(1200), read=True), upload(numbered(1200), read=True)
    assert counts(compared(old, new)) == (1200, 0, 0, 0)


def test_another_answer_is_a_change(upload: Upload) -> None:
    old = upload(jsonl(question("q", model_outputs=answers(alpha="x", beta="y"))), read=True)
    new = upload(jsonl(question("q", model_outputs=answers(beta="y", alpha="z"))), read=True)
    (row,) = row_diffs(list(DifferenceRow.objects.filter(difference=compared(old, new))), old, new)
    assert [part.name for part in row.parts] == ["alpha [1]"]


def test_a_bad_row_that_was_fixed_is_a_change(upload: Upload) -> None:
    bad = {"messages": [{"role": "user", "content": "q"}, {"role": "robot", "content": "r"}], "id": 7}
    old = upload(jsonl(bad), read=True)
    new = upload(jsonl(question("q", id=7)), read=True)
    assert counts(compared(old, new)) == (0, 1, 0, 0)


def test_what_a_repair_took_out_is_shown_and_nothing_else(upload: Upload) -> None:
    row = jsonl(question("q", model_outputs=answers(alpha="x"), id=1)).strip()
    old, new = upload(row + b" // note\n", read=True), upload(row, read=True)
    (found_row,) = row_diffs(list(DifferenceRow.objects.filter(difference=compared(old, new))), old, new)
    (part,) = found_row.parts
    assert [piece.text for piece in part.before or [] if piece.kind == "removed"] == [" // note"]
    assert [piece.text for piece in part.after or [] if piece.kind == "added"] == []


def test_a_file_without_rows_can_be_compared(upload: Upload) -> None:
    assert counts(compared(upload(b"%PDF-1.7", read=True), upload(numbered(2), read=True))) == (0, 0, 2, 0)


def test_it_is_compared_once(two: tuple[Version, Version]) -> None:
    difference = compared(*two)
    assert difference_ask(old=two[0], new=two[1]) == difference
    assert jobs.run("compare_versions", difference.pk) is False


@pytest.mark.django_db(transaction=True)
def test_of_several_workers_at_once_one_compares(upload: Upload) -> None:
    difference = difference_ask(old=upload(numbered(900), read=True), new=upload(numbered(50), read=True))

    def work(_number: int) -> bool:
        with closing(connection):
            return jobs.run("compare_versions", difference.pk)

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(work, range(3))) == [False, False, True]
    assert len(found(difference)) == 850


def test_a_comparison_that_was_interrupted_starts_again(two: tuple[Version, Version], tmp_path: Path) -> None:
    difference = difference_ask(old=two[0], new=two[1])
    assert jobs.claim("compare_versions", difference.pk, owner="elsewhere:1:1")
    DifferenceRow.objects.create(difference=difference, position=1, kind="added", new_line=99)
    temp_files.work_folder(compare.JOB, difference.pk).__enter__()
    jobs.reconcile()
    temp_files.delete_left()
    assert temp_files.folders(compare.JOB) == {}
    jobs.run("compare_versions", difference.pk)
    assert len(found(difference)) == 3


def test_a_worker_that_is_asked_to_end_gives_it_back(two: tuple[Version, Version]) -> None:
    difference, stop = difference_ask(old=two[0], new=two[1]), threading.Event()
    stop.set()
    jobs.run("compare_versions", difference.pk, stop)
    assert list(jobs.ids("compare_versions", Job.State.WAITING)) == [difference.pk]


def test_one_that_failed_is_made_when_asked_again(two: tuple[Version, Version]) -> None:
    difference = difference_ask(old=two[0], new=two[1])
    hold = jobs.claim("compare_versions", difference.pk)
    assert hold
    hold.fail("unexpected")
    assert compared(*two) == difference
    assert Difference.objects.get().ready


def test_pages_go_both_ways_and_keep_to_a_kind(upload: Upload) -> None:
    size = compare.PER_PAGE
    difference = compared(upload(numbered(1), read=True), upload(numbered(2 * size + 2), read=True))
    first = compare.page(difference)
    second = compare.page(difference, kind="added", after=first.after)
    assert [len(first.rows), len(second.rows), first.before] == [size, size, None]
    assert compare.page(difference, before=second.before).rows == first.rows
    assert compare.page(difference, kind="removed").rows == []


# Over HTTP


def address(new: Version, old: Version | None = None) -> str:
    there = f"/p/physics/datasets/{new.dataset_id}/v{new.number}/changes/"
    return there if old is None else f"{there}v{old.number}/"


@pytest.fixture
def as_bob(client_of: ClientOf, bob: User) -> Client:
    return client_of(bob)


def test_the_form_asks_for_a_comparison_and_leads_to_it(as_bob: Client, two: tuple[Version, Version]) -> None:
    old, new = two
    answer = as_bob.post(address(new), {"since": old.number})
    assert answer.headers["Location"] == address(new, old)
    assert 'hx-trigger="every 1s"' in as_bob.get(address(new, old)).content.decode()


def test_what_changed_is_side_by_side(as_bob: Client, two: tuple[Version, Version]) -> None:
    compared(*two)
    page = as_bob.get(address(two[1], two[0])).content.decode()
    assert "<del>one</del>" in page
    assert "<ins>two</ins>" in page
    assert "matched by “id”" in page


def test_one_kind_alone_can_be_looked_at(as_bob: Client, two: tuple[Version, Version]) -> None:
    compared(*two)
    assert "<del>" not in as_bob.get(address(two[1], two[0]) + "?kind=added").content.decode()


def test_the_last_poll_loads_the_page_again(as_bob: Client, two: tuple[Version, Version]) -> None:
    compared(*two)
    part = as_bob.get(address(two[1], two[0]), headers={"HX-Request": "true"})
    assert part.headers["HX-Refresh"] == "true"


def test_looking_begins_nothing(as_bob: Client, two: tuple[Version, Version]) -> None:
    assert as_bob.get(address(two[1], two[0])).status_code == 200
    assert not Difference.objects.exists()


@pytest.mark.parametrize(("name", "status"), [("alice", 200), ("bob", 200), ("rita", 403), ("charlie", 404)])
def test_who_may_look(
    client_of: ClientOf, cast: dict[str, User], two: tuple[Version, Version], name: str, status: int
) -> None:
    assert client_of(cast[name]).get(address(two[1], two[0])).status_code == status
    asked = client_of(cast[name]).post(address(two[1]), {"since": two[0].number}).status_code
    assert asked == (302 if status == 200 else status)


@pytest.mark.parametrize("since", ["", "x", "9", "2", "99999999999999"])
def test_with_what_is_not_there_nothing_is_compared(
    as_bob: Client, two: tuple[Version, Version], since: str
) -> None:
    assert as_bob.post(address(two[1]), {"since": since}).status_code == 404
