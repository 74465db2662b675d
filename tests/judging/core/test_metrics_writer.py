"""Metrics written to a file and read back are equivalent, whatever their texts contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.core.builtin import BUILTINS
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.core.metrics_file import read_metrics_file, write_metrics_file

NOWHERE = Path("/nonexistent")


def judge(**more: Any) -> JudgeModel:
    return JudgeModel(**{"name": "j", "url": "http://h/v1", "model": "m", "template": "t", **more})


def read_back(metric: MetricDefinition) -> MetricDefinition:
    (found,) = read_metrics_file(write_metrics_file([metric]), NOWHERE).metrics
    return found


FULL = MetricDefinition(
    name="correctness: 正确",
    min_score=-0.5,
    max_score=5,
    undefined="lenient",
    sandbox="item",
    scripts=(
        Script(kind="preprocess", source="def preprocess(data, resp):\n    return 1  \n\n"),
        Script(kind="postprocess", source="def postprocess(**kwargs): return 0", after=1),
        Script(kind="preprocess", source="def preprocess(data, resp): return 2", after=1),
        Script(kind="postprocess", source="\tdef postprocess(**kwargs): return None", after=3),
    ),
    judges=(
        judge(
            api_key_env="JUDGE_KEY",
            system_prompt="Be strict.\nAlways.",
            params={"temperature": 0, "stop": ["no", "1e-3", "2024-01-01"], "top_p": 1e-7, "seed": None},
            parse="comparison",
            repeats=3,
            both_orders=True,
        ),
        judge(name="second", parse={"regex": r"(\d+)\s分"}),
        judge(name="third", parse={"json_path": "a.b"}),
    ),
)


def test_what_is_written_is_read_as_it_was() -> None:
    assert read_back(FULL) == FULL


@pytest.mark.parametrize("judges", [(), (JudgeModel(name="j", url="http://h/v1", model="m", template=""),)])
def test_rules_are_written_with_their_judge_model(judges: tuple[JudgeModel, ...]) -> None:
    rules = "# DSL\n主题:精确匹配\n@格式限制:JSON\n"
    metric = MetricDefinition(name="字段", max_score=5, rules=rules, judges=judges)
    assert read_back(metric) == metric


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_a_built_in_template_is_written_whole(name: str) -> None:
    metric = MetricDefinition(name="m", judges=(judge(template=BUILTINS[name].source),))
    assert read_back(metric) == metric


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip))
def test_any_text_comes_back_unchanged(text: str) -> None:
    metric = MetricDefinition(name="m", judges=(judge(template=text, system_prompt=text),))
    assert read_back(metric) == metric


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.floats(-1e9, 1e9) | st.booleans())
)
def test_any_parameters_come_back_as_they_were(params: dict[str, Any]) -> None:
    metric = MetricDefinition(name="m", judges=(judge(params=params),))
    assert read_back(metric) == metric


def test_several_metrics_are_in_one_file() -> None:
    two = [MetricDefinition(name=name, judges=(judge(),)) for name in "ab"]
    file = read_metrics_file(write_metrics_file(two), NOWHERE)
    assert list(file.metrics) == two


def test_a_template_of_several_lines_can_be_read_by_people() -> None:
    written = write_metrics_file(
        [MetricDefinition(name="m", judges=(judge(template="评分\n{{ data.question }}"),))]
    )
    assert "judge_template_content: |-\n          评分\n          {{ data.question }}\n" in written


def test_a_key_that_is_kept_elsewhere_is_left_to_the_reader() -> None:
    written = write_metrics_file([MetricDefinition(name="m", judges=(judge(),))])
    assert written.startswith("# Keys are never written.")


def test_where_every_judge_names_its_variable_there_is_nothing_to_leave() -> None:
    metric = MetricDefinition(name="m", judges=(judge(api_key_env="JUDGE_KEY"),))
    assert write_metrics_file([metric]).startswith("- metrics:")


def test_a_template_that_looks_like_the_mark_of_a_key_stays() -> None:
    metric = MetricDefinition(name="m", judges=(judge(template="a\napi_key_env: K\nb", api_key_env="K"),))
    assert read_back(metric) == metric
