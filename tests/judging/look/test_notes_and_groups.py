"""Notes are never lost or overwritten; groups of notes have shares of all answers looked at."""

from __future__ import annotations

import csv
import json

import pytest

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.core.statistics.intervals import wilson
from judging.look.export import as_csv, as_jsonl
from judging.look.groups import (
    GroupRefused,
    group_change,
    group_create,
    group_delete,
    group_merge,
    notes_put,
)
from judging.look.models import Look, Note
from judging.look.results import LookResult, next_place, progress
from judging.look.services import NoteChanged, note_save
from tests.judging.look.make import a_look, noted


@pytest.fixture
def look(project: Project, alice: User) -> Look:
    return a_look(project, alice)


def test_a_note_is_stored_while_it_is_written(look: Look, alice: User) -> None:
    answer = look.answers.get(place=1)
    first = note_save(answer=answer, user=alice, text="wro", passed=None, new_kind=False, seen=0)
    note_save(answer=answer, user=alice, text="wrong", passed=None, new_kind=False, seen=first.edits)
    assert [note.text for note in Note.objects.all()] == ["wrong"]


def test_another_window_overwrites_nothing(look: Look, alice: User) -> None:
    noted(look, alice, 1, "wrong")
    with pytest.raises(NoteChanged) as changed:
        noted(look, alice, 1, "something else")
    assert changed.value.note.text == "wrong"
    assert Note.objects.get().text == "wrong"


def test_sending_a_note_twice_changes_nothing(look: Look, alice: User) -> None:
    assert noted(look, alice, 1).edits == noted(look, alice, 1).edits == 1


def test_two_people_have_notes_of_their_own(look: Look, alice: User, bob: User) -> None:
    noted(look, alice, 1, "wrong")
    noted(look, bob, 1, "fine", passed=True)
    assert [answer.disputed for answer in LookResult(look).answers[:2]] == [True, False]
    assert LookResult(look).people == 2


def test_only_a_failing_answer_names_a_new_kind(look: Look, alice: User) -> None:
    assert not noted(look, alice, 1, passed=True, new_kind=True).new_kind
    assert noted(look, alice, 2, passed=False, new_kind=True).new_kind


def test_the_first_decision_on_an_answer_is_audited_once(look: Look, alice: User) -> None:
    note = noted(look, alice, 1)
    note_save(answer=note.answer, user=alice, text="more", passed=False, new_kind=False, seen=note.edits)
    assert AuditEntry.objects.filter(action="look.noted").count() == 1


def test_progress_counts_failing_answers_without_a_new_kind(look: Look, alice: User) -> None:
    noted(look, alice, 1, new_kind=True)
    for place in range(2, 12):
        noted(look, alice, place)
    noted(look, alice, 12, passed=True)
    assert progress(look, alice).quiet == 10


def test_few_failures_offer_a_draw_by_score(look: Look, alice: User) -> None:
    for place in range(1, 21):
        noted(look, alice, place, passed=place > 4)
    assert progress(look, alice).few_fail


def test_the_next_answer_is_the_first_that_is_not_decided(look: Look, alice: User) -> None:
    noted(look, alice, 2)
    assert next_place(look, alice, 1) == 3
    assert next_place(look, alice, look.size) == 1


def test_a_groups_share_is_of_all_answers_looked_at(look: Look, alice: User, bob: User) -> None:
    notes = [noted(look, alice, place) for place in (1, 2)]
    again = noted(look, bob, 1)
    for place in range(3, 11):
        noted(look, alice, place, "", passed=True)
    group_create(look=look, user=alice, name="Wrong", notes=[note.pk for note in (*notes, again)])
    (view,) = LookResult(look).groups
    low, high = wilson(0.2, 10)
    assert view.rate.rate == pytest.approx(0.2)
    assert view.rate.low == pytest.approx(low, abs=0.05)
    assert view.rate.high == pytest.approx(high, abs=0.05)
    assert [share.name for share in view.by_candidate] == ["alpha"]


