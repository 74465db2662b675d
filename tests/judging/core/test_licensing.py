"""What a licence is bound to, and how rows are divided."""

import pytest

from judging.core.licensing import (
    Sizes,
    coded,
    definition_hash,
    draw_parts,
    judged_as,
    places_of,
    sizes_of,
)
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script

JUDGE = JudgeModel(
    name="judge", template="Rate {{ response }}", url="http://a/v1", model="qwen", params={"temperature": 0}
)
USUAL = MetricDefinition(name="quality", judges=(JUDGE,))


def hash_with(**changes):
    """The hash with changes of the judge, or of the metric."""
    judge = {
        key: changes.pop(key)
        for key in list(changes)
        if key in JudgeModel.__struct_fields__ and key != "name"
    }
    parts = {field: getattr(JUDGE, field) for field in JudgeModel.__struct_fields__} | judge
    return definition_hash(
        MetricDefinition(**{"name": "quality", "judges": (JudgeModel(**parts),), **changes})
    )


@pytest.mark.parametrize(
    "changes", [{"name": "other"}, {"url": "http://b/v1"}, {"endpoint": 7}, {"api_key_env": "KEY"}]
)
def test_names_keys_and_addresses_are_not_part_of_a_licence(changes):
    assert hash_with(**changes) == definition_hash(USUAL)


def test_a_scale_of_integers_is_the_same_scale():
    file, browser = (hash_with(min_score=low, max_score=high) for low, high in ((1, 10), (1.0, 10.0)))
    assert file == browser


def test_a_default_that_was_written_is_the_default():
    written = MetricDefinition.from_json(
        '{"name": "quality", "jury": "mean", "sandbox": "batch", "undefined": "strict", "structured": "off",'
        '"judges": [{"name": "judge", "template": "Rate {{ response }}", "model": "qwen", "protocol": "chat",'
        '"parse": "score", "params": {"temperature": 0}}]}'
    )
    assert definition_hash(written) == definition_hash(USUAL)


@pytest.mark.parametrize(
    "changes",
    [
        {"template": "Score {{ response }}"},
        {"system_prompt": "Be strict."},
        {"parse": "bool"},
        {"model": "qwen-2"},
        {"params": {"temperature": 1}},
        {"repeats": 3},
        {"both_orders": True},
        {"max_score": 5},
        {"gives": "pass_fail"},
        {"protocol": "anthropic"},
        {"scripts": (Script(kind="preprocess", source="x = 1"),)},
        {"scripts": (Script(kind="postprocess", source="x = 1", after=1),)},
        {"jury": "median"},
        {"judges": (JUDGE, JUDGE)},
    ],
)
def test_whatever_decides_the_values_is(changes):
    assert hash_with(**changes) != definition_hash(USUAL)


KEYS = [f"row {n}" for n in range(200)]


def count(parts, part):
    return list(parts.values()).count(part)


def test_the_usual_split():
    assert [sizes_of(rows) for rows in (120, 60, 500)] == [
        Sizes(20, 40, 60),
        Sizes(20, 40, 60),
        Sizes(20, 40, 440),
    ]
    parts = draw_parts(KEYS, (), sizes_of(120), seed=3)
    assert [count(parts, part) for part in ("train", "dev", "test")] == [20, 40, 60]


def test_the_test_comes_from_the_rows_set_aside_and_the_rest_does_not():
    aside = KEYS[:100]
    parts = draw_parts(KEYS, aside, Sizes(20, 40, 60), seed=3)
    assert {key for key, part in parts.items() if part == "test"} <= set(aside)
    assert not {key for key, part in parts.items() if part != "test"} & set(aside)


def test_a_small_data_set_is_divided_as_far_as_it_goes():
    parts = draw_parts(KEYS[:80], (), Sizes(20, 40, 60), seed=3)
    assert [count(parts, part) for part in ("train", "dev", "test")] == [0, 20, 60]


def test_the_seed_decides_and_the_order_of_the_rows_does_not():
    first = draw_parts(KEYS, (), Sizes(), seed=3)
    assert draw_parts(KEYS[::-1], (), Sizes(), seed=3) == first
    assert draw_parts(KEYS, (), Sizes(), seed=4) != first


def test_every_row_is_as_likely_to_be_tested():
    tested = dict.fromkeys(KEYS[:20], 0)
    for seed in range(2000):
        for key, part in draw_parts(KEYS[:20], (), Sizes(2, 4, 5), seed).items():
            tested[key] += part == "test"
    assert all(0.2 <= hits / 2000 <= 0.3 for hits in tested.values())


def test_values_as_numbers():
    places = places_of(["good", "bad"], ["bad", "odd"])
    assert coded(["odd", "bad", "good"], places) == [2, 0, 1]
    assert coded([True, False, 3.5], {}) == [1, 0, 3.5]
    assert coded(["A>>B", "A=B", "B>A", "both_bad"], {}) == [1, 0, -1, 0]


@pytest.mark.parametrize(
    ("kind", "judged"),
    [("pass_fail", "passes"), ("category", "labels"), ("score", "ordered"), ("comparison", "ordered")],
)
def test_kinds_are_measured_in_their_way(kind, judged):
    assert judged_as(kind) == judged
