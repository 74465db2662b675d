"""Rows of two versions are matched by id if it is unique, otherwise by content or question."""

import json
from pathlib import Path
from typing import Any

import pytest

from datasets.core.formats import Format
from datasets.versions.row_match import ChangedRow, Matcher, digests

Rows = list[dict[str, Any]]


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def matched(folder: Path, old: Rows, new: Rows) -> tuple[bool, int, list[ChangedRow]]:
    matcher = Matcher(folder / "rows")
    for side, rows in (("old", old), ("new", new)):
        found = [(line, digests(json.dumps(row), "infer_and_judge")) for line, row in enumerate(rows, 1)]
        matcher.add(side, found)  # type: ignore[arg-type]
    matcher.match()
    result = matcher.by_id, matcher.same, list(matcher.changes())
    matcher.close()
    return result


def test_with_unique_ids_a_row_may_change_wholly(tmp_path: Path) -> None:
    old, new = [ask("a", id=1), ask("b", id=2)], [ask("b", id=2), ask("z", id=1)]
    assert matched(tmp_path, old, new) == (True, 1, [ChangedRow("changed", 1, 2)])


def test_an_id_that_repeats_matches_nothing(tmp_path: Path) -> None:
    rows = [ask("a", id=1), ask("b", id=1)]
    assert matched(tmp_path, rows, rows) == (False, 2, [])


def test_a_row_without_an_id_is_matched_by_content_beside_those_that_have_one(tmp_path: Path) -> None:
    old, new = [ask("a", id=1), ask("n")], [ask("n"), ask("a", id=1)]
    assert matched(tmp_path, old, new) == (True, 2, [])


def test_without_ids_the_same_question_with_another_answer_is_a_changed_row(tmp_path: Path) -> None:
    old, new = [ask("a", ref_answer="1")], [ask("a", ref_answer="2")]
    assert matched(tmp_path, old, new) == (False, 0, [ChangedRow("changed", 1, 1)])


def test_what_is_in_one_only_is_added_or_removed(tmp_path: Path) -> None:
    old, new = [ask("a"), ask("b")], [ask("b"), ask("c")]
    assert matched(tmp_path, old, new)[2] == [ChangedRow("removed", 1, None), ChangedRow("added", None, 2)]


def test_equal_rows_are_matched_one_to_one(tmp_path: Path) -> None:
    old, new = [ask("a"), ask("a"), ask("a")], [ask("a")]
    assert matched(tmp_path, old, new)[1:] == (
        1,
        [ChangedRow("removed", 2, None), ChangedRow("removed", 3, None)],
    )


def test_an_equal_row_is_preferred_to_one_that_asks_the_same(tmp_path: Path) -> None:
    old, new = [ask("a", n=1), ask("a", n=2)], [ask("a", n=2)]
    assert matched(tmp_path, old, new)[1:] == (1, [ChangedRow("removed", 1, None)])


MISSPELT = [{"mesages": ask("b")["messages"]}, {"messages": [{"role": "usr", "content": "b"}]}]


@pytest.mark.parametrize("wrong", MISSPELT)
@pytest.mark.parametrize("more", [{}, {"id": 7}])
def test_a_row_whose_misspelt_name_is_repaired_is_changed(
    tmp_path: Path, wrong: dict[str, Any], more: dict[str, Any]
) -> None:
    old, new = [ask("a"), wrong | more, ask("c")], [ask("a"), ask("b", **more), ask("c")]
    assert matched(tmp_path, old, new)[1:] == (2, [ChangedRow("changed", 2, 2)])


def test_an_invalid_row_is_not_matched_by_its_place_among_another_number_of_rows(tmp_path: Path) -> None:
    changes = matched(tmp_path, [MISSPELT[0]], [ask("b"), ask("c")])[2]
    assert {change.kind for change in changes} == {"removed", "added"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [1.0]}', '{"b":[1.0],"a":1}', True),
        ('{"a": 12345678901234567890123}', '{"a": 12345678901234567890124}', False),
        ('{"a": 1}', '{"a": 1.0}', False),
        ("{broken", "{broken ", True),
        ("{broken", "{broke", False),
    ],
)
def test_blanks_and_the_order_of_keys_are_no_content(one: str, other: str, same: bool) -> None:
    assert (digests(one, None).content == digests(other, None).content) is same


def test_a_question_is_known_again_in_another_format() -> None:
    formats: dict[Format, dict[str, Any]] = {
        "legacy_csv": {"prompt": "p", "response": "r"},
        "legacy_jsonl": {"conversation": [{"prompt": "p", "response": "r"}]},
        "infer_and_judge": {
            "messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "r"}]
        },
    }
    assert len({digests(json.dumps(row), fmt).messages for fmt, row in formats.items()}) == 1


def test_answers_are_content_and_the_order_of_models_is_not() -> None:
    a, b = ("a", '{"content": "1"}'), ("b", '{"content": "2"}')
    assert digests("{}", None, [a, b]).content == digests("{}", None, [b, a]).content
    assert digests("{}", None, [a]).content != digests("{}", None, [b]).content


def test_a_row_is_known_again_once_its_comment_is_gone() -> None:
    good = digests(json.dumps(ask("a", id=1)), "infer_and_judge")
    bad = digests(json.dumps(ask("a", id=1)) + ", // note", "infer_and_judge")
    assert (bad.identity, bad.messages) == (good.identity, good.messages)
    assert bad.content != good.content
