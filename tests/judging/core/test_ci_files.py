"""The files for continuous integration."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from judging.core.ci_files import MARK, Item, Results, junit_xml, standing, summary_md
from judging.core.requirements import MET, NOT_MET, Decision

CELL = {"kind": "number", "mean": 7.5, "ci_low": 7.0, "ci_high": 8.0}
DOCUMENT = {"run": "nightly", "candidates": {"alpha": {"quality": CELL}}, "side_by_side": []}
CHANGE = {"difference": -0.5, "ci_low": -0.9, "ci_high": -0.1}
FAILED = Item(41, "right", "alpha", 3, "https://evalsite.example/p/demo/runs/1/judgements/41/")


def results(**more: Any) -> Results:
    return Results(**{"document": DOCUMENT, "address": "/p/demo", "requirements": (), "failed": ()} | more)


def cases(**more: Any) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(junit_xml(results(**more))).iter("testcase"))


def test_each_requirement_is_a_case_and_fails_if_it_is_not_met() -> None:
    decisions = [("a q >= 1", Decision(MET, "Met: a.")), ("a q >= 9", Decision(NOT_MET, "Not met: a."))]
    met, not_met = cases(requirements=decisions)
    assert (met.get("name"), len(met)) == ("a q >= 1", 0)
    assert not_met[0].get("message") == "Not met: a."


def test_each_failed_item_is_a_case_with_its_address() -> None:
    (case,) = cases(failed=[FAILED])
    assert (case.get("classname"), case.get("name")) == ("right", "alpha, line 3 (judgement 41)")
    assert case[0].text == FAILED.address


def test_only_the_first_fifty_failed_items_are_cases() -> None:
    assert len(cases(failed=[FAILED] * 60)) == 50


def test_characters_that_xml_forbids_are_replaced() -> None:
    (case,) = cases(failed=[Item(1, "right\x00", "<alpha>", 1, "/")])
    assert (case.get("classname"), case.get("name")) == ("right�", "<alpha>, line 1 (judgement 1)")


def test_the_summary_shows_value_and_interval() -> None:
    text = summary_md(results())
    assert text.startswith(MARK)
    assert "| quality | alpha | 7.500 | 7.000 to 8.000 |" in text


def test_the_summary_shows_the_difference_to_the_baseline_and_what_got_worse() -> None:
    text = summary_md(results(baseline="main", changes={"quality": {"alpha": CHANGE}}, worse=[FAILED]))
    assert "| −0.500 | −0.900 to −0.100 | lower |" in text
    assert f"[alpha, line 3 \\(judgement 41\\)]({FAILED.address}), right" in text


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.1, 0.2, "higher"), (-0.2, -0.1, "lower"), (-0.1, 0.2, "cannot tell"), (None, None, "cannot tell")],
)
def test_a_difference_is_only_claimed_where_its_interval_excludes_zero(
    low: float | None, high: float | None, word: str
) -> None:
    assert standing(low, high) == word


def test_names_cannot_break_the_table_or_mention_people() -> None:
    document = {**DOCUMENT, "candidates": {"a|b\n@team": {"quality": CELL}}}
    assert "| a\\|b \\@team |" in summary_md(results(document=document))


def test_a_share_is_shown_in_percent() -> None:
    cell = {"kind": "bool", "mean": 0.5, "ci_low": 0.25, "ci_high": 0.75}
    document = {**DOCUMENT, "candidates": {"alpha": {"right": cell}}}
    assert "| 50.0 % | 25.0 % to 75.0 % |" in summary_md(results(document=document))
