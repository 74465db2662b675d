"""What lists say that a metric gives."""

from __future__ import annotations

from typing import Any

import pytest

from judging.templatetags.metrics import what_it_gives
from tests.judging.judged import JUDGE_URL
from tests.make import a_comparison, a_metric


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"gives": "score", "max_score": 10}, "Score 1–10"),
        ({"gives": "pass_fail"}, "Pass or fail"),
        ({"gives": "comparison", "max_score": 5}, "Comparison with the reference"),
        ({"rules": "# DSL\n@whole:exact_match\n@format:text"}, "Score 1–5"),
    ],
)
def test_only_scores_have_a_scale(changes: dict[str, Any], shown: str) -> None:
    assert what_it_gives(a_metric(JUDGE_URL, **{"max_score": 5, **changes})) == shown


def test_a_comparison_of_candidates_is_one() -> None:
    assert what_it_gives(a_comparison(JUDGE_URL)) == "Comparison of candidates"
