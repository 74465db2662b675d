"""Statistics over all rows, in memory that does not grow with the number of distinct rows."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from datasets.core.findings import FindingLog
from datasets.core.stats import Stats
from tests.datasets.core.helpers import ANSWER, USER, judged, row, turns

ROWS: list[dict[str, Any]] = [
    judged(id=1, note="a"),
    judged(id="1", note=None),
    row(id=1),
    turns(system="s"),
    judged(model_outputs=[ANSWER, {**ANSWER, "model_name": "wren"}, 7, {"model_name": " "}]),
    judged(model_outputs=[{**ANSWER, "responses": ANSWER["responses"] * 2}]),
]


def counted(rows: list[dict[str, Any]]) -> Stats:
    found = Stats()
    for number, one in enumerate(rows, 1):
        found.add(number, one)
    return found


def test_fields_and_models_are_counted_by_row() -> None:
    found = counted(ROWS * 3)
    assert found.objects == 18
    assert found.fields["note"] == {str: 3, type(None): 3}
    assert [(name, one.rows, one.responses) for name, one in found.models.items()] == [
        ("lark", 12, 15),
        ("wren", 3, 3),
    ]
    assert (found.models["lark"].fewest, found.models["lark"].most) == (1, 2)


def test_names_are_in_the_order_in_which_they_were_found() -> None:
    assert list(counted([judged(b=1), judged(a=1), judged(b=1, c=1)]).fields)[-3:] == ["b", "a", "c"]


def repeated(*rows: dict[str, Any]) -> list[int | None]:
    log = FindingLog(10)
    counted(list(rows)).report("infer_and_judge", log)
    return [one.line for one in log.stored if one.code == "row.duplicate"]


def test_messages_that_read_the_same_are_the_same_row() -> None:
    parts = [{"type": "text", "text": "How "}, {"type": "text", "text": "many?"}]
    same = {"messages": [{"content": parts, "role": "user"}]}
    assert repeated(row(id=1), row(id=2, x=1), same) == [2, 3]


def test_messages_that_differ_in_anything_are_not() -> None:
    named = {"messages": [{**USER, "name": "a"}]}
    assert repeated(row(), named, {"messages": [USER, USER]}, {"messages": []}, turns()) == []


def test_a_conversation_is_the_messages_that_it_becomes() -> None:
    said = {"messages": [USER, {"role": "assistant", "content": "Four."}]}
    assert repeated(turns(), said, turns(system=" "), turns(system="s")) == [2, 3]


DIFFERENT: dict[str, Callable[[int], dict[str, Any]]] = {
    "keys": lambda n: judged(**{f"{n:x>9000}": 1}),
    "models": lambda n: judged(model_outputs=[{**ANSWER, "model_name": f"{n:x>9000}"}]),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_little_is_remembered_of_rows_that_are_all_different(kind: str) -> None:
    found = Stats()
    tracemalloc.start()
    for number in range(1_000):
        found.add(number, DIFFERENT[kind](number))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 5_000_000
