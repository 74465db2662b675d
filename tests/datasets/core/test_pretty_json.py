"""Faulty pretty-printed JSON: a broken object is reported, and reading resumes at the next one at its indentation."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datasets.core.limits import Limits
from datasets.core.pretty_json import Broken, Objects
from datasets.core.reader import Summary, read
from datasets.core.repair.apply import Repair, repair_file
from datasets.messages import message

ROW = {
    "messages": [{"role": "user", "content": "q"}],
    "model_outputs": [{"model_name": "m", "responses": [{"content": "a"}]}],
}
GOOD = json.dumps(ROW, indent=2)
FAULTS = {
    "a comma is missing": GOOD.replace('"user",', '"user"'),
    "a key in single quotes": GOOD.replace('"content": "q"', "'content': \"q\""),
    "the last brace is missing": GOOD[:-2],
    "a bracket is missing": GOOD.replace("  ],\n", "  ,\n", 1),
    "a text goes over a line end": GOOD.replace('"q"', '"q\nr"'),
    "a key without quotes": GOOD.replace('"role"', "role"),
}


def summary(text: str) -> Summary:
    return read(io.BytesIO(text.encode())).summary


def places(text: str) -> list[tuple[int | None, int | None]]:
    return [(one.line, one.column) for one in summary(text).findings if one.code == "json.invalid"]


def in_array(objects: list[str], indent: str = "  ") -> str:
    return (
        "[\n" + ",\n".join(one.replace("\n", f"\n{indent}").join((indent, "")) for one in objects) + "\n]\n"
    )


def hugging(objects: list[str]) -> str:
    return "[" + ", ".join(objects) + "]\n"


def below_each_other(objects: list[str]) -> str:
    return "\n".join(objects) + "\n"


LAYOUTS: list[Callable[[list[str]], str]] = [in_array, hugging, below_each_other]
CASES = [
    pytest.param(fault, layout, id=f"{fault}-{layout.__name__}")
    for fault in FAULTS
    for layout in LAYOUTS
    if (fault, layout) != ("the last brace is missing", hugging)  # there, the next object is indented deeper
]


@pytest.mark.parametrize(("fault", "layout"), CASES)
def test_two_broken_objects_among_good_ones_are_both_reported(fault: str, layout: Any) -> None:
    found = summary(layout([GOOD, FAULTS[fault], GOOD, FAULTS[fault], GOOD]))
    assert (found.rows, found.counts) == (5, {"file.not_jsonl": 1, "json.invalid": 2})
    assert found.models == {"m": {"rows": 3, "responses": 3}}


def test_each_is_reported_at_its_own_line_and_column() -> None:
    broken = '{\n  "messages": [],\n  "x" 1\n}'
    assert places(below_each_other([GOOD, broken, GOOD, broken])) == [(21, 7), (43, 7)]


@pytest.mark.parametrize("behind", ["", "\n", "\n\n", "\n  \n\n"])
def test_blank_lines_behind_the_last_object_change_nothing(behind: str) -> None:
    assert places(GOOD + "\n" + GOOD[:-2] + behind) == [(GOOD.count("\n") * 2 + 1, 4)]


def test_without_indentation_everything_after_a_broken_object_is_passed_over() -> None:
    flat = ["\n".join(map(str.strip, one.split("\n"))) for one in (GOOD, FAULTS["a comma is missing"])]
    found = summary(below_each_other([flat[0], flat[1], flat[0], flat[1], flat[0]]))
    assert (found.rows, found.counts) == (2, {"file.not_jsonl": 1, "json.invalid": 1})
    assert found.models == {"m": {"rows": 1, "responses": 1}}


def test_a_missing_comma_between_two_objects_costs_none_of_them() -> None:
    found = summary(f"[\n{GOOD}\n{GOOD}\n]\n")
    assert (found.rows, found.counts["json.invalid"], found.models["m"]["rows"]) == (2, 1, 2)


def test_a_fault_in_a_message_makes_no_object_of_the_next_message() -> None:
    messages = [{"role": "user", "content": str(number)} for number in range(3)]
    broken = json.dumps({"messages": messages}, indent=2).replace('"1"', "1x", 1)
    assert summary(below_each_other([GOOD, broken, GOOD])).rows == 3


@pytest.mark.parametrize(("fault", "layout"), CASES)
def test_one_click_leaves_only_the_broken_objects_bad(fault: str, layout: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "a.json", tmp_path / "b.jsonl"
    source.write_text(layout([GOOD, FAULTS[fault], GOOD, FAULTS[fault], GOOD]))
    names = ("strip_comments", "strip_trailing_commas", "to_jsonl")
    repair_file(source, target, [Repair(name) for name in names])
    after = read(target).summary
    assert (after.format, after.rows, after.valid_rows) == ("judge_only", 5, 3)


def test_what_goes_on_without_end_stays_in_lines(tmp_path: Path) -> None:
    source, target = tmp_path / "a.json", tmp_path / "b.jsonl"
    lines = "\n".join(f"text {number}" for number in range(2_000))
    source.write_text(f"{GOOD}\n{GOOD}\nno object:\n{lines}\n")
    repair_file(source, target, [Repair("to_jsonl")], Limits(row_bytes=10_000))
    assert max(map(len, target.read_bytes().splitlines())) < 6_000


def flat(row: str) -> str:
    return "\n".join(map(str.strip, row.split("\n")))


NEVER_CLOSED = {
    "in its messages": GOOD[: GOOD.index("\n    }")] + "\n    },",
    "in a list of lists": GOOD[:-2] + ',\n  "tags": [\n    ["a"],',
    "in its answers": GOOD[: GOOD.index("\n        }") + 10] + ",",
}


@pytest.mark.parametrize("layout", [in_array, below_each_other])
@pytest.mark.parametrize("where", NEVER_CLOSED)
def test_an_object_that_is_never_closed_takes_none_in(where: str, layout: Any, tmp_path: Path) -> None:
    """Within an open list, the next object is a valid element: nothing seems wrong until the file ends."""
    text = layout([GOOD, NEVER_CLOSED[where], GOOD, NEVER_CLOSED[where], GOOD, GOOD])
    found = summary(text)
    assert (found.rows, found.counts["json.invalid"], found.models["m"]["rows"]) == (6, 2, 4)
    source, target = tmp_path / "a.json", tmp_path / "b.jsonl"
    source.write_text(text)
    repair_file(source, target, [Repair("to_jsonl")])
    after = read(target).summary
    assert (after.rows, after.valid_rows) == (6, 4)


def test_where_it_begins_and_what_would_close_it_are_reported_at_the_next_object() -> None:
    text = below_each_other([GOOD, NEVER_CLOSED["in its messages"], GOOD])
    (result,) = (one for one in summary(text).findings if one.code == "json.invalid")
    begins = GOOD.count("\n") + 2
    assert (result.line, result.column) == (begins + NEVER_CLOSED["in its messages"].count("\n") + 1, 1)
    assert message(result) == (
        f"Invalid JSON: the object that starts in line {begins} is not closed before the next one. "
        "Add ]} before it."
    )


def test_the_last_object_that_is_never_closed_is_reported_at_the_end() -> None:
    text = below_each_other([GOOD, GOOD[:-2]])
    (result,) = (one for one in summary(text).findings if one.code == "json.invalid")
    assert message(result) == (
        f"Invalid JSON: the object that starts in line {GOOD.count(chr(10)) + 2} is not closed "
        "at the end of the file. Add }."
    )


def test_a_missing_brace_within_a_list_costs_one_object_alone() -> None:
    """The object seems to end too early. Its remaining elements are not top-level objects; the next objects are."""
    named = json.dumps({"id": "1", **ROW, "messages": [*ROW["messages"], *ROW["messages"]]}, indent=2)
    broken = named.replace('    {\n      "role"', '      "role"', 1)
    for text in (below_each_other, in_array):
        found = summary(text([broken, named, named, broken, named]))
        assert found.models["m"]["rows"] == 3


@pytest.mark.parametrize("stray", ['"', '"tags": [\n["a"]\n]\n}', "x", "}"])
def test_what_is_between_objects_costs_none_of_them(stray: str) -> None:
    assert summary(below_each_other([GOOD, GOOD, stray, GOOD, GOOD])).models["m"]["rows"] == 4


def test_one_that_takes_in_more_than_a_row_may_hold_stops_nothing() -> None:
    text = in_array([NEVER_CLOSED["in its messages"], *[GOOD] * 50])
    found = read(io.BytesIO(text.encode()), limits=Limits(row_bytes=2_000)).summary
    assert (found.rows, found.counts) == (51, {"file.not_jsonl": 1, "json.invalid": 1})


def test_what_is_too_long_is_reported_at_the_line_where_it_begins() -> None:
    text = below_each_other([GOOD, json.dumps({"messages": [], "n": list(range(900))}, indent=1)])
    found = read(io.BytesIO(text.encode()), limits=Limits(row_bytes=2_000)).summary
    assert [one.line for one in found.findings if one.code == "row.too_large"] == [GOOD.count("\n") + 2]


@pytest.mark.parametrize("shape", [str, flat])
def test_rows_that_hold_others_are_whole(shape: Callable[[str], str]) -> None:
    holding = json.dumps({**ROW, "examples": [ROW, ROW]}, indent=2)
    found = summary(below_each_other([shape(holding), shape(GOOD), shape(holding)]))
    assert (found.rows, found.counts) == (3, {"file.not_jsonl": 1})


def test_a_fault_costs_no_row_that_holds_others() -> None:
    holding = json.dumps({**ROW, "examples": [ROW, ROW]}, indent=2)
    found = summary(below_each_other([holding, FAULTS["a comma is missing"], holding]))
    assert (found.rows, found.counts) == (3, {"file.not_jsonl": 1, "json.invalid": 1})


def result(text: str) -> int:
    objects, found = Objects(), 0
    for number, line in enumerate(text.split("\n"), 1):
        found += sum(isinstance(one, Broken) for one in objects.feed(number, line))
    return found


HOSTILE: dict[str, Callable[[int], str]] = {
    "faults on one line": lambda n: "{\n" + "{x}, " * n,
    "faults behind closing brackets": lambda n: "}" * n + "{x}, " * n,
    "faults behind blanks": lambda n: " " * n + "{x}, " * n,
    "brackets that end nothing": lambda n: "{x" + "[" * 150 + "}" * n,
    "brackets without end": lambda n: "{x" + "[" * n,
    "quotes": lambda n: '{x "' + ' "\n' * n,
    "comments that do not end": lambda n: "{x " + "/*" * n,
    "objects that break off": lambda n: "{\n  x\n}\n" * n,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_faults_cost_time_in_proportion_to_the_text(name: str) -> None:
    def cost(size: int, rounds: int) -> float:
        text, best = HOSTILE[name](size), float("inf")
        for _ in range(rounds):
            before = time.process_time()
            result(text)
            best = min(best, time.process_time() - before)
        return best

    assert cost(80_000, rounds=1) < 8 * 4 * max(cost(10_000, rounds=3), 0.005)


UNENDED_COMMENTS = {
    "before all": (f"/* to do\n{GOOD}\n{GOOD}\n{GOOD}\n", 3),
    "between objects": (f"{GOOD}\n/* to do\n{GOOD}\n{GOOD}\n", 3),
    "in an array": (f"[\n{GOOD},\n/* to do\n{GOOD},\n{GOOD}\n]\n", 3),
    "within an object": (f"{GOOD}\n{GOOD[:-2]}, /* to do\n}}\n{GOOD}\n{GOOD}\n", 3),
    "within an object that never ends": (f"{GOOD}\n{GOOD[:-2]}, /* to do\n{GOOD}\n{GOOD}\n", 3),
    "behind one that ends": (f"{GOOD}\n/* a\nb */\n{GOOD}\n/* to do\n{GOOD}\n", 3),
}


@pytest.mark.parametrize("where", UNENDED_COMMENTS)
def test_a_comment_that_never_ends_takes_nothing_in(where: str, tmp_path: Path) -> None:
    text, whole = UNENDED_COMMENTS[where]
    (comment,) = [one for one in summary(text).findings if one.code == "json.invalid"]
    assert "unclosed comment" in message(comment)
    line = text.split("\n")[(comment.line or 0) - 1]
    assert line[(comment.column or 0) - 1 :] == "/* to do"
    source, target = tmp_path / "a.json", tmp_path / "b.jsonl"
    source.write_text(text)
    names = ("strip_comments", "strip_trailing_commas", "to_jsonl")
    repair_file(source, target, [Repair(name) for name in names])
    assert read(target).summary.valid_rows == whole


def test_a_comment_over_several_lines_that_ends_is_no_fault() -> None:
    text = f"{GOOD}\n/* one\ntwo */\n{GOOD}\n"
    found = summary(text)
    assert (found.rows, [one.code for one in found.findings]) == (2, ["file.not_jsonl"])
