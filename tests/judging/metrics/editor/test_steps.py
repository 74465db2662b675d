"""The editor's chain: judge models and scripts in any order, added, moved and removed; nothing typed is lost."""

from __future__ import annotations

import re

import pytest
from django.http import QueryDict

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.endpoints.models import Endpoint
from judging.metrics.editor.forms import typed_definition
from judging.metrics.editor.step_forms import ORDER, step_order, with_step_change
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import form_of

JUDGES = (JudgeModel(name="a", template="t"), JudgeModel(name="b", template="t"))
CLAIMS = "def preprocess(data, resp, judge_resps):\n    data.claims = judge_resps[-1].content\n    return 3\n"
BEFORE, LAST = "def preprocess(data, resp):\n    return 1\n", "def postprocess(**kwargs):\n    return 2\n"
CHAIN = MetricDefinition(
    name="chain",
    gives="score",
    judges=JUDGES,
    scripts=(
        Script(kind="preprocess", source=BEFORE),
        Script(kind="preprocess", source=CLAIMS, after=1),
        Script(kind="postprocess", source=LAST, after=2),
    ),
)


def typed(**fields: str | list[str]) -> QueryDict:
    sent = QueryDict(mutable=True)
    for name, value in {"judges": "1", **fields}.items():
        sent.setlist(name, [value] if isinstance(value, str) else value)
    return sent


def test_scripts_at_the_ends_have_fields_of_their_own() -> None:
    assert step_order(None, CHAIN) == ["0", "s1", "1"]


@pytest.mark.parametrize(
    ("change", "order"),
    [
        ("up:s1", ["s1", "0", "1"]),
        ("down:s1", ["0", "1", "s1"]),
        ("remove:s1", ["0", "1"]),
        ("up:0", ["0", "s1", "1"]),
        ("add", ["0", "s1", "1", "2"]),
        ("copy:0", ["0", "2", "s1", "1"]),
        ("step:postprocess", ["0", "s1", "1", "s3"]),
        ("down:preprocess", ["0", "s3", "s1", "1"]),
        ("up:postprocess", ["0", "s1", "s3", "1"]),
        ("up:s77", ["0", "s1", "1"]),
    ],
)
def test_a_button_moves_adds_or_removes_a_step(change: str, order: list[str]) -> None:
    sent = typed(change=change, **{ORDER: ["0", "s1", "1"]})
    assert with_step_change(sent, CHAIN).getlist(ORDER) == order


def test_a_script_that_is_moved_from_an_end_takes_its_text_along() -> None:
    sent = typed(change="down:preprocess", preprocess="mine", **{ORDER: ["0", "1"]})
    changed = with_step_change(sent, CHAIN)
    assert (changed["preprocess"], changed["script-3-source"], changed["script-3-kind"]) == (
        "",
        "mine",
        "preprocess",
    )


def test_the_typed_chain_is_the_definition_and_blank_scripts_are_no_steps() -> None:
    sent = typed(postprocess="", **{ORDER: ["0", "1", "s1", "s5"], "script-5-source": " \n"})
    scripts = typed_definition(sent, CHAIN).scripts
    assert [(script.source, script.after) for script in scripts] == [(BEFORE, 0), (CLAIMS, 2)]


@pytest.fixture
def chain(project: Project, live: Endpoint, alice: User) -> Metric:
    judges = [JudgeModel(name=name, endpoint=live.pk, template="{{ data.claims }}") for name in "ab"]
    definition = MetricDefinition(name="Chain", gives="score", judges=tuple(judges), scripts=CHAIN.scripts)
    return metric_create(project=project, definition=definition, user=alice)


def form_of_chain(metric: Metric, order: list[str], **changes: object) -> dict[str, object]:
    fields = form_of(metric, judges="1", judge_order=order, preprocess=BEFORE, postprocess=LAST)
    fields |= {"script-1-kind": "preprocess", "script-1-source": CLAIMS}
    for number, name in enumerate("ab"):
        fields |= {f"judge-{number}-name": name, f"judge-{number}-repeats": 1}
    return fields | changes


def page_of(metric: Metric) -> str:
    return f"/p/physics/metrics/{metric.pk}/"


def test_a_saved_chain_is_shown_and_saving_it_as_it_is_changes_nothing(
    client_of: ClientOf, alice: User, chain: Metric
) -> None:
    page = client_of(alice).get(page_of(chain))
    assert re.findall(r'name="judge_order" value="(\w+)"', page.text) == ["0", "s1", "1"]
    saved = client_of(alice).post(page_of(chain), form_of_chain(chain, ["0", "s1", "1"]), follow=True)
    assert "no new version was saved" in saved.text


def test_moving_a_step_keeps_what_was_typed_and_saves_nothing(
    client_of: ClientOf, alice: User, chain: Metric
) -> None:
    sent = form_of_chain(chain, ["0", "s1", "1"], change="up:s1", **{"script-1-source": "typed so far"})
    page = client_of(alice).post(page_of(chain), sent)
    assert re.findall(r'name="judge_order" value="(\w+)"', page.text) == ["s1", "0", "1"]
    assert "typed so far</textarea>" in page.text
    assert newest_version(chain).number == 1


def test_a_moved_script_is_saved_where_it_stands(client_of: ClientOf, alice: User, chain: Metric) -> None:
    client_of(alice).post(page_of(chain), form_of_chain(chain, ["0", "1", "s1"]))
    definition = MetricDefinition.from_json(newest_version(chain).definition)
    assert [script.after for script in definition.scripts] == [0, 2, 2]


def test_a_script_among_the_judges_that_does_not_load_is_not_saved(
    client_of: ClientOf, alice: User, chain: Metric
) -> None:
    sent = form_of_chain(chain, ["0", "s1", "1"], **{"script-1-source": "def preprocess(:\n"})
    page = client_of(alice).post(page_of(chain), sent)
    assert (page.status_code, newest_version(chain).number) == (422, 1)
    assert "line 1" in page.text


def test_each_script_shows_its_own_result_on_the_sample_row(
    client_of: ClientOf, alice: User, chain: Metric, version: Version
) -> None:
    sent = form_of_chain(chain, ["0", "s1", "1"], sample_reply="so so")
    page = client_of(alice).post("/p/physics/metrics/preview/", sent, headers={"HX-Request": "true"})
    for field, result in (("preprocess", "1"), ("script-1-source", "3"), ("postprocess", "2")):
        part = page.text.split(f'id="{field}-run"', 1)[1].split("</dl>", 1)[0]
        assert f'<dd class="mono">{result}</dd>' in part
    assert "so so" in page.text.split('id="script-1-source-run"', 1)[1].split("</dl>", 1)[0]
