"""Exported ratings can be re-imported unchanged and only once; those that cannot be imported are listed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from hypothesis import given
from hypothesis import strategies as st

from evalsite.accounts.models import Project, Role, User
from judging.core.people.criteria import Criterion
from judging.core.results_file.rating_lines import read_lines
from judging.core.results_file.records import RefusedLine
from judging.people import assignments, ratings
from judging.people.adjudication import adjudicate
from judging.people.import_models import RatingsImport
from judging.people.models import Evaluation, EvaluationRater, Item, Rating
from judging.people.rating_export import csv_lines, jsonl_lines
from judging.people.rating_import import import_begin
from judging.records.models import Judgement
from judging.transfer.export import files
from judging.transfer.export.records import records as judgement_records
from tests.conftest import ClientOf, member
from tests.judging.people.make import PREFERENCE, QUALITY, give, lines_of, make_evaluation

pytestmark = pytest.mark.django_db
CRITERIA = [
    PREFERENCE,
    Criterion(name="mark", scale="ten"),
    Criterion(name="safe", scale="yes_no"),
    Criterion(name="kind", scale="categories", categories=("=1+1", "好，的")),
    Criterion(name="why", scale="text", required=False),
]


@pytest.fixture
def rated(project: Project, rita: User) -> Evaluation:
    """Three items: one rated and changed, one rated with texts that are awkward in tables, one not rated."""
    evaluation = make_evaluation(project, [rita], criteria=CRITERIA)
    one, other = assignments.claim(evaluation=evaluation, user=rita)
    give(one, "A>>B", 10, True, "=1+1")
    changed = {0: "A=B", 1: 1, 2: False, 3: "=1+1"}
    ratings.change(assignment=one, values=changed, key=uuid4())
    give(other, "both_bad", 3, True, "好，的", 'a "quoted",\nbroken\u2028line', comment="=cmd|' /C calc'!A0")
    return evaluation


def ratings_import(*, evaluation: Evaluation, text: str, by: User) -> RatingsImport:
    file = SimpleUploadedFile("ratings", text.encode())
    return import_begin(evaluation=evaluation, file=file, file_name="ratings.jsonl", by=by)


def taken(evaluation: Evaluation, by: User, *lines: Any) -> RatingsImport:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return ratings_import(evaluation=evaluation, text=text, by=by)


def codes(result: RatingsImport) -> list[tuple[int, str]]:
    return [(line, code) for line, code, _ in result.bad_lines]


def facts(evaluation: Evaluation) -> list[tuple[Any, ...]]:
    found = Judgement.objects.filter(run=evaluation.run_id, current=True).order_by(
        "row__line", "run_metric__number"
    )
    return [(one.row.line, one.value, one.state, one.detail, one.shown_first, one.rater_id) for one in found]


def test_a_line_holds_side_time_and_a_pseudonym(rated: Evaluation) -> None:
    line = lines_of(rated)[0]
    assert (line["rater"], line["seconds"], line["attempt"], line["values"]["mark"]) == ("R1", 0, 2, 1)
    assert line["shown_first"] in (1, 2)
    assert line["at"].endswith("+00:00")


def test_names_and_history_are_there_where_they_are_needed(rated: Evaluation) -> None:
    assert {line["rater"] for line in lines_of(rated, names=True)} == {"rita"}
    assert [line["current"] for line in lines_of(rated, history=True)] == [False, True, True]


def decided(evaluation: Evaluation, by: User, value: str = "B>A") -> Item:
    """Adjudicate the first rated item twice, the second time with `value` for the first criterion; return it."""
    item = evaluation.items.filter(rated__gt=0).order_by("number")[0]
    for one in ("A=B", value):
        values = {0: one, 1: 4, 2: True, 3: "=1+1"}
        adjudicate(item=item, values=values, reason="The facts are wrong.", by=by)
    return item


def test_what_was_adjudicated_is_in_both_exports_of_ratings(rated: Evaluation, bob: User) -> None:
    item = decided(rated, bob)
    lines = {line["item"]: line["adjudicated"] for line in lines_of(rated)}
    assert lines.pop(item.number) == {"preference": "B>A", "mark": 4, "safe": True, "kind": "=1+1"}
    assert list(lines.values()) == [None]
    table = csv.DictReader(io.StringIO(b"".join(csv_lines(rated)).decode("utf-8-sig"), newline=""))
    assert {row["item"]: row["adjudicated: preference"] for row in table}[str(item.number)] == "B>A"


def test_a_run_s_export_names_the_rater_both_answers_and_what_was_adjudicated(
    rated: Evaluation, bob: User, tmp_path: Path
) -> None:
    item = decided(rated, bob)
    records = [one for one in judgement_records(rated.run) if one["metric"] == "preference"]
    first = next(one for one in records if one["line"] == item.row.line)
    names = ("model", "other_model", "response", "other_response", "rater", "adjudicated")
    assert [first[name] for name in names] == ["alpha", "beta", 1, 1, "R1", "B>A"]
    assert first["shown_first"] in (1, 2)
    assert [one["adjudicated"] for one in records if one is not first] == [None]
    table = csv.DictReader(io.StringIO(b"".join(files.csv_lines(rated.run)).decode("utf-8-sig"), newline=""))
    assert {row["other_model"] for row in table} == {"beta"}
    assert b"".join(files.parquet_blocks(rated.run)).startswith(b"PAR1")


def test_the_item_s_page_shows_what_was_adjudicated(
    rated: Evaluation, alice: User, bob: User, client_of: ClientOf
) -> None:
    item = decided(rated, bob)
    page = client_of(alice).get(f"/p/physics/evaluations/{rated.run_id}/items/{item.number}/").text
    for shown in ("Adjudicated", "beta better", "The facts are wrong.", "replaced by a later decision"):
        assert shown in page


def test_a_table_begins_no_formula(rated: Evaluation) -> None:
    text = b"".join(csv_lines(rated)).decode("utf-8-sig")
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


@pytest.mark.parametrize("form", [jsonl_lines, csv_lines])
def test_what_is_exported_is_imported_elsewhere_as_it_was(
    project: Project, rated: Evaluation, rita: User, alice: User, bob: User, form: Any
) -> None:
    decided(rated, bob)
    copy = make_evaluation(project, [rita], version=rated.run.version, criteria=CRITERIA, seed=99)
    text = b"".join(form(rated)).decode("utf-8-sig")
    result = ratings_import(evaluation=copy, text=text, by=alice)
    assert (result.new, result.already_imported, codes(result)) == (2, 0, [])
    assert facts(copy) == facts(rated)


@pytest.mark.parametrize("form", [jsonl_lines, csv_lines])
def test_taken_in_again_nothing_is_doubled(rated: Evaluation, alice: User, form: Any) -> None:
    before = facts(rated)
    text = b"".join(form(rated, history=True)).decode("utf-8-sig")
    for _ in range(2):
        result = ratings_import(evaluation=rated, text=text, by=alice)
        assert (result.new, result.already_imported, result.not_current, codes(result)) == (0, 2, 1, [])
    assert (facts(rated), Rating.objects.count()) == (before, 3)


def test_lines_without_a_key_are_taken_once(project: Project, rita: User, alice: User) -> None:
    evaluation = make_evaluation(project, [rita])
    line = {"item": 1, "rater": "rita", "values": {"preference": "A>B"}}
    assert [taken(evaluation, alice, line).new for _ in range(2)] == [1, 0]
    assert (Item.objects.get(number=1).rated, Item.objects.get(number=1).free) == (1, 0)


def test_answers_named_the_other_way_round_are_turned(project: Project, rita: User, alice: User) -> None:
    evaluation = make_evaluation(project, [rita])
    line = {"row": 1, "candidate": "beta", "other": "alpha", "rater": "R1", "shown_first": 1}
    taken(evaluation, alice, {**line, "values": {"preference": "A>>B"}})
    judgement = Judgement.objects.get(run=evaluation.run_id)
    assert (judgement.candidate.name, judgement.value, judgement.shown_first) == ("alpha", '"B>>A"', 2)


@pytest.mark.parametrize("turned", [False, True])
def test_an_item_imported_with_the_other_side_gets_a_new_token(
    project: Project, rita: User, alice: User, turned: bool
) -> None:
    evaluation = make_evaluation(project, [rita])
    held = assignments.claim(evaluation=evaluation, user=rita)[0]
    side, token = held.shown_first or 0, held.token
    line = {"item": held.item.number, "rater": "R1", "shown_first": 3 - side if turned else side}
    taken(evaluation, alice, {**line, "values": {"preference": "A>>B"}})
    held.refresh_from_db()
    assert (held.token != token) is turned


GOOD = {"item": 1, "rater": "R1", "values": {"quality": 3}}
BAD: list[tuple[Any, str]] = [
    ("{nonsense", "not_json"),
    ("[1, 2]", "not_object"),
    ("[" * 5000, "not_json"),
    ({**GOOD, "item": 99}, "no_such_item"),
    ({**GOOD, "item": 10**30}, "number"),
    ({**GOOD, "item": True}, "number"),
    ({"rater": "R1", "values": {"quality": 3}}, "no_item"),
    ({**GOOD, "rater": "Mallory"}, "no_rater"),
    ({**GOOD, "rater": ["R1"]}, "rater"),
    ({**GOOD, "values": {"quality": 6}}, "value_not_on_scale"),
    ({**GOOD, "values": {}}, "value_missing"),
    ({**GOOD, "values": {"other": 3}}, "no_criterion"),
    ({**GOOD, "values": {"quality": {"a": [1]}}}, "values"),
    ({**GOOD, "values": 3}, "values"),
    ({**GOOD, "key": "x"}, "key"),
    ({**GOOD, "at": "yesterday"}, "moment"),
    ({**GOOD, "comment": 3}, "text"),
]


@pytest.mark.parametrize(("line", "code"), BAD)
def test_a_bad_line_is_listed_and_the_others_are_taken(
    project: Project, rita: User, alice: User, line: Any, code: str
) -> None:
    evaluation = make_evaluation(project, [rita], side_by_side=False, models=["alpha"])
    result = taken(evaluation, alice, {**GOOD, "item": 2}, line)
    assert (result.new, codes(result)) == (1, [(2, code)])


def test_a_rater_who_said_otherwise_before_is_not_overruled(
    project: Project, rita: User, alice: User
) -> None:
    evaluation = make_evaluation(project, [rita], side_by_side=False, models=["alpha"])
    give(assignments.claim(evaluation=evaluation, user=rita, count=1)[0], 5)
    number = Item.objects.get(rated=1).number
    result = taken(evaluation, alice, {**GOOD, "item": number, "key": str(uuid4())})
    assert codes(result) == [(1, "rated_already")]


def test_nul_and_lone_surrogates_do_no_harm(project: Project, rita: User, alice: User) -> None:
    evaluation = make_evaluation(project, [rita], side_by_side=False, models=["alpha"])
    text = json.dumps({**GOOD, "comment": "a\x00b\ud800c", "rater": "R1"})
    assert taken(evaluation, alice, text).new == 1
    assert "\x00" not in Rating.objects.get().comment


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    for one in read_lines(text, [QUALITY]):
        assert one.line >= 1


@given(
    st.dictionaries(
        st.sampled_from([*GOOD, "key", "at", "seconds", "current"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())),
    )
)
def test_no_object_breaks_the_reader(record: dict[str, Any]) -> None:
    found = list(read_lines(json.dumps(record), [QUALITY]))
    assert len(found) == 1
    assert isinstance(found[0], RefusedLine) or isinstance(found[0].rater, str)


def test_the_page_lists_what_is_wrong(project: Project, rita: User, alice: User, client_of: ClientOf) -> None:
    evaluation = make_evaluation(project, [rita], side_by_side=False, models=["alpha"])
    sent = "\n".join([json.dumps(GOOD), "<script>", json.dumps({**GOOD, "rater": "<b>"})])
    address = f"/p/physics/evaluations/{evaluation.run_id}/import/"
    page = (
        client_of(alice)
        .post(address, {"file": SimpleUploadedFile("r.jsonl", sent.encode())}, follow=True)
        .content.decode()
    )
    assert "2 lines were not imported" in page
    assert "&lt;b&gt;" in page
    assert Rating.objects.count() == 1


def test_a_user_name_that_looks_like_the_pseudonym_of_another_rater_keeps_its_ratings(
    project: Project, rita: User, alice: User
) -> None:
    lookalike = member("R1", project, Role.RATER)
    evaluation = make_evaluation(project, [rita, lookalike], rows=2, side_by_side=False, models=["alpha"])
    assert EvaluationRater.objects.get(pseudonym="R1").user == rita
    named = [
        {"item": 1, "rater": name, "values": {"quality": value}} for name, value in (("rita", 5), ("R1", 1))
    ]
    imported = taken(evaluation, alice, *named)
    assert codes(imported) == []
    values = {one.rater_id: one.value for one in Judgement.objects.filter(run=evaluation.run_id)}
    assert values == {rita.pk: "5", lookalike.pk: "1"}
