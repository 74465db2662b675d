"""The quick look may only pass rows about which the careful look has nothing to say, and counts them the same."""

import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from datasets.core.formats.checks import check_json_row
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


def looks(text: str, fmt: Format) -> tuple[bool, Tally, bool, Tally]:
    line, quick, careful = text.encode(), Tally(), Tally()
    (keys,) = key_counts(line, [line])
    look = QuickLook(fmt, quick)
    passed = look.passes(1, line, keys)
    assert look.passes(1, line, keys) == passed  # the second time its shape is known
    quick = Tally()
    look = QuickLook(fmt, quick)
    look.passes(1, line, keys)
    look.flush()
    check = check_json_row(1, text, fmt)
    if check.facts:
        careful.add(1, check.facts)
    return passed, quick, not check.found, careful


def figures(tally: Tally) -> Any:
    return tally.objects, tally.fields, tally.models, tally.ids.hashes, tally.messages.hashes


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


@settings(max_examples=200, deadline=None)
@given(st.lists(good_rows, max_size=12))
def test_rows_of_many_shapes_are_counted_as_the_careful_look_counts_them(many: list[Any]) -> None:
    quick, careful = Tally(), Tally()
    look = QuickLook("infer_and_judge", quick)
    for value in many:
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "ignore")
        facts = check_json_row(1, line.decode(), "infer_and_judge").facts
        if facts and look.passes(1, line, key_counts(line, [line])[0]):
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
    return [look.passes(1, line, key_counts(line, [line])[0]) for line in (text.encode(), more.encode())][1]


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


def test_a_key_twice_in_a_further_field_does_not_pass():
    usage = with_answer('"content": "So.", "usage": {"prompt_tokens": 3}')
    assert not second_passes(usage, usage.replace(": 3", ': 3, "prompt_tokens": 3'))
    assert not second_passes(usage, usage.replace(": 3", ': 3, "prompt_tokens": "\\u003a"'))


def test_an_integer_beyond_a_double_does_not_pass():
    usage = with_answer('"content": null, "tool_calls": [3]')
    assert not second_passes(usage, usage.replace("[3]", f"[{'3' * 400}]"))
