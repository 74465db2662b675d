"""Metrics of a project in its own gallery: their columns are found and can be others."""

from __future__ import annotations

import pytest

from judging.core.gallery import InLanguages
from judging.core.gallery.own import OwnCard, columns_named
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script

TEMPLATE = "{{ data.question }} {{ data.passages | tojson }} {{ data['标准 答案'] }} {{ response.content }}"
SCRIPT = "def preprocess(data, resp, **kwargs):\n    return data['topic'] == data.get('other') or data.get('passages')"


def metric(template: str = TEMPLATE, script: str = "") -> MetricDefinition:
    scripts = (Script(kind="preprocess", source=script),) if script else ()
    return MetricDefinition(name="Own", judges=(JudgeModel(name="j", template=template),), scripts=scripts)


def card(definition: MetricDefinition) -> OwnCard:
    text = InLanguages(en="Own", zh="Own")
    columns = columns_named(definition)
    return OwnCard(
        id="own-1",
        task="general",
        gives="score",
        name=text,
        sentence=text,
        source=definition,
        columns=columns,
    )


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
