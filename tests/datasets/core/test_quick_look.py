"""The quick look may only pass rows about which the careful look has nothing to say, and counts them the same."""

import json
import random
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.core.findings import Finding
from datasets.core.formats import checks, quick, shapes
from datasets.core.formats.checks import Told, check_json_row, columns_of
from datasets.core.formats.keycount import key_counts
from datasets.core.formats.names import Format
from datasets.core.formats.quick import QuickLook
from datasets.core.tally import Tally
from tests.datasets.core.helpers import judged, row, turns

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
texts = st.sampled_from(["a", "b", "", " ", '":', '{"a": 1}', "\\", "\0", "\u2028"]) | st.text(max_size=5)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool", "bot"]), "content": texts | values},
        optional={"name": texts, "tool_calls": values},
    ),
    max_size=3,
)
outputs = st.lists(
    st.fixed_dictionaries(
        {
            "model_name": st.sampled_from(["lark", "wren", " ", 1]),
            "responses": st.lists(
                st.fixed_dictionaries(
                    {"content": texts | values},
                    optional={"reasoning_content": texts | values, "finish": values, "tool_calls": values},
                ),
                max_size=2,
            ),
        }
    ),
    max_size=2,
)
conversations = st.lists(
    st.fixed_dictionaries({"prompt": texts, "response": texts}, optional={"x": values}), max_size=2
)
rows = st.fixed_dictionaries(
    {},
    optional={
        "messages": messages,
        "model_outputs": outputs,
        "conversation": conversations,
        "system": texts | values,
        "id": values,
        "ref_answer": values,
        "gt": values,
        'a"b': values,
    },
)
formats = st.sampled_from(["infer_and_judge", "judge_only", "legacy_jsonl"])


def told(look: QuickLook, number: int, line: bytes, keys: int | None = None) -> list[Finding] | None:
    """What the look has to say of a line, None if it must be parsed."""
    found: list[Told] = []
    counts = key_counts(line, [line]) if keys is None else [keys]
    if list(look.unknown(number, [line], counts, found)):
        return None
    return [
        fault.at(number, line.decode(), columns_of(line)) for *_, verdict in found for fault in verdict.faults
    ]


def passes(look: QuickLook, line: bytes, number: int = 1, keys: int | None = None) -> bool:
    return told(look, number, line, keys) == []


def looks(text: str, fmt: Format) -> tuple[bool, Tally, bool, Tally]:
    line, quick, careful = text.encode(), Tally(), Tally()
    (keys,) = key_counts(line, [line])
    look = QuickLook(fmt, quick)
    passed = passes(look, line, keys=keys)
    assert passes(look, line, keys=keys) == passed  # the second time its shape is known
    quick = Tally()
    look = QuickLook(fmt, quick)
    passes(look, line, keys=keys)
    look.flush()
    check = check_json_row(1, text, fmt)
    if check.facts:
        careful.add(1, check.facts)
    return passed, quick, not check.found, careful


def figures(tally: Tally) -> Any:
    seen = (tally.ids.hashes, tally.ids.lines, tally.messages.hashes, tally.messages.lines)
    return tally.objects, tally.fields, tally.models, seen


@settings(max_examples=400, deadline=None)
@given(rows, formats, st.booleans(), st.sampled_from([None, (",", ":"), (" , ", " : ")]))
def test_what_passes_quickly_is_clean_and_counted_alike(
    value: Any, fmt: Format, ascii_only: bool, separators: Any
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    passed, quick, clean, careful = looks(text, fmt)
    assert clean or not passed
    if passed:
        assert figures(quick) == figures(careful)


good_rows = st.fixed_dictionaries(
    {"messages": st.just([{"role": "user", "content": "?"}])},
    optional={"id": values, "system": values, "x": values, "y": st.integers(), "z": st.text()},
)


parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}, optional={"x": values}))
said = texts.filter(str.strip)
call = st.fixed_dictionaries(
    {"id": texts, "function": st.fixed_dictionaries({"name": texts, "arguments": texts})},
    optional={":": st.integers() | st.none()},
)
calls = values | st.lists(call, max_size=2)
wide_messages = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "tool", "assistant"]), "content": said | parts},
            optional={"name": texts, ":": calls},
        ),
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "tool_calls": calls},
            optional={"content": st.none() | said | parts | values},
        ),
    ),
    max_size=3,
).map(lambda more: [{"role": "user", "content": "?"}, *more])
wide_answers = st.one_of(
    st.fixed_dictionaries({"content": said}, optional={"usage": values}),
    st.fixed_dictionaries({"tool_calls": calls}, optional={"content": st.none() | texts, "usage": values}),
)
wide_rows = st.fixed_dictionaries(
    {
        "messages": wide_messages,
        "model_outputs": st.lists(wide_answers, min_size=1, max_size=2).map(
            lambda answers: [{"model_name": "lark", "responses": answers}]
        ),
    },
    optional={"x": values},
)


