"""The editor's draft, changed from elsewhere."""

from __future__ import annotations

import msgspec
import pytest
from django.http import QueryDict

from evalsite.accounts.drafts import draft_save, stored_draft
from evalsite.accounts.models import Project, User
from judging.core.metric_definition import JudgeModel, Label, MetricDefinition, Script
from judging.endpoints.models import Endpoint
from judging.metrics.editor.forms import metric_forms
from judging.metrics.editor.prompt_draft import drafted_prompts, form_data, template_draft
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create

pytestmark = pytest.mark.django_db
JUDGE = JudgeModel(name="Live", template="A: {{ response.content }}", params={"temperature": 0}, repeats=3)
BEFORE = Script(kind="preprocess", source="def preprocess(data, resp):\n    return data, resp\n")
BETWEEN = Script(
    kind="postprocess",
    source="def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):\n    return {}\n",
    after=1,
)


@pytest.mark.parametrize(
    "change",
    [
        {"gives": "pass_fail"},
        {"gives": "score", "min_score": 0.5, "max_score": 2.5, "step": 0.5},
        {"gives": "category", "labels": (Label(label="a", description="first", value=1.0), Label(label="b"))},
        {"gives": "pass_fail", "scripts": (BEFORE, BETWEEN), "judges": 2, "jury": "majority", "quorum": 2},
    ],
    ids=["pass_fail", "score", "category", "steps"],
)
def test_the_form_of_a_version_gives_the_same_definition(
    project: Project, live: Endpoint, change: dict[str, object]
) -> None:
    judge = msgspec.structs.replace(JUDGE, endpoint=live.pk)
    values = {"name": "Q", **change, "judges": (judge,) * int(str(change.get("judges", 1)))}
    definition = MetricDefinition(**values)  # type: ignore[arg-type]
    metric = metric_create(project=project, definition=definition, user=None)
    forms = metric_forms(form_data(metric, newest_version(metric)), project, definition)
    assert forms.is_valid()
    assert forms.result() == definition


def test_a_change_starts_a_draft_and_goes_on_with_it(metric: Metric, alice: User) -> None:
    assert template_draft(metric=metric, user=alice, change=lambda template: f"{template} 1")
    assert template_draft(metric=metric, user=alice, change=lambda template: f"{template} 2")
    ((_name, template),) = drafted_prompts(metric=metric, user=alice)
    assert template.endswith("{{ response.content }} 1 2")


def test_a_draft_keeps_what_else_was_typed(metric: Metric, alice: User) -> None:
    typed = form_data(metric, newest_version(metric))
    typed["name"] = "New name"
    draft_save(user=alice, project=metric.project, form="metric", key=str(metric.pk), typed=typed)
    template_draft(metric=metric, user=alice, change=lambda template: f"{template} 1")
    stored = stored_draft(alice, metric.project, "metric", str(metric.pk))
    assert stored is not None
    assert stored["name"] == "New name"


def test_without_a_judge_model_or_a_change_there_is_no_draft(metric: Metric, alice: User) -> None:
    assert not template_draft(metric=metric, user=alice, change=lambda template: template)
    assert stored_draft(alice, metric.project, "metric", str(metric.pk)) is None
    draft_save(
        user=alice, project=metric.project, form="metric", key=str(metric.pk), typed=QueryDict("judges=1")
    )
    assert not template_draft(metric=metric, user=alice, change=lambda template: f"{template} 1")


def test_a_drafted_prompt_has_the_name_that_was_typed(metric: Metric, alice: User) -> None:
    """Not that of the judge at its place in the newest version."""
    typed = form_data(metric, newest_version(metric))
    (field,) = [name for name in typed if name.startswith("judge-") and name.endswith("-name")]
    typed[field] = "Stricter"
    draft_save(user=alice, project=metric.project, form="metric", key=str(metric.pk), typed=typed)
    assert [name for name, _template in drafted_prompts(metric=metric, user=alice)] == ["Stricter"]
