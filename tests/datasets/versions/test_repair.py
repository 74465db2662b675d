"""A repair creates a new version in the background, completely or not at all; the original is unchanged."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ValidationError
from django.db import connection

from datasets import services
from datasets.core.repair.apply import Repair
from datasets.importing import tables, worker
from datasets.importing.worker import import_version
from datasets.models import Candidate, Row, Version, VersionState
from datasets.versions import repair, temp_files
from datasets.versions.repair import version_repair
from datasets.versions.repair_offers import alike_groups, names_offered, repairs_for
from evalsite.tasks import jobs
from tests.datasets.conftest import Upload, begin_reading, jsonl, numbered, question
from tests.datasets.core.helpers import PRINTED

pytestmark = pytest.mark.django_db
GOOD = jsonl(question("Why?"))
COMMENTED = GOOD.replace(b"\n", b" // a note\n")
PRINTED_STEPS = ("strip_comments", "strip_trailing_commas", "to_jsonl")


def apply(version: Version, *names: str, read: bool = True, **unify: str) -> Version:
    repairs = [Repair(name, **unify) if name == "unify_model_names" else Repair(name) for name in names]
    made, _new = version_repair(version=version, repairs=repairs, user=None)
    if read:
        import_version(made.pk)
        made.refresh_from_db()
    return made


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in (folder / "uploads").rglob("*") if path.is_file()]


def test_the_printed_example_comes_out_right(upload: Upload) -> None:
    made = apply(upload(PRINTED.encode(), read=True), *PRINTED_STEPS)
    assert (made.state, made.rows, made.valid_rows, made.counts) == (VersionState.READY, 1, 1, {})
    assert sorted(made.models_found) == ["llama3", "qwen3"]


def test_a_repaired_version_says_where_it_comes_from(upload: Upload) -> None:
    parent = upload(COMMENTED, read=True)
    made = apply(parent, "strip_comments")
    assert (made.number, made.parent, made.origin) == (2, parent, "repair")
    assert made.repairs == [{"name": "strip_comments"}]
    assert made.path.read_bytes() == GOOD
    assert (made.size, made.sha256) == (len(GOOD), hashlib.sha256(GOOD).hexdigest())


def test_the_original_stays(upload: Upload) -> None:
    parent = upload(COMMENTED, read=True)
    apply(parent, "strip_comments")
    before = parent.counts
    parent.refresh_from_db()
    assert (parent.path.read_bytes(), parent.counts) == (COMMENTED, before)


def test_the_file_is_not_written_before_a_worker_takes_it_up(upload: Upload, tmp_path: Path) -> None:
    made = apply(upload(COMMENTED, read=True), "strip_comments", read=False)
    assert made.to_be_repaired
    assert len(leftovers(tmp_path)) == 1


def test_the_format_chosen_by_hand_is_kept(upload: Upload) -> None:
    parent = upload(COMMENTED, read=True, chosen_format="judge_only")
    assert apply(parent, "strip_comments").format == "judge_only"


@pytest.mark.parametrize(
    ("before", "names", "after"),
    [
        ("a.json", PRINTED_STEPS, "a.jsonl"),
        ("a.jsonl.gz", ("strip_comments",), "a.jsonl"),
        ("a.txt", ("strip_comments",), "a.txt"),
        (".gz", PRINTED_STEPS, ".gz.jsonl"),
    ],
)
def test_the_file_is_called_what_it_is(before: str, names: tuple[str, ...], after: str) -> None:
    assert repair.file_name(before, names) == after


@pytest.mark.parametrize("names", [(), ("to_utf8",), ("merge_models",), ("unify_model_names",)])
def test_what_mends_nothing_is_refused(upload: Upload, names: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        apply(upload(COMMENTED, read=True), *names)


def test_a_version_that_is_not_read_yet_is_refused(upload: Upload) -> None:
    with pytest.raises(ValidationError):
        apply(upload(COMMENTED), "strip_comments")


def test_the_same_repair_again_leads_to_the_version_that_is_there(upload: Upload) -> None:
    parent = upload(COMMENTED, read=True)
    first, again = apply(parent, "strip_comments"), apply(parent, "strip_comments", read=False)
    assert first == again


def test_after_a_cancelled_repair_the_same_one_starts_again(upload: Upload) -> None:
    parent = upload(COMMENTED, read=True)
    first = apply(parent, "strip_comments", read=False)
    services.version_cancel(version=first)
    assert apply(parent, "strip_comments").number == 3


@pytest.mark.django_db(transaction=True)
def test_several_people_at_once_get_one_version(upload: Upload) -> None:
    parent = upload(COMMENTED, read=True)

    def click(_number: int) -> tuple[int, bool]:
        with closing(connection):
            made, new = version_repair(version=parent, repairs=[Repair("strip_comments")], user=None)
            return made.pk, new

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(click, range(4)))
    assert len({pk for pk, _new in found}) == 1
    assert sorted(new for _pk, new in found) == [False, False, False, True]


@pytest.mark.django_db(transaction=True)
def test_several_workers_at_once_make_one_file(upload: Upload, tmp_path: Path) -> None:
    made = apply(upload(COMMENTED * 500, read=True), "strip_comments", read=False)

    def work(number: int) -> bool:
        with closing(connection):
            return import_version(made.pk)

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(work, range(3))) == [False, False, True]
    assert Row.objects.filter(version=made, valid=True).count() == 500
    assert len(leftovers(tmp_path)) == 2


def test_a_worker_that_was_killed_leaves_nothing_half(upload: Upload, tmp_path: Path) -> None:
    made = apply(upload(COMMENTED, read=True), "strip_comments", read=False)
    begin_reading(made, "elsewhere:1:1")
    work = temp_files.work_folder("read_version", made.pk)
    (work.__enter__() / "file").write_bytes(b"half")
    jobs.reconcile()
    temp_files.delete_left()
    assert len(leftovers(tmp_path)) == 1
    import_version(made.pk)
    made.refresh_from_db()
    assert (made.state, made.path.read_bytes()) == (VersionState.READY, GOOD)


def test_a_worker_that_is_late_cannot_put_its_file_in_place(upload: Upload, tmp_path: Path) -> None:
    made = apply(upload(COMMENTED, read=True), "strip_comments", read=False)
    late = begin_reading(made)
    jobs.request("read_version", made.pk, restart=True)
    with pytest.raises(tables.WorkStopped):
        repair.write_file(made, late, lambda _share: None)
    assert len(leftovers(tmp_path)) == 1


def test_a_worker_that_is_asked_to_end_gives_it_back(upload: Upload, tmp_path: Path) -> None:
    made = apply(upload(COMMENTED, read=True), "strip_comments", read=False)
    stop = threading.Event()
    stop.set()
    import_version(made.pk, stop)
    made.refresh_from_db()
    assert (made.state, made.to_be_repaired) == (VersionState.WAITING, True)
    assert len(leftovers(tmp_path)) == 1


def test_cancelling_while_the_file_is_written_leaves_none(upload: Upload, tmp_path: Path) -> None:
    made = apply(upload(COMMENTED, read=True), "strip_comments", read=False)
    Version.objects.filter(pk=made.pk).update(cancel_requested=True)
    import_version(made.pk)
    made.refresh_from_db()
    assert made.state == VersionState.CANCELLED
    assert len(leftovers(tmp_path)) == 1


def test_a_cancelled_repair_can_be_made_after_all(upload: Upload) -> None:
    made = apply(upload(COMMENTED, read=True), "strip_comments", read=False)
    services.version_cancel(version=made)
    assert services.version_try_again(version=made)
    import_version(made.pk)
    made.refresh_from_db()
    assert made.valid_rows == 1


def test_a_parent_whose_file_is_gone_is_said_in_a_sentence(upload: Upload) -> None:
    parent = upload(COMMENTED, read=True)
    made = apply(parent, "strip_comments", read=False)
    parent.path.unlink()
    import_version(made.pk)
    made.refresh_from_db()
    assert (made.state, made.problem) == (VersionState.FAILED, worker.GONE)


def test_a_file_beyond_the_limits_offers_nothing(upload: Upload, settings: LazySettings) -> None:
    huge = jsonl(question("x" * (settings.CONFIG.row_max_kb * 1024)))
    version = upload(COMMENTED + huge, read=True)
    assert repairs_for(version).hindered
    with pytest.raises(ValidationError):
        apply(version, "strip_comments")


# Repairs offered


def outputs(*names: str) -> dict[str, Any]:
    return question("q", model_outputs=[{"model_name": n, "responses": [{"content": n}]} for n in names])


def test_a_fine_version_offers_nothing(upload: Upload) -> None:
    assert repairs_for(upload(GOOD, read=True)).offers == {}


def test_a_spread_file_is_offered_its_three_repairs_as_one_step(upload: Upload) -> None:
    offer = repairs_for(upload(PRINTED.encode(), read=True)).offers["file.not_jsonl"]
    assert offer.names == PRINTED_STEPS
    assert offer.beginning is not None
    assert offer.beginning.before.startswith("{\n")
    assert (offer.beginning.after or "").startswith('{"messages": [')


def test_a_spread_files_beginning_is_shown_with_the_object_that_ends_early(upload: Upload) -> None:
    broken = '{\n  "messages": 1 2\n}\n'
    offer = repairs_for(upload((broken + PRINTED).encode(), read=True)).offers["file.not_jsonl"]
    assert offer.beginning is not None
    first, second = (offer.beginning.after or "").splitlines()
    assert first.startswith('{"messages": 1')
    assert second.startswith('{"messages": [')


def test_a_sample_shows_what_is_taken_out_of_a_real_row(upload: Upload) -> None:
    (sample,) = repairs_for(upload(COMMENTED, read=True)).offers["json.invalid"].samples
    assert [piece.text for piece in sample.pieces if piece.kind == "removed"] == [" // a note"]
    assert (sample.line, sample.dropped) == (1, False)


def test_a_line_of_nothing_but_a_comment_is_shown_as_dropped(upload: Upload) -> None:
    (sample,) = repairs_for(upload(b"# note\n" + GOOD, read=True)).offers["json.invalid"].samples
    assert sample.dropped


def test_what_the_repair_cannot_fix_is_reported(upload: Upload) -> None:
    assert repairs_for(upload(COMMENTED + b"{'a': b}\n", read=True)).offers["json.invalid"].fixes == 1


def test_all_that_need_no_choice_are_offered_together(upload: Upload) -> None:
    version = upload(COMMENTED + jsonl(outputs("a", "a"), outputs("b", "B")), read=True)
    assert repairs_for(version).together == ("strip_comments", "merge_models")


def test_a_converted_file_shows_its_beginning(upload: Upload) -> None:
    version = upload(jsonl(question("你好")).decode().encode("gb18030"), read=True)
    beginning = repairs_for(version).offers["file.converted"].beginning
    assert beginning is not None
    assert "\N{REPLACEMENT CHARACTER}" in beginning.before
    assert "你好" in (beginning.after or "")


def test_of_more_findings_than_are_kept_no_repair_is_forgotten(upload: Upload) -> None:
    version = upload(COMMENTED * 1001 + GOOD.replace(b"\n", b",\n"), read=True)
    assert names_offered(version) == {"strip_comments", "strip_trailing_commas"}


def test_a_repair_of_lines_is_offered_only_where_it_changes_one(upload: Upload) -> None:
    unrepairable = b'{"a": \n' * 1001
    assert repairs_for(upload(GOOD + unrepairable, read=True)).offers == {}
    assert names_offered(upload(GOOD + unrepairable + COMMENTED, read=True)) == {"strip_comments"}


def test_a_fault_hidden_behind_the_first_of_its_line_is_repaired_with_it(upload: Upload) -> None:
    broken = GOOD.replace(b"}\n", b",} // a note\n") + b'{"a": 1, /* x */ "b": True}\n'
    (offer,) = repairs_for(upload(GOOD + broken, read=True)).offers.values()
    assert offer.names == ("strip_comments", "strip_trailing_commas", "python_literal")


def test_misspelt_roles_are_offered_a_repair_with_a_real_row(upload: Upload) -> None:
    wrong = GOOD.replace(b'"user"', b'"Usr"') + GOOD.replace(b'"user"', b'"human"')
    version = upload(GOOD + wrong, read=True)
    (offer,) = repairs_for(version).offers.values()
    assert (offer.code, offer.names, offer.fixes) == ("role.unknown", ("fix_role",), 1)
    (sample,) = offer.samples
    assert '"user"' in "".join(piece.text for piece in sample.pieces if piece.kind != "removed")
    assert apply(version, "fix_role").counts == {"role.unknown": 1, "row.duplicate": 1}


MISSPELT = {"mesages": [{"role": "user", "content": "Why?"}], "ref_anwser": "4"}


def test_keys_that_every_row_misspells_are_offered_with_their_rows(upload: Upload) -> None:
    version = upload(jsonl(MISSPELT, MISSPELT | {"id": 2}), read=True)
    (offer,) = repairs_for(version).offers.values()
    assert (offer.code, offer.names, offer.rows_renamed) == ("file.unknown_format", ("rename_key",), 2)
    keys = [(key.name, key.meant, key.rows) for key in offer.renamed]
    assert keys == [("mesages", "messages", 2), ("ref_anwser", "ref_answer", 2)]
    assert len(offer.samples) == 2
    made = apply(version, "rename_key")
    assert (made.valid_rows, made.fields_found) == (2, {"ref_answer": 2, "id": 1})


def test_keys_that_some_rows_misspell_are_offered_with_those_rows(upload: Upload) -> None:
    version = upload(GOOD + jsonl(MISSPELT | {"ref_anwser": None}), read=True)
    offers = repairs_for(version).offers
    assert {code: offer.rows_renamed for code, offer in offers.items()} == {
        "messages.missing": 1,
        "field.misspelt": 1,
    }


def test_entries_that_contradict_each_other_are_offered_no_repair(upload: Upload) -> None:
    entries = [{"model_name": "lark", "responses": [{"content": "4"}], "t": number} for number in (1, 2)]
    version = upload(jsonl(question("Why?") | {"model_outputs": entries}), read=True)
    assert (version.counts["model_name.twice_in_row"], names_offered(version)) == (1, frozenset())


def test_alike_names_are_listed_with_their_counts(upload: Upload) -> None:
    version = upload(jsonl(outputs("Qwen-3"), outputs("qwen3"), outputs("qwen3"), outputs("lark")), read=True)
    (group,) = alike_groups(version)
    assert [(s.name, s.rows, s.responses) for s in group.spellings] == [("qwen3", 2, 2), ("Qwen-3", 1, 1)]


@pytest.mark.parametrize("name", ["qwen3", "Qwen 3", "通义千问"])
def test_alike_names_become_the_chosen_or_a_free_one(upload: Upload, name: str) -> None:
    version = upload(jsonl(outputs("Qwen-3"), outputs("qwen3", "lark")), read=True)
    made = apply(version, "unify_model_names", value=name, replaces="qwen3")
    assert sorted(made.models_found) == sorted([name, "lark"])


def test_two_entries_that_got_one_name_become_one(upload: Upload) -> None:
    version = upload(jsonl(outputs("Qwen-3", "qwen3")), read=True)
    made = apply(version, "unify_model_names", value="Q", replaces="qwen3")
    assert (made.valid_rows, made.counts) == (1, {})
    assert Candidate.objects.get(version=made, responses__gt=0).responses == 2


@pytest.mark.parametrize(
    ("value", "replaces"),
    [(" ", "qwen3"), ("x", "lark"), ("lark", ""), ("a\0b", "qwen3"), ("x" * 1001, "qwen3")],
)
def test_a_name_that_cannot_be_is_refused(upload: Upload, value: str, replaces: str) -> None:
    version = upload(jsonl(outputs("Qwen-3"), outputs("qwen3", "lark")), read=True)
    with pytest.raises(ValidationError):
        apply(version, "unify_model_names", value=value, replaces=replaces)


def test_of_two_models_in_two_groups_each_gets_its_name(upload: Upload) -> None:
    version = upload(jsonl(outputs("A1", "b2"), outputs("a-1", "B-2")), read=True)
    repairs = [Repair("unify_model_names", "a1", "A1"), Repair("unify_model_names", "b2", "B-2")]
    made, _new = version_repair(version=version, repairs=repairs, user=None)
    import_version(made.pk)
    made.refresh_from_db()
    assert sorted(made.models_found) == ["a1", "b2"]


def test_many_rows_come_through_unharmed(upload: Upload) -> None:
    made = apply(upload(numbered(1200) + COMMENTED, read=True), "strip_comments")
    assert (made.rows, made.models_found["alpha"]["rows"]) == (1201, 1200)