def tallied(fmt: Format, lines: Iterable[bytes]) -> tuple[Tally, Tally]:
    """What both looks counted of those rows in which the quick one finds what the careful one does."""
    quick, careful = Tally(), Tally()
    look = QuickLook(fmt, quick)
    for number, line in enumerate(lines):
        found, check = told(look, number, line), check_json_row(number, line.decode(), fmt)
        if found is not None:
            assert check.facts
            assert found == check.found
            careful.add(number, check.facts)
    look.flush()
    return quick, careful


@settings(max_examples=300, deadline=None)
@given(st.lists(wide_rows, max_size=8), st.booleans())
def test_calls_and_parts_are_counted_as_the_careful_look_counts_them(
    many: list[Any], ascii_only: bool
) -> None:
    lines = (json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "ignore") for value in many)
    quick, careful = tallied("judge_only", lines)
    assert figures(quick) == figures(careful)


@settings(max_examples=300, deadline=None)
@given(st.lists(rows, max_size=6), formats, st.sampled_from([None, (",", ":"), (" , ", " : ")]))
def test_faulty_rows_are_told_and_counted_as_the_careful_look_does(
    many: list[Any], fmt: Format, separators: Any
) -> None:
    lines = (b" " + json.dumps(value, separators=separators).encode() for value in many)
    quick, careful = tallied(fmt, lines)
    assert figures(quick) == figures(careful)
    assert list(quick.models) == list(careful.models)


@settings(max_examples=200, deadline=None)
@given(st.lists(good_rows, max_size=12))
def test_rows_of_many_shapes_are_counted_as_the_careful_look_counts_them(many: list[Any]) -> None:
    quick, careful = Tally(), Tally()
    look = QuickLook("infer_and_judge", quick)
    for value in many:
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore")
        facts = check_json_row(1, line.decode(), "infer_and_judge").facts
        if facts and passes(look, line):
            careful.add(1, facts)
    look.flush()
    assert figures(quick) == figures(careful)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from([row(id=1), judged(x={"a": [1]}), turns(system="s")]),
    formats,
    st.randoms(use_true_random=False),
)
def test_a_damaged_row_never_passes_unless_it_is_still_clean(
    value: Any, fmt: Format, rng: random.Random
) -> None:
    text = json.dumps(value)
    at, until = sorted(rng.choices(range(len(text)), k=2))
    piece = rng.choice(
        [text[at:until], '"', ",", "1e999", "\\u0000", "\\ud800", '"id":1,', ' "id" :2,', "\t", "NaN"]
    )
    passed, _, clean, _ = looks(text[:at] + piece + text[at:], fmt)
    assert clean or not passed


def test_plain_rows_do_pass() -> None:
    assert looks(json.dumps(row(id="a", n=1.5, tags={"a": ["b"]})), "infer_and_judge")[0]
    assert looks(json.dumps(judged(note='say "x": y')), "judge_only")[0]
    assert looks(json.dumps(turns(system="s")), "legacy_jsonl")[0]


def test_a_number_beyond_a_double_never_passes() -> None:
    for number in ("1e999", "[-1e400]", "1" + "0" * 400, "[1" + "0" * 400 + "]", '{"a": 1e309}'):
        text = json.dumps(row())[:-1] + f', "n": {number}}}'
        assert not looks(text, "infer_and_judge")[0]


