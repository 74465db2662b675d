"""What a metric gives, in the metrics file: every kind is read, checked and written back."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.core.metric_definition import Label, MetricDefinition
from judging.core.metrics_file import MetricsFileError, read_metrics_file, write_metrics_file

NOWHERE = Path("/nonexistent")
FAITHFUL = (
    "{category: [{label: faithful, description: All is in the text, value: 1}, {label: made up, value: 0.5}]}"
)


def text(
    kind: str = "", judge: str = "", template: str = "judge_template_content: t", steps: str = ""
) -> str:
    model = f"{{name: j, url: 'http://h/v1', model: m, {template}{judge}}}"
    return (
        f"metrics:\n- name: one\n{kind}  pipeline:\n  - {{type: JUDGE_MODEL, judge_model: {model}}}\n{steps}"
    )


def read(*parts: str, **more: str) -> MetricDefinition:
    return read_metrics_file(text(*parts, **more), NOWHERE).metrics[0]


def problems(*parts: str, **more: str) -> list[tuple[int, str]]:
    with pytest.raises(MetricsFileError) as caught:
        read(*parts, **more)
    return [(problem.line, problem.code) for problem in caught.value.problems]


SCRIPT = "  - {type: POSTPROCESS, file_content: 'def postprocess(**k): return True'}\n"


@pytest.mark.parametrize("code", ["pass_fail", "score"])
def test_a_kind_is_named_by_its_code(code: str) -> None:
    metric = read(f"  gives: {code}\n")
    assert (metric.gives, metric.kind, metric.structured) == (code, code, "auto")


def test_a_category_has_labels_with_descriptions_and_values() -> None:
    faithful = Label(label="faithful", description="All is in the text", value=1)
    assert read(f"  gives: {FAITHFUL}\n").labels == (faithful, Label(label="made up", value=0.5))


def test_a_comparison_with_the_reference_becomes_scores_to_five() -> None:
    metric = read("  gives: {comparison: reference}\n", ", both_orders: true")
    assert (metric.gives, metric.compares, metric.max_score) == ("comparison", "reference", 5)
    assert metric.judges[0].parse == "comparison"  # where the editor looks whether both orders may be asked


def test_a_file_that_says_no_kind_keeps_its_meaning() -> None:
    metric, comparing = read(), read("", ", parse: comparison")
    assert (metric.gives, metric.kind, metric.structured, metric.ask_again) == ("", "score", "off", 0)
    assert (comparing.gives, comparing.kind) == ("", "comparison")
    assert read(steps=SCRIPT).kind == ""


def test_asking_is_said_for_the_metric_or_its_judges() -> None:
    for metric in (read("  structured: on\n  ask_again: 2\n"), read("", ", structured: on, ask_again: 2")):
        assert (metric.structured, metric.ask_again) == ("on", 2)


@pytest.mark.parametrize(
    ("kind", "judge", "expected"),
    [
        ("  gives: passfail\n", "", [(3, "not_an_option")]),
        ("  gives: comparison\n", "", [(3, "not_an_option")]),
        ("  gives: {comparison: others}\n", "", [(3, "not_an_option")]),
        ("  gives: {}\n", "", [(3, "not_an_option")]),
        ("  gives: {category: [{label: a}]}\n", "", [(3, "no_labels")]),
        ("  gives: {category: [{label: a-b}, {label: A B}]}\n", "", [(3, "duplicate_label")]),
        ("  gives: {category: [{label: a}, {name: b}]}\n", "", [(3, "unknown_key"), (3, "missing_key")]),
        ("  gives: pass_fail\n  whole: true\n", "", [(4, "key_of_other_kind")]),
        ("  gives: pass_fail\n  jury: mean\n", "", [(4, "jury_of_scores")]),
        ("  gives: pass_fail\n", ", parse: score", [(5, "parse_of_other_kind")]),
        ("  gives: pass_fail\n", ", both_orders: true", [(5, "both_orders_without_comparison")]),
        ("  step: 0.5\n  whole: true\n", "", [(3, "step_not_whole")]),
        ("  step: 20\n", "", [(3, "bad_step")]),
        ("  three_steps: true\n", "", [(3, "key_of_other_kind")]),
        ("  structured: 'off'\n", ", structured: on", [(5, "settings_differ")]),
        ("  ask_again: 3\n", "", [(3, "not_a_whole_number")]),
    ],
)
def test_nonsense_is_refused_with_its_line(kind: str, judge: str, expected: list[tuple[int, str]]) -> None:
    assert problems(kind, judge) == expected


def test_a_built_in_template_of_another_kind_is_refused_unless_a_script_follows() -> None:
    template = "builtin: single_turn_score.en"
    assert problems("  gives: pass_fail\n", template=template) == [(5, "parse_of_other_kind")]
    assert read("  gives: pass_fail\n", template=template, steps=SCRIPT).gives == "pass_fail"


@pytest.mark.parametrize(
    "kind",
    [
        "  gives: pass_fail\n  ask_again: 1\n",
        "  gives: score\n  max_score: 5\n  whole: true\n  step: 2\n",
        f"  gives: {FAITHFUL}\n  structured: 'off'\n",
        "  gives: {comparison: reference}\n",
        "  step: 0.5\n",
    ],
)
def test_a_kind_is_written_and_read_back(kind: str) -> None:
    metric = read(kind)
    assert read_metrics_file(write_metrics_file([metric]), NOWHERE).metrics == (metric,)
