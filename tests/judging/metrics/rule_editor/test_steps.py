"""The steps of a rule metric in its editor: scripts before and after the program, in any number."""

from __future__ import annotations

import re

import pytest
from django.http import QueryDict

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.metric_definition import MetricDefinition, Script
from judging.metrics.editor.step_forms import ORDER, step_order, with_step_change
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from tests.conftest import ClientOf

PROGRAM = "# DSL\n标签:精确匹配\n@聚合方式:min\n@格式限制:JSON\n"
FIRST, SECOND, AFTER = (
    "def preprocess(data, resp):\n    return 1\n",
    "def preprocess(data, resp, results):\n    return results[0] + 1\n",
    "def postprocess(data, resp, results, **kwargs):\n    return results[1] + 1\n",
)
CHAIN = MetricDefinition(
    name="fields",
    max_score=5,
    rules=PROGRAM,
    scripts=(
        Script(kind="preprocess", source=FIRST),
        Script(kind="preprocess", source=SECOND),
        Script(kind="postprocess", source=AFTER, after=1),
    ),
)


@pytest.fixture
def chain(project: Project, alice: User) -> Metric:
    return metric_create(project=project, definition=CHAIN, user=alice)


def typed(change: str, *order: str) -> QueryDict:
    sent = QueryDict(mutable=True)
    sent["change"] = change
    sent.setlist(ORDER, list(order))
    return sent


def typed_chain(metric: Metric, order: list[str], **changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "metric": metric.pk,
        "began": 1,
        "seen": 1,
        "name": "fields",
        "rules": PROGRAM,
    }
    fields |= {"preprocess": FIRST, "postprocess": AFTER, "judge_order": order}
    return fields | {"script-1-kind": "preprocess", "script-1-source": SECOND} | changes


def test_the_program_is_a_step_among_the_scripts() -> None:
    assert step_order(None, CHAIN) == ["s1", "rules"]


@pytest.mark.parametrize(
    ("change", "order"),
    [
        ("step:preprocess", ["s1", "s3", "rules"]),
        ("step:postprocess", ["s1", "rules", "s3"]),
        ("down:s1", ["rules", "s1"]),
        ("down:preprocess", ["s1", "s3", "rules"]),
        ("up:postprocess", ["s1", "s3", "rules"]),
        ("remove:s1", ["rules"]),
        ("remove:rules", ["s1", "rules"]),
        ("add", ["s1", "rules"]),
    ],
)
def test_scripts_are_added_and_moved_around_the_program(change: str, order: list[str]) -> None:
    assert with_step_change(typed(change, "s1", "rules"), CHAIN).getlist(ORDER) == order


def test_a_program_has_no_judge_models_among_its_steps() -> None:
    assert step_order(typed("", "0", "s1", "rules", "1"), CHAIN) == ["s1", "rules"]


def test_the_editor_shows_and_keeps_every_script(client_of: ClientOf, alice: User, chain: Metric) -> None:
    address = f"/p/physics/metrics/{chain.pk}/"
    page = client_of(alice).get(address)
    assert re.findall(r'name="judge_order" value="(\w+)"', page.text) == ["s1", "rules"]
    unchanged = client_of(alice).post(address, typed_chain(chain, ["s1", "rules"]), follow=True)
    assert "no new version was saved" in unchanged.text
    client_of(alice).post(address, typed_chain(chain, ["rules", "s1"]))
    definition = MetricDefinition.from_json(newest_version(chain).definition)
    assert [(script.source, script.after) for script in definition.scripts] == [
        (FIRST, 0),
        (SECOND, 1),
        (AFTER, 1),
    ]


def test_a_script_that_does_not_load_is_not_saved(client_of: ClientOf, alice: User, chain: Metric) -> None:
    sent = typed_chain(chain, ["s1", "rules"], **{"script-1-source": "def preprocess(:\n"})
    page = client_of(alice).post(f"/p/physics/metrics/{chain.pk}/", sent)
    assert (page.status_code, newest_version(chain).number) == (422, 1)
    assert "A script among the steps has an error." in page.text
    assert "def preprocess(:" in page.text


def test_each_script_shows_its_result_on_the_sample_row(
    client_of: ClientOf, alice: User, chain: Metric, labels: Version
) -> None:
    sent = typed_chain(chain, ["s1", "rules"])
    page = client_of(alice).post("/p/physics/metrics/rules/preview/", sent)
    for field, result in (("preprocess", "1"), ("script-1-source", "2"), ("postprocess", "3")):
        part = page.text.split(f'id="{field}-run"', 1)[1].split("</dl>", 1)[0]
        assert f'<dd class="mono">{result}</dd>' in part