def test_keys_are_counted_line_by_line() -> None:
    text = b'{"a": 1, "b": {"c": 2}}\n\n{"a": "\\":"}\n{"a" : 1}'
    assert key_counts(text, text.split(b"\n")) == [3, 0, 1, -1]


def second_passes(text: str, more: str) -> bool:
    """Whether a row passes after one like it was learned."""
    look = QuickLook("judge_only", Tally())
    return [passes(look, line) for line in (text.encode(), more.encode())][1]


def with_answer(answer: str) -> str:
    return (
        '{"messages": [{"role": "user", "content": "Why?"}],'
        f' "model_outputs": [{{"model_name": "lark", "responses": [{{{answer}}}]}}]}}'
    )


def test_further_fields_of_answers_and_calls_instead_of_a_text_pass():
    usage = with_answer('"content": "So.", "usage": {"prompt_tokens": 3}, "stop": "x"')
    calls = with_answer('"content": null, "tool_calls": [{"id": "a", "function": {"name": "look"}}]')
    assert second_passes(usage, usage)
    assert second_passes(usage, calls)


@pytest.mark.parametrize(
    "content", ['""', '" "', "7", "null", '{"a": 1}', "[[]]", "1e999", '"\\u0000"', "9" * 400]
)
@pytest.mark.parametrize("more", ["", ', "tool_calls": [{"id": "a"}]', ', "content": "b"', ', "further": 1'])
def test_an_answer_that_is_no_text_is_told_as_the_careful_look_tells_it(content: str, more: str) -> None:
    tally = Tally()
    look = QuickLook("judge_only", tally)
    for known in ('"content": "So."', '"content": "So.", "tool_calls": [{"id": "a"}]'):
        assert told(look, 1, with_answer(known).encode()) == []
        faulty = with_answer(f'"content": {content}{more}')
        found = told(look, 1, faulty.encode())
        assert found is None or found == check_json_row(1, faulty, "judge_only").found


def test_a_key_twice_in_a_further_field_does_not_pass():
    usage = with_answer('"content": "So.", "usage": {"prompt_tokens": 3}')
    assert not second_passes(usage, usage.replace(": 3", ': 3, "prompt_tokens": 3'))
    assert not second_passes(usage, usage.replace(": 3", ': 3, "prompt_tokens": "\\u003a"'))


def test_a_key_twice_or_too_few_in_a_call_is_seen() -> None:
    call = with_answer('"tool_calls": [{"id": "a", "function": {"name": "look", "more": {"b": 1}}}]')
    for again in ('"id": "a", "id"', '"id": "b", ":": 1, "id"'):
        assert not second_passes(call, call.replace('"id"', again))
    assert not second_passes(call, call.replace('"b": 1', '"b": 1, "b": 2'))
    assert second_passes(call, call.replace('"id": "a", ', ""))


def test_a_key_twice_in_a_message_does_not_pass() -> None:
    usage = with_answer('"content": "So."').replace('"Why?"', '"Why?", "name": "a"')
    assert second_passes(usage, usage)
    assert not second_passes(usage, usage.replace('"a"', '"a", "name": "a"'))
    assert not second_passes(usage, usage.replace('"a"', '":a", "name": "\\u003aa"'))


