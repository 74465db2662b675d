"""Rows extracted in the examining pass equal those of a second pass."""

import io
import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.core.reader import read
from datasets.core.rows import NewRow
from tests.datasets.core.helpers import BLOCK, USER, jsonl, judged, many, row, turns

FAKE = '], "model_outputs": [{"model_name": "lark", "responses": [{"content": "x"}]}], "tags": '


def taken(source: bytes) -> list[NewRow]:
    """Rows extracted in a single pass; discards earlier ones when the reader says so."""
    found: list[NewRow] = []
    with read(io.BytesIO(source)) as reading:
        for part, _ in reading.parts(found.clear):
            found += part
    return found


def result(rows: list[NewRow]) -> list[Any]:
    return [(one.line, one.valid, one.raw, list(one.answers)) for one in rows]


def of_second_pass(source: bytes) -> list[NewRow]:
    return [one.new_row for one in read(io.BytesIO(source))]


def output(name: str, *texts: str, **more: Any) -> dict[str, Any]:
    return {"model_name": name, "responses": [{"content": text, **more} for text in texts]}


texts = st.sampled_from(["a", FAKE, json.dumps(FAKE), '":', '"model_outputs"', "]}]}", "问题", "\\", "}, {"])
nested = st.sampled_from(
    [
        1,
        "s",
        [1],
        {"model_outputs": [output("lark", "y")]},
        [judged()],
        {"tags": {"q": [output("wren", "z")]}},
    ]
)
answers = st.builds(
    output,
    st.sampled_from(["lark", "wren", "lark2"]),
    texts,
    more=st.none(),
) | st.builds(lambda name, found, extra: output(name, *found, extra=extra), st.sampled_from(["lark", "wren"]),
              st.lists(texts, min_size=1, max_size=2), nested)  # fmt: skip


@st.composite
def hand(draw: st.DrawFn) -> bytes:
    """Strategy for files with rows in one layout, some of them in another."""
    before = draw(st.dictionaries(st.sampled_from(["id", "note"]), nested | texts, max_size=2))
    after = draw(st.dictionaries(st.sampled_from(["tags", "x"]), nested | texts, max_size=2))
    separators = draw(st.sampled_from([(", ", ": "), (",", ":"), (" , ", ":"), (", ", " : ")]))
    lines = []
    for outputs in draw(st.lists(st.lists(answers, min_size=1, max_size=3), min_size=2, max_size=6)):
        fields = {"messages": [USER], **before, "model_outputs": outputs, **after}
        order = draw(st.permutations(list(fields))) if draw(st.integers(0, 4)) == 0 else list(fields)
        written = separators if draw(st.integers(0, 4)) else (",", ": ")
        lines.append(json.dumps({key: fields[key] for key in order}, separators=written))
    return "\n".join(lines).encode()


@settings(max_examples=100, deadline=None)
@given(hand())
def test_answers_are_cut_out_wherever_they_are(source: bytes) -> None:
    for line, kept in zip(source.splitlines(), taken(source), strict=True):
        row = json.loads(line)
        outputs = row.pop("model_outputs") if kept.valid else []
        answers = [(model, number, json.loads(text)) for model, number, text in kept.answers]
        assert json.loads(kept.raw) == row
        assert answers == [
            (one["model_name"], number, response)
            for one in outputs
            for number, response in enumerate(one["responses"], 1)
        ]


@pytest.mark.parametrize(
    "source",
    [
        jsonl(judged(), judged(id=1), "x", row(), judged(id=2)),
        jsonl(row(), row(id=1)),
        jsonl(turns(), turns(system="s")),
        b"prompt,response\na,b\nc\n\n\"d\",e\n",
        many(judged()) + many(row(), BLOCK // 400),
        many(row()) + json.dumps(row(name="问题"), ensure_ascii=False).encode("gb18030"),
        many(row()) + json.dumps(row(), indent=1).encode(),
        b"\xff\xfe",
        b"{}\n{}\n",
        b"",
    ],
)  # fmt: skip
def test_the_rows_of_the_one_way_are_those_of_two(source: bytes) -> None:
    assert result(taken(source)) == result(of_second_pass(source))


def test_what_is_to_be_forgotten_is_reported_before_the_rows_come_again() -> None:
    source = many(judged()) + many(row(), BLOCK // 400)
    lines: list[int] = []
    with read(io.BytesIO(source)) as reading:
        for part, _ in reading.parts(lambda: lines.append(0)):  # noqa: B023 - the list stays the same
            lines += [one.line for one in part]
        rows = reading.summary.rows
    again = lines.index(0)
    assert again > 0
    assert lines[again + 1 :] == list(range(1, rows + 1))


CALLS = [{"id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}}]
OTHERS = [output("lark", "x"), output("wren", "y")]


def called(calls: Any = CALLS, **fields: Any) -> dict[str, Any]:
    """A row in the common layout: a field, two models' answers with tool calls, another field."""
    outputs = [output("lark", "a", tool_calls=calls), output("wren", "b", tool_calls=CALLS)]
    return {"messages": [USER], "x": 1, "model_outputs": outputs, "tags": 1, **fields}


@pytest.mark.parametrize(
    "inner",
    [
        {"model_outputs": OTHERS, "tags": 1},
        {"model_outputs": OTHERS},
        OTHERS,
        [*OTHERS, {"tags": 1}],
        {"a": [{"b": []}], "tags": 1},
        {"a": [{"b": []}, {"model_name": "wren", "responses": [{"content": "z"}]}], "tags": 1},
        [{"b": []}, {"model_name": "wren", "responses": [CALLS]}],
        {"model_name": "wren"},
        "model_name",
        "model_outputs",
    ],
)
@pytest.mark.parametrize("escapes", [(), ("_outputs",), ("_name",), ("_outputs", "_name")])
def test_calls_that_look_like_the_row_around_them_are_not_cut(inner: Any, escapes: tuple[str, ...]) -> None:
    odd = [
        called([inner]),
        called({"x": inner}),
        called(x=inner),
        called(tags=inner),
        called([inner], x=inner, tags=inner),
    ]
    lines = [json.dumps(one) for one in odd]
    for escape in escapes:  # the last, the first, or every occurrence of the word
        written = "\\u005f" + escape[1:]
        lines += [written.join(one.rsplit(escape, 1)) for one in lines] + [
            one.replace(escape, written, 1) for one in lines
        ]
        lines += [one.replace(escape, written) for one in lines]
    source = jsonl(*(called(CALLS), called(CALLS), called(CALLS), *odd)) + "\n".join(lines).encode()
    assert result(taken(source)) == result(of_second_pass(source))


@pytest.mark.parametrize("key", ["model_outputs", "\\u006dodel_outputs"])
def test_a_key_that_ends_like_the_one_of_the_answers_stays_in_the_row(key: str) -> None:
    source = json.dumps({"messages": [USER], key: OTHERS, 'x"model_outputs': [output("finch", "no")]})
    (kept,) = taken(source.replace("\\\\u", "\\u").encode())
    assert json.loads(kept.raw) == {"messages": [USER], 'x"model_outputs': [output("finch", "no")]}
    assert [model for model, _number, _text in kept.answers] == ["lark", "wren"]


def test_the_file_is_gone_through_once(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(many(judged()))
    result: list[int] = []
    with read(file, progress=lambda done, _: result.append(done)) as reading:
        count = len(list(chain.from_iterable(part for part, _ in reading.parts(list[int]().clear))))
        assert (count, reading.summary.rows) == (BLOCK // 1000, BLOCK // 1000)
    assert result == sorted(result)
    assert sum(one == file.stat().st_size for one in result) <= 2
