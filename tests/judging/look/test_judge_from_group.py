"""A judge written for a group starts from its definition and notes; saving it stores labels for training."""

from __future__ import annotations

import json
import re
from html import unescape

import jinja2
import pytest
from django.test import Client

from datasets.models import Response
from evalsite.accounts.models import Project, User
from judging.core.builtin import builtin
from judging.look.groups import group_create
from judging.look.judge_from_group import Example, as_text, examples_of, template_of
from judging.look.models import NoteGroup, SetAside, TrainLabel
from judging.look.results import LookResult
from judging.metrics.editor.starting_points import definition_of, metric_saved
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import metric_create
from tests.conftest import ClientOf
from tests.judging.look.make import a_look, noted

EXAMPLES = [Example("When?", "In 1802.", "It was {{ 1803 }}.")]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("turns", ["single", "multi"])
def test_the_template_judges_the_fault_alone(turns: str, language: str) -> None:
    source = builtin(f"{turns}_turn_pass_fail.{language}").source
    template = template_of(source, language, "Wrong date", "A date is wrong.", EXAMPLES)
    prompt = jinja2.Template(template).render(
        data={"question": "Q?", "history": ""}, response={"content": "A!"}, answer_format="Say so."
    )
    for part in ("Wrong date", "A date is wrong.", "It was {{ 1803 }}.", "Q?", "A!", "Say so."):
        assert part in prompt


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("turns", ["single", "multi"])
def test_the_template_shows_references_where_the_rows_have_some(turns: str, language: str) -> None:
    source, referring = (
        builtin(f"{turns}_turn_{kind}.{language}").source for kind in ("pass_fail", "reference")
    )
    example = Example("When?", "In 1802.", "It was later.", "In {{ 1803 }}.")
    template = template_of(source, language, "Wrong date", "", [example], referring)

    def prompt(reference: str | None) -> str:
        data = {"question": "Q?", "history": "", "gt": None, "ref_answer": reference}
        answer = {"content": "A!"}
        return jinja2.Template(template).render(data=data, response=answer, answer_format="Say so.")

    assert prompt("In 1803, surely.").index("In 1803, surely.") < prompt("In 1803, surely.").index("A!")
    assert "In {{ 1803 }}." in prompt(None)
    assert "None" not in prompt(None)


@pytest.mark.parametrize("text", ["{{ x }}", "{% if %}", "{# no #}", "{{{", "a {b} c", "{%- raw -%}{{"])
def test_texts_of_people_and_models_are_printed_as_they_are(text: str) -> None:
    assert jinja2.Template(as_text(text)).render() == text


@pytest.fixture
def group(project: Project, alice: User) -> NoteGroup:
    look = a_look(project, alice)
    inside = noted(look, alice, 1, "the date is wrong")
    noted(look, alice, 2, "rude")
    noted(look, alice, 3, "", passed=True)
    return group_create(look=look, user=alice, name="Wrong date", definition="Says when.", notes=[inside.pk])


def test_an_example_that_a_row_set_aside_repeats_is_left_out(group: NoteGroup) -> None:
    """A prompt with it would be refused once a test holds that row."""
    note = group.notes.get()
    said = {"content": "As I said before, I cannot tell you anything about the year of that bridge."}
    aside = SetAside.objects.get(version=group.look.version).rows[0]
    examples = examples_of(LookResult(group.look).groups[0])
    assert [example.note for example in examples] == [note.text]
    Response.objects.filter(row__in=[aside, note.answer.row_id]).update(raw=json.dumps(said))
    assert examples_of(LookResult(group.look).groups[0]) == []


@pytest.fixture
def editor(group: NoteGroup, alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def test_the_editor_opens_with_the_groups_definition_and_notes(editor: Client, group: NoteGroup) -> None:
    page = editor.get(f"/p/physics/metrics/new/?start=group:{group.pk}").content.decode()
    for text in ("Wrong date", "Says when.", "the date is wrong"):
        assert text in page
    assert "rude" not in page


def test_the_preview_is_of_the_data_that_was_looked_at(
    editor: Client, group: NoteGroup, project: Project, alice: User
) -> None:
    newer = a_look(project, alice).version
    groups = editor.get(f"/p/physics/look/{group.look_id}/groups/").content.decode()
    (link,) = re.findall(rf'href="([^"]*start=group:{group.pk}[^"]*)"', groups)
    page = editor.get(unescape(link)).content.decode()
    assert f'<option value="{group.look.version_id}" selected' in page
    assert f'<option value="{newer.pk}" selected' not in page


def saved(group: NoteGroup, user: User) -> Metric:
    """The metric that is saved as the editor proposes it."""
    project = group.look.project
    definition = definition_of(project, f"group:{group.pk}")
    assert definition is not None
    metric = metric_create(project=project, definition=definition, user=user)
    assert "training labels" in metric_saved(project, f"group:{group.pk}", metric, user)
    return metric


def test_saving_stores_fail_for_the_group_and_pass_for_the_rest(group: NoteGroup, alice: User) -> None:
    metric = saved(group, alice)
    labels = TrainLabel.objects.filter(metric=metric).order_by("passed", "pk")
    assert [(label.passed, label.note) for label in labels] == [
        (False, "the date is wrong"),
        (True, ""),
        (True, ""),
    ]


def test_rows_set_aside_are_no_labels(group: NoteGroup, alice: User) -> None:
    SetAside.objects.update(rows=[group.look.answers.get(place=2).row_id])
    saved(group, alice)
    assert TrainLabel.objects.count() == 2


def test_other_metrics_store_no_labels(editor: Client, group: NoteGroup) -> None:
    page = editor.get("/p/physics/metrics/new/?start=group:999999")
    assert page.status_code == 200
    assert "the date is wrong" not in page.content.decode()
    assert not TrainLabel.objects.exists()
    assert not MetricVersion.objects.exists()


def test_a_look_of_another_project_is_no_starting_point(
    group: NoteGroup, charlie: User, client_of: ClientOf
) -> None:
    slug = charlie.memberships.get().project.slug
    page = client_of(charlie).get(f"/p/{slug}/metrics/new/?start=group:{group.pk}").content.decode()
    assert "the date is wrong" not in page


def test_the_starting_definition_gives_pass_or_fail(group: NoteGroup, project: Project) -> None:
    definition = definition_of(project, f"group:{group.pk}")
    assert definition is not None
    assert (definition.name, definition.gives) == ("Wrong date", "pass_fail")