def with_messages(*more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": "?"}, *more]}).encode()


CALLING = {"role": "assistant", "tool_calls": [{"id": "a"}], "content": None}
KINDS = [
    (CALLING, {"role": "tool", "tool_call_id": "a", "content": "x"}),
    ({"role": "tool", "name": "b", "content": "x"},),
    ({"role": "assistant", "content": [{"type": "text", "text": "a"}, {"text": "b", "type": "text"}]},),
    ({"role": "assistant", "content": "ab"},),
    ({"role": "tool", "content": "x", "name": 1},),
    ({"role": "tool", "content": "x", "name": 1.0},),
    ({"role": "tool", "content": "x", "name": {"b": True, "a": [None, ":", {"d": 1, "c": 2}]}},),
    ({"content": "x", "name": None, "role": "tool"},),
    ({"role": "assistant", "content": [{"type": "text", "text": ":"}]},),
    ({"role": "assistant", "content": ":"},),
]


@pytest.fixture
def singly(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lines that were decoded as plain values."""
    lines: list[int] = []
    one_by_one = QuickLook._look_at_any

    def noted(look: QuickLook, number: int, *row: Any) -> Any:
        lines.append(number)
        return one_by_one(look, number, *row)

    monkeypatch.setattr(QuickLook, "_look_at_any", noted)
    return lines


def test_messages_of_kinds_that_were_met_pass_in_one_go_and_the_same_are_known(singly: list[int]) -> None:
    tally, careful = Tally(), Tally()
    look = QuickLook("infer_and_judge", tally)
    for number, more in enumerate(KINDS * 3):
        line = with_messages(*more)
        check = check_json_row(number, line.decode(), "infer_and_judge")
        assert check.facts
        careful.add(number, check.facts)
        assert passes(look, line, number)
    look.flush()
    assert figures(tally) == figures(careful)
    assert max(singly) < len(KINDS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "assistant", "content": None},
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "tool", "content": None, "tool_calls": [{"id": "a"}]},
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": [{"type": "text", "text": " "}]},
        {"role": "assistant", "content": [{"type": "image", "text": "a"}]},
        {"role": "user", "content": "again"},
        {"role": "system", "content": "late"},
        {"role": "bot", "content": "a"},
        {"role": "tool", "content": 7},
        {"content": "a", "name": "b"},
    ],
)
def test_a_wrong_message_beside_calls_does_not_pass(wrong: Any) -> None:
    look = QuickLook("infer_and_judge", Tally())
    lines = [with_messages(*more) for more in ((CALLING,), (CALLING,), (wrong,))]
    passed = [passes(look, line) for line in lines]
    assert passed == [True, True, False]


def test_parts_with_more_than_a_text_pass_too() -> None:
    look = QuickLook("infer_and_judge", Tally())
    part = {"type": "text", "text": "a", "cache": {"b": 1}}
    for more in ((CALLING,), ({"role": "tool", "content": [part]},), (CALLING,)):
        line = with_messages(*more)
        assert passes(look, line)
        twice = line.replace(b'{"role"', b'{"role": "user", "role"', 1)
        assert not passes(look, twice, keys=line.count(b'":') + 1)


def test_an_integer_beyond_a_double_does_not_pass():
    usage = with_answer('"content": null, "tool_calls": [3]')
    assert not second_passes(usage, usage.replace("[3]", f"[{'3' * 400}]"))


def said_by(role: Any, content: Any = "?", **more: Any) -> dict[str, Any]:
    return {name: value for name, value in {"role": role, "content": content, **more}.items() if value != ...}


WRONG_MESSAGES = {
    "no role": [said_by(...)],
    "a role that is none": [said_by("human"), said_by("gpt", "!")],
    "no content": [said_by("user", ...)],
    "no role twice": [said_by(...), said_by(..., "!")],
    "neither": [said_by("user"), said_by(..., ...)],
    "blank": [said_by("user", " ")],
    "empty": [said_by("user", "")],
    "nobody asks": [said_by("system"), said_by("assistant")],
    "system later": [said_by("user"), said_by("system")],
    "twice": [said_by("user"), said_by("user", "!"), said_by("tool"), said_by("tool")],
}
WRONG_ANSWERS = {
    "blank": {"content": " "},
    "empty": {"content": ""},
    "no text": {"content": 7},
    "null": {"content": None, "tool_calls": None},
    "nothing": {},
}
FAULTY = {
    **{f"message: {name}": judged(messages=wrong) for name, wrong in WRONG_MESSAGES.items()},
    **{
        f"answer: {name}": judged(
            model_outputs=[{"model_name": "a", "responses": [{"content": "x"}, wrong, {"content": "x"}]}]
        )
        for name, wrong in WRONG_ANSWERS.items()
    },
    "both": judged(
        messages=[said_by("human", " ")], model_outputs=[{"model_name": "a", "responses": [{"content": 7}]}]
    ),
    "no answers": row(),
    "no answers and no role": row(messages=[said_by(...)]),
}
CALLED = judged(messages=[said_by("user"), said_by("assistant", None, tool_calls=[{"id": "a"}])])


@pytest.mark.parametrize("beside", [judged(), CALLED], ids=["messages of texts", "messages with calls"])
@pytest.mark.parametrize("name", FAULTY)
def test_common_faults_are_told_without_a_second_decoding(name: str, beside: Any, singly: list[int]) -> None:
    lines = [json.dumps(value).encode() for value in 3 * [beside, FAULTY[name]]]
    found, careful = tallied("judge_only", lines)
    assert figures(found) == figures(careful)
    assert careful.objects == len(lines)
    assert set(singly) <= {0, 1}


def test_rows_that_all_have_a_common_fault_are_told_so_too(singly: list[int]) -> None:
    lines = [json.dumps(judged(id=number, messages=[said_by("human")])).encode() for number in range(9)]
    found, careful = tallied("judge_only", lines)
    assert figures(found) == figures(careful)
    assert singly == [0]


damaged = st.sampled_from([judged(), CALLED, *FAULTY.values()])


@settings(max_examples=300, deadline=None)
@given(st.lists(damaged, max_size=10), st.sampled_from(["judge_only", "infer_and_judge"]))
def test_rows_with_common_faults_among_others_are_told_and_counted_alike(
    many: list[Any], fmt: Format
) -> None:
    found, careful = tallied(fmt, (json.dumps(value).encode() for value in many))
    assert figures(found) == figures(careful)
    assert careful.objects == len(many)


def few(**choices: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of these keys, each with one of a few values or, where that is an ellipsis, without it."""
    made = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in choices.items()})
    return made.map(lambda values: {name: value for name, value in values.items() if value != ...})