def test_a_group_shows_at_most_three_examples_one_an_answer(look: Look, alice: User, bob: User) -> None:
    notes = [noted(look, alice, place) for place in range(1, 6)] + [noted(look, bob, 1)]
    group_create(look=look, user=alice, name="Wrong", notes=[note.pk for note in notes])
    examples = LookResult(look).groups[0].examples
    assert len(examples) == 3
    assert len({answer.answer.pk for answer, _note in examples}) == 3


def test_moving_notes_to_a_new_group_splits_one(look: Look, alice: User) -> None:
    notes = [noted(look, alice, place).pk for place in (1, 2, 3)]
    old = group_create(look=look, user=alice, name="Wrong", notes=notes)
    new = group_create(look=look, user=alice, name="Wrong date")
    notes_put(look=look, user=alice, chosen=[(notes[0], old.pk)], into=new)
    assert [set(group.notes.values_list("pk", flat=True)) for group in (old, new)] == [
        set(notes[1:]),
        {notes[0]},
    ]


def test_a_note_can_be_in_several_groups_and_leave_one(look: Look, alice: User) -> None:
    note = noted(look, alice, 1).pk
    first, second = (group_create(look=look, user=alice, name=name, notes=[note]) for name in "ab")
    notes_put(look=look, user=alice, chosen=[(note, first.pk)], into=None)
    assert not first.notes.exists()
    assert second.notes.exists()


def test_merging_keeps_notes_and_definition(look: Look, alice: User) -> None:
    notes = [noted(look, alice, place).pk for place in (1, 2)]
    first = group_create(look=look, user=alice, name="a", definition="when", notes=notes[:1])
    second = group_create(look=look, user=alice, name="b", notes=notes)
    group_merge(group=first, into=second, user=alice)
    (view,) = LookResult(look).groups
    assert (view.group.name, view.group.definition, len(view.notes)) == ("b", "when", 2)


def test_a_deleted_group_leaves_its_notes(look: Look, alice: User) -> None:
    note = noted(look, alice, 1)
    group_delete(group=group_create(look=look, user=alice, name="a", notes=[note.pk]), user=alice)
    assert LookResult(look).ungrouped == [note]


def test_two_people_do_not_overwrite_each_others_definition(look: Look, alice: User, bob: User) -> None:
    group = group_create(look=look, user=alice, name="a")
    group_change(group=group, user=alice, name="a", definition="mine", seen=0)
    with pytest.raises(GroupRefused, match="changed"):
        group_change(group=group, user=bob, name="a", definition="yours", seen=0)


@pytest.mark.parametrize(("name", "code"), [("a", "name_taken"), ("  ", "name_missing")])
def test_groups_need_names_of_their_own(look: Look, alice: User, name: str, code: str) -> None:
    group_create(look=look, user=alice, name="a")
    with pytest.raises(GroupRefused, match=code):
        group_create(look=look, user=alice, name=name)


def test_notes_of_another_look_are_never_taken_in(look: Look, project: Project, alice: User) -> None:
    foreign = noted(a_look(project, alice), alice, 1)
    assert not group_create(look=look, user=alice, name="a", notes=[foreign.pk]).notes.exists()


def test_the_export_has_every_note_with_its_groups(look: Look, alice: User) -> None:
    note = noted(look, alice, 1, "=wrong")
    group_create(look=look, user=alice, name="Wrong", notes=[note.pk])
    (line,) = [json.loads(line) for line in b"".join(as_jsonl(look)).splitlines()]
    assert (line["note"], line["groups"], line["person"]) == ("=wrong", ["Wrong"], "alice")
    assert line["drawn_with"] == pytest.approx(20 / 25)
    header, cells = csv.reader(b"".join(as_csv(look)).decode("utf-8-sig").splitlines())
    assert cells[header.index("note")] == "'=wrong"
