"""What is said first about a metric: a table of cases."""

from itertools import combinations

import pytest

from judging.core.statistics.headline import Gap, headline_of, standing_of
from judging.core.statistics.ranking import ranked


def pairs_of(values, alike, **more):
    """All pairs of candidates; those in `alike` do not differ significantly, those with None could not be tested."""
    values = {name: value for name, value in values.items() if value is not None}
    for a, b in combinations(sorted(values), 2):
        told = alike.get(frozenset((a, b)), True)
        yield {
            "metric": "m", "a": a, "b": b, "difference": values[a] - values[b], "distinguishable": told, **more,
        }  # fmt: skip


def alike(*pairs, told=False):
    return {frozenset(pair.split()): told for pair in pairs}


def cells(values, kind="number"):
    figures = {"ci_low": 1.0, "ci_high": 9.0, "se": 0.5, "kind": kind}
    return {name: {"m": {**figures, "mean": value}} for name, value in values.items()}


def a_document(values, told=None, corrected=None, corrected_told=None, bias=None, **more):
    """`corrected`: {candidate: value}; `bias`: (judge − people, low, high), or a list of such judges' ones."""
    figures = {"metric": "m", "judge": "qwen", "ci_low": 1.0, "ci_high": 9.0, "se": 0.5}
    return {
        "candidates": cells(values),
        "pairs": list(pairs_of(values, told or {})),
        "corrected": [
            {**figures, "candidate": name, "value": one} for name, one in (corrected or {}).items()
        ],
        "corrected_pairs": list(pairs_of(corrected or {}, corrected_told or {}, judge="qwen")),
        "judges": [] if bias is None else [against_people(*bias)],
        **more,
    }


def against_people(bias, low, high, judge="qwen", **by_candidate):
    each = [
        {"candidate": name, "items": 20, "bias": one[0], "bias_low": one[1], "bias_high": one[2]}
        for name, one in by_candidate.items()
    ]
    return {
        "metric": "m", "judge": judge, "against": "people", "items": 40, "bias": bias, "bias_low": low,
        "bias_high": high, "by_candidate": each,
    }  # fmt: skip


THREE = {"a": 7.0, "b": 6.0, "c": 4.0}
CASES = {
    "significantly above every other": (a_document(THREE), "leads", ["a"]),
    "not apart from the second": (a_document(THREE, alike("a b")), "tied", ["a", "b"]),
    "apart from the second only": (a_document(THREE, alike("a c")), "tied", ["a", "c"]),
    "apart from nobody": (a_document(THREE, alike("a b", "a c", "b c")), "tied", ["a", "b", "c"]),
    "the others alike among themselves": (a_document(THREE, alike("b c")), "leads", ["a"]),
    "too few shared items": (a_document(THREE, alike("a b", "a c", "b c", told=None)), "tied", ["a", "b", "c"]),
    "nothing tested": (a_document(THREE, pairs=[]), "tied", ["a", "b", "c"]),
    "an exact tie of four": (
        a_document(dict.fromkeys("abcd", 5.0), alike("a b", "a c", "a d", "b c", "b d", "c d")),
        "equal",
        ["a", "b", "c", "d"],
    ),
    "equal but for rounding": (
        a_document({"a": 0.1 + 0.2, "b": 0.3}, alike("a b")),
        "equal",
        ["a", "b"],
    ),
    "two equal, the third apart": (a_document({"a": 5.0, "b": 5.0, "c": 1.0}, alike("a b")), "equal", ["a", "b"]),
    "two equal, the third not apart": (
        a_document({"a": 5.0, "b": 5.0, "c": 4.9}, alike("a b", "b c")),
        "tied",
        ["a", "b", "c"],
    ),
    "one candidate": (a_document({"a": 5.0}), "nothing", ["a"]),
    "one with a mean": (a_document({"a": 5.0, "b": None}), "nothing", ["a"]),
    "no means": (a_document({"a": None, "b": None}), "nothing", []),
    "people say lower": (a_document(THREE, bias=(0.6, 0.2, 1.0)), "contradicted", ["a"]),
    "people say higher": (a_document(THREE, alike("a b"), bias=(-0.6, -1, -0.2)), "contradicted", ["a", "b"]),
    "people may agree": (a_document(THREE, bias=(0.3, -0.1, 0.7)), "leads", ["a"]),
    "people agree exactly": (a_document(THREE, bias=(0.0, 0.0, 0.0)), "leads", ["a"]),
    "people without an interval": (a_document(THREE, bias=(1.0, None, None)), "leads", ["a"]),
    "one candidate that people contradict": (a_document({"a": 5.0}, bias=(1, 0.5, 1.5)), "contradicted", ["a"]),
}  # fmt: skip


@pytest.mark.parametrize(("document", "code", "names"), CASES.values(), ids=CASES)
def test_nobody_leads_who_does_not(document, code, names):
    found = headline_of(document, "m")
    assert (found.code, found.candidates, found.value) == (code, names, "raw")