SOME_CALLS = [..., ..., None, [], [{"id": "a"}]]
few_messages = few(
    role=["user", "user", "assistant", "tool", "system", "bot", ...],
    content=[
        "?",
        "?",
        "!",
        " ",
        "",
        None,
        ...,
        [],
        [{"type": "text", "text": " "}],
        [{"type": "text", "text": "a"}],
    ],
    tool_calls=SOME_CALLS,
)
few_answers = few(content=["x", "x", "y", " ", "", 7, 7.5, True, None, ...], tool_calls=SOME_CALLS)
few_outputs = st.fixed_dictionaries(
    {
        "model_name": st.sampled_from(["lark", "wren", " "]),
        "responses": st.lists(few_answers, min_size=1, max_size=2),
    }
)
few_rows = st.fixed_dictionaries(
    {"messages": st.lists(few_messages, min_size=1, max_size=2)},
    optional={"model_outputs": st.lists(few_outputs, min_size=1, max_size=2)},
)


@settings(max_examples=400, deadline=None)
@given(st.lists(few_rows, max_size=12), st.sampled_from(["judge_only", "infer_and_judge"]))
def test_what_is_said_of_a_row_is_said_of_no_other_that_differs(many: list[Any], fmt: Format) -> None:
    found, careful = tallied(fmt, (json.dumps(value).encode() for value in [judged(), CALLED, *many, *many]))
    assert figures(found) == figures(careful)


def test_of_many_rows_with_the_same_faults_the_rules_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    rules = quick.check_doubts
    monkeypatch.setattr(quick, "check_doubts", lambda *row: asked.append(row) or rules(*row))
    faults = [FAULTY["both"], FAULTY["answer: blank"]]
    lines = [
        json.dumps(value | {"id": number}).encode() for number in range(20) for value in [judged(), *faults]
    ]
    found, careful = tallied("judge_only", lines)
    assert figures(found) == figures(careful)
    assert careful.objects == len(lines)
    assert len(asked) <= 2 * len(faults)  # once more where a shape was learned between


