"""Metrics of a project in its own gallery: their columns are found and can be others."""

from __future__ import annotations

import pytest

from judging.core.gallery.columns import columns_named, with_chosen_parts
from judging.core.gallery.own import OwnCard, own_card
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script

TEMPLATE = "{{ data.question }} {{ data.passages | tojson }} {{ data['标准 答案'] }} {{ response.content }}"
SCRIPT = "def preprocess(data, resp, **kwargs):\n    return data['topic'] == data.get('other') or data.get('passages')"


def metric(template: str = TEMPLATE, script: str = "") -> MetricDefinition:
    scripts = (Script(kind="preprocess", source=script),) if script else ()
    return MetricDefinition(name="Own", judges=(JudgeModel(name="j", template=template),), scripts=scripts)


def card(definition: MetricDefinition) -> OwnCard:
    return own_card("own-1", definition, "Own")


@pytest.mark.parametrize(
    ("definition", "columns"),
    [
        (metric(), ["passages", "标准 答案"]),
        (metric("{{ data.question }}{{ data.messages }}{{ metadata.x }}"), []),
        (metric("", SCRIPT), ["topic", "other", "passages"]),
    ],
)
def test_its_columns_are_those_that_it_names(definition: MetricDefinition, columns: list[str]) -> None:
    assert columns_named(definition) == columns


def test_other_columns_take_their_places() -> None:
    changed = card(metric(TEMPLATE, SCRIPT)).definition(
        "en", {"passages": "docs", "标准 答案": "gold", "topic": "a b"}
    )
    assert changed.judges[0].template == (
        "{{ data.question }} {{ data.docs | tojson }} {{ data['gold'] }} {{ response.content }}"
    )
    assert "data['a b'] == data.get('other') or data.get('docs')" in changed.scripts[0].source


def test_the_same_columns_leave_it_as_it_was() -> None:
    own = card(metric())
    assert own.definition("en", {"passages": "passages", "标准 答案": ""}) == own.source


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [({"guide": "g"}, "1 {{ data.guide }} 2"), ({"guide": ""}, "1 Polite. 2"), ({}, "1 Polite. 2")],
)
def test_a_part_for_rows_with_a_column_is_kept_or_replaced(mapping: dict[str, str], expected: str) -> None:
    part = "1 {% if data.guide is defined -%}\n{{ data.guide }}\n{%- else -%}\nPolite.\n{%- endif %} 2"
    assert with_chosen_parts(part, mapping) == expected


def test_a_part_without_another_is_left_out() -> None:
    template = "{% if data.tools is defined -%}\n{{ data.tools }}\n\n{% endif -%}\n{% if data.history -%}h{% endif -%}"
    assert with_chosen_parts(template, {}) == "{% if data.history -%}h{% endif -%}"