CORRECTED = {"a": 5.0, "b": 6.5, "c": 4.0}
CORRECTED_CASES = {
    "another order": (a_document(THREE, corrected=CORRECTED), "leads", ["b"], "corrected"),
    "raw values apart, corrected ones not": (
        a_document(THREE, corrected=CORRECTED, corrected_told=alike("a b")),
        "tied",
        ["b", "a"],
        "corrected",
    ),
    "not for everybody": (a_document(THREE, corrected={"a": 5.0, "b": 6.5}), "leads", ["a"], "raw"),
    "one refused": (a_document(THREE, corrected={**CORRECTED, "c": None}), "leads", ["a"], "raw"),
    "contradicted": (a_document(THREE, corrected=CORRECTED, bias=(1, 0.5, 1.5)), "contradicted", ["b"], "corrected"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("document", "code", "names", "value"), CORRECTED_CASES.values(), ids=CORRECTED_CASES
)
def test_corrected_values_decide_where_every_candidate_has_one(document, code, names, value):
    found = headline_of(document, "m")
    assert (found.code, found.candidates, found.value) == (code, names, value)


def test_a_table_shows_corrected_values_with_the_judge_s_beside_them():
    found = ranked(a_document(THREE, corrected=CORRECTED), "m")
    assert [(name, cell["mean"], cell["raw_mean"]) for name, cell in found.items()] == [
        ("b", 6.5, 6.0), ("a", 5.0, 7.0), ("c", 4.0, 4.0),
    ]  # fmt: skip


def test_two_judges_one_value_each_are_not_mixed():
    document = a_document(THREE, corrected={"a": 5.0, "b": 6.5})
    document["corrected"].append({**document["corrected"][0], "judge": "llama", "candidate": "c"})
    assert headline_of(document, "m").value == "raw"


def test_the_judge_s_mistake_is_people_less_the_judge():
    gap = headline_of(a_document(THREE, bias=(0.6, 0.2, 1.0)), "m").gap
    assert gap == Gap(mean=-0.6, low=-1.0, high=-0.2, items=40)


def test_an_overrated_leader_does_not_lead():
    judges = [against_people(0.0, -0.5, 0.5, a=(1.0, 0.5, 1.5), b=(-1.0, -1.5, -0.5))]
    found = headline_of(a_document(THREE, judges=judges), "m")
    assert (found.code, found.gap) == ("contradicted", Gap(-1.0, -1.5, -0.5, 20, "a"))


def test_of_averaged_judges_all_must_be_off_on_the_same_side():
    off, right = against_people(1, 0.5, 1.5), against_people(0.1, -0.5, 0.6, judge="llama")
    codes = [headline_of(a_document(THREE, judges=judges), "m").code for judges in ([off, right], [off, off])]
    assert codes == ["leads", "contradicted"]


def test_the_judges_combined_are_what_people_contradict():
    off, right = against_people(1, 0.5, 1.5), against_people(0.1, -0.5, 0.6, judge="combined")
    assert headline_of(a_document(THREE, judges=[off, right]), "m").code == "leads"


# —— comparisons


def compared(rates, differences, **more):
    """`differences`: {(higher, lower): whether they differ significantly}."""
    sides = {
        name: {"win_rate": rate, "ci_low": 0.3, "ci_high": 0.9, "comparisons": 10, "rating": None}
        for name, rate in rates.items()
    }
    tests = [{"a": a, "b": b, "higher": a, "distinguishable": told} for (a, b), told in differences.items()]
    side = {"metric": "m", "by": "people", "candidates": sides, "differences": tests, **more}
    return {"candidates": cells(dict.fromkeys(rates), "category"), "side_by_side": [side]}


@pytest.mark.parametrize(
    ("document", "code", "names"),
    [
        (compared({"a": 0.9, "b": 0.1}, {("a", "b"): True}), "leads", ["a"]),
        (compared({"a": 0.7, "b": 0.3}, {("a", "b"): False}), "tied", ["a", "b"]),
        (compared({"a": 0.5, "b": 0.5}, {("a", "b"): False}), "equal", ["a", "b"]),
        (
            compared({"a": 0.8, "b": 0.6, "c": 0.1}, {("a", "b"): None, ("a", "c"): True, ("b", "c"): True}),
            "tied",
            ["a", "b"],
        ),
        (compared({}, {}), "nothing", []),
    ],
)
def test_comparisons_are_told_apart_like_means(document, code, names):
    found = headline_of(document, "m")
    assert (found.code, found.candidates, found.by) == (code, names, "people")


def test_people_contradict_a_judge_that_compares():
    document = compared({"a": 0.9, "b": 0.1}, {("a", "b"): True}, by="qwen")
    assert headline_of(document | {"judges": [against_people(1, 0.5, 1.5)]}, "m").code == "contradicted"


def test_people_s_own_comparisons_contradict_nobody():
    document = compared({"a": 0.9, "b": 0.1}, {("a", "b"): True})
    assert headline_of(document | {"judges": [against_people(1, 0.5, 1.5)]}, "m").code == "leads"


def test_the_order_of_the_values_decides_who_is_named_first():
    assert standing_of({"b": 2.0, "a": 1.0}, {("b", "a")}) == ("leads", ["b"])