def test_what_is_said_of_long_rows_is_not_remembered() -> None:
    look = QuickLook("judge_only", Tally())
    long = judged(messages=[said_by("x" * quick.SHORT)])
    for value in (judged(), long, long):
        told(look, 1, json.dumps(value).encode())
    assert not look._verdicts


@settings(max_examples=200, deadline=None)
@given(
    st.lists(damaged | few_rows | rows, max_size=20),
    st.sampled_from(["judge_only", "infer_and_judge"]),
    st.sampled_from([1, 150, 600, 3_000]),
    st.sampled_from([1, 8]),
)
def test_whatever_is_forgotten_in_between_nothing_is_lost(
    many: list[Any], fmt: Format, remembered: int, mixed: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(quick, "MOST_REMEMBERED", remembered)
        patched.setattr(shapes, "MOST_MIXED", mixed)
        found, careful = tallied(fmt, (json.dumps(value).encode() for value in many + many))
    assert figures(found) == figures(careful)


def test_rows_with_keys_that_come_and_go_are_counted_while_their_answers_are_forgotten() -> None:
    def with_blank(at: int) -> list[Any]:
        answers = [{"content": " " if at >> bit & 1 else "x"} for bit in range(5)]
        return [{"model_name": "lark", "responses": answers}]

    rows = [
        judged(model_outputs=with_blank(at), ref_answer="a", **({"x": 1} if at % 2 else {}))
        for at in range(31)
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(quick, "MOST_REMEMBERED", 400)
        found, careful = tallied("judge_only", [json.dumps(value).encode() for value in rows])
    assert found.fields["ref_answer"].rows == 31
    assert figures(found) == figures(careful)


DIFFERENT = {
    "long model names": (
        1_000,
        lambda n: judged(model_outputs=[{"model_name": f"{n:x>9000}", "responses": [{"content": "x"}]}]),
    ),
    "long keys": (1_000, lambda n: judged(messages=7, **{f"{n:x>9000}": 1})),
    "long roles": (1_000, lambda n: judged(messages=[said_by(f"{n:x>9000}")])),
    "many answers without a text": (
        40,
        lambda n: judged(model_outputs=[{"model_name": "a", "responses": [{}] * (1_000 - n)}]),
    ),
    "many faulty messages": (
        40,
        lambda n: judged(messages=[{}] * n + [said_by("tool")] + [{}] * (1_000 - n)),
    ),
    "keys that come and go": (
        1_000,
        lambda n: judged(**{f"k{n % 50}_{key}": 1 for key in range(1 + n * 7 % 99)}),
    ),
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_little_is_remembered_of_rows_that_are_all_different(kind: str) -> None:
    look = QuickLook("judge_only", Tally())
    number, made = DIFFERENT[kind]
    lines = [json.dumps(made(n)).encode() for n in range(number)]
    told(look, 1, json.dumps(judged()).encode())
    tracemalloc.start()
    for line in lines:
        told(look, 1, line)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 8_000_000


def test_a_long_row_is_not_walked_through_from_its_start_for_each_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = [said_by("user"), said_by("assistant", "!")]
    lines = [json.dumps(judged(messages=turn)).encode()]
    lines += [json.dumps(judged(messages=1_000 * turn + 50 * [said_by("bot", " ")])).encode()]
    monkeypatch.setattr(checks, "place_of", None)
    found, careful = tallied("judge_only", lines)
    assert figures(found) == figures(careful)
    assert careful.objects == 2


blank_turns = st.lists(
    st.fixed_dictionaries(
        {"prompt": st.sampled_from(["", " ", "?"]), "response": st.sampled_from(["", "!"])}
    ),
    max_size=2,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(blank_turns | st.just(turns()["conversation"]), max_size=8), st.booleans())
def test_blank_turns_are_told_and_counted_alike(many: list[Any], with_system: bool) -> None:
    more = {"system": "s"} if with_system else {}
    lines = (json.dumps({"conversation": value, **more}).encode() for value in many)
    found, careful = tallied("legacy_jsonl", lines)
    assert figures(found) == figures(careful)
    assert careful.objects == len(many)
