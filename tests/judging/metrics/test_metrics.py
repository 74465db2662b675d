"""Metrics: written from a template, edited as new versions, copied, archived, and never lost to another's edit."""

from __future__ import annotations

from html import unescape

import pytest

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.builtin import BUILTINS
from judging.core.pipeline import JudgeModel, MetricDefinition
from judging.metrics.models import Endpoint, Metric, MetricVersion
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import form_of

METRICS = "/p/physics/metrics/"


def page_of(metric: Metric, what: str = "") -> str:
    return f"{METRICS}{metric.pk}/{what}"


def definition_of(metric: Metric) -> MetricDefinition:
    return MetricDefinition.from_json(newest_version(metric).definition)


@pytest.mark.parametrize(
    ("name", "status"),
    [("alice", 200), ("adam", 200), ("olga", 200), ("bob", 403), ("rita", 403), ("charlie", 404)],
)
@pytest.mark.parametrize("what", ["", "new/", "new/?start=", "1/", "1/versions/", "1/versions/1/"])
def test_metrics_are_the_analysts(
    what: str, name: str, status: int, cast: dict[str, User], client_of: ClientOf, metric: Metric
) -> None:
    what = what.replace("1/", f"{metric.pk}/", 1)
    assert client_of(cast[name]).get(METRICS + what).status_code == status


@pytest.mark.parametrize(
    "what", ["1/copy/", "1/archive/", "1/restore/", "1/versions/1/restore/", "preview/", "try/"]
)
@pytest.mark.parametrize(("name", "status"), [("bob", 403), ("rita", 403), ("charlie", 404)])
def test_nobody_else_changes_or_tries_them(
    what: str, name: str, status: int, cast: dict[str, User], client_of: ClientOf, metric: Metric
) -> None:
    what = what.replace("1/", f"{metric.pk}/", 1)
    assert client_of(cast[name]).post(METRICS + what).status_code == status


def test_a_metric_begins_with_a_template_in_the_readers_language(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).get(METRICS + "new/", headers={"Accept-Language": "zh-hans"})
    assert "single_turn_score.zh" in page.text
    assert "single_turn_score.en" not in page.text


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_every_built_in_template_can_be_started_from(
    name: str, client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).get(METRICS + "new/", {"start": name})
    assert BUILTINS[name].source.splitlines()[0] in unescape(page.text)
    assert (f'value="{BUILTINS[name].parse}" selected') in page.text


def test_saving_makes_the_first_version(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    typed = form_of(
        None, **{"judge-0-endpoint": live.pk, "judge-0-template": "a\r\n{{ response.content }}\r\n"}
    )
    client_of(alice).post(METRICS + "new/", typed)
    definition = definition_of(Metric.objects.get(name="New"))
    assert definition.judges[0].template == "a\n{{ response.content }}\n"
    assert (definition.judges[0].endpoint, definition.judges[0].name) == (live.pk, "Live")


def test_editing_makes_a_new_version_and_leaves_the_old_one(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    first = newest_version(metric).definition
    client_of(alice).post(
        page_of(metric), form_of(metric, **{"judge-0-template": "new {{ response.content }}"})
    )
    assert definition_of(metric).judges[0].template == "new {{ response.content }}"
    assert MetricVersion.objects.get(metric=metric, number=1).definition == first


def test_saving_without_a_change_makes_no_version(client_of: ClientOf, alice: User, metric: Metric) -> None:
    page = client_of(alice).post(page_of(metric), form_of(metric), follow=True)
    assert "Nothing had changed" in page.text
    assert newest_version(metric).number == 1


def test_of_two_who_edit_at_once_the_second_is_told_and_loses_nothing(
    client_of: ClientOf, alice: User, adam: User, metric: Metric
) -> None:
    mine, theirs = (form_of(metric, **{"judge-0-template": text}) for text in ("of alice", "of adam"))
    client_of(adam).post(page_of(metric), theirs)
    page = client_of(alice).post(page_of(metric), mine)
    assert page.status_code == 409
    assert "Adam saved version 2" in page.text
    assert "of alice" in page.text
    assert definition_of(metric).judges[0].template == "of adam"


def test_who_was_told_of_the_other_version_may_save_over_it(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    client = client_of(alice)
    mine = form_of(metric, **{"judge-0-template": "of alice", "seen": 2})
    client.post(page_of(metric), form_of(metric, **{"judge-0-template": "of adam"}))
    client.post(page_of(metric), mine)
    assert (newest_version(metric).number, definition_of(metric).judges[0].template) == (3, "of alice")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ""}, "This field is required"),
        ({"min_score": "10"}, "must be above"),
        ({"min_score": "nan"}, "Enter a number"),
        ({"judge-0-endpoint": ""}, "This field is required"),
        ({"judge-0-template": "{% for %}"}, "line 1"),
        ({"judge-0-params": "{"}, "line 1, column 2"),
        ({"judge-0-parse": "regex", "judge-0-pattern": "("}, "expression cannot be used"),
        ({"judge-0-parse": "json_path", "judge-0-pattern": ""}, "path cannot be used"),
        ({"preprocess": "def preprocess(:"}, "syntax error"),
        ({"preprocess": "x = 1"}, "no function"),
        ({"postprocess": "def postprocess(unheard_of): pass"}, "unheard_of"),
    ],
)
def test_a_mistake_is_marked_and_nothing_is_saved(
    change: dict[str, str], says: str, client_of: ClientOf, alice: User, metric: Metric
) -> None:
    page = client_of(alice).post(page_of(metric), form_of(metric, **change))
    assert page.status_code == 422
    assert says in page.text
    assert newest_version(metric).number == 1


def test_an_endpoint_of_another_project_cannot_be_chosen(
    client_of: ClientOf, alice: User, charlie: User, metric: Metric
) -> None:
    elsewhere = Project.objects.get(slug="elsewhere")
    foreign = Endpoint.objects.create(project=elsewhere, name="Theirs", url="http://h/v1", model="m")
    page = client_of(alice).post(page_of(metric), form_of(metric, **{"judge-0-endpoint": foreign.pk}))
    assert page.status_code == 422
    assert "Theirs" not in page.text


def test_an_imported_judge_keeps_its_address_which_the_form_cannot_change(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    judges = tuple(
        JudgeModel(name=name, template="t", url=f"http://{name}/v1", model="m", api_key_env="KEY", repeats=2)
        for name in ("one", "two")
    )
    metric = metric_create(
        project=project, definition=MetricDefinition(name="Both", judges=judges), user=None
    )
    typed = form_of(
        metric, **{"judge-1-template": "changed", "judge-0-url": "http://evil", "url": "http://evil"}
    )
    client_of(alice).post(page_of(metric), typed)
    saved = definition_of(metric).judges
    assert saved[0] == judges[0]
    assert (saved[1].template, saved[1].url, saved[1].repeats) == ("changed", "http://two/v1", 2)


def test_scripts_are_kept_in_the_version(client_of: ClientOf, alice: User, metric: Metric) -> None:
    script = "def preprocess(data, resp):\n    return 1\n"
    client_of(alice).post(page_of(metric), form_of(metric, preprocess=script))
    assert definition_of(metric).preprocess == script


def test_an_old_version_is_shown_and_comes_back_as_a_new_one(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    client = client_of(alice)
    client.post(page_of(metric), form_of(metric, **{"judge-0-template": "second"}))
    assert "Q: {{ data.question }}" in client.get(page_of(metric, "versions/1/")).text
    client.post(page_of(metric, "versions/1/restore/"))
    assert newest_version(metric).number == 3
    assert definition_of(metric).judges[0].template.startswith("Q: ")


def test_renaming_renames_the_metric_and_a_taken_name_is_told(
    client_of: ClientOf, alice: User, metric: Metric, project: Project
) -> None:
    metric_create(project=project, definition=MetricDefinition(name="Taken"), user=None)
    client = client_of(alice)
    assert "called “Taken” already" in client.post(page_of(metric), form_of(metric, name="Taken")).text
    client.post(page_of(metric), form_of(metric, name="Other"))
    metric.refresh_from_db()
    assert metric.name == "Other"


def test_a_copy_is_a_metric_of_its_own(client_of: ClientOf, alice: User, metric: Metric) -> None:
    client_of(alice).post(page_of(metric, "copy/"))
    copy = Metric.objects.get(name="Quality (2)")
    assert definition_of(copy).judges == definition_of(metric).judges
    assert definition_of(copy).name == "Quality (2)"


def test_archiving_takes_it_from_the_list_and_can_be_undone(
    client_of: ClientOf, alice: User, metric: Metric
) -> None:
    client = client_of(alice)
    client.post(page_of(metric, "archive/"))
    assert page_of(metric) not in client.get(METRICS).text
    assert page_of(metric) in client.get(METRICS, {"archived": 1}).text
    client.post(page_of(metric, "restore/"))
    assert page_of(metric) in client.get(METRICS).text


def test_no_page_of_a_metric_shows_a_key(
    client_of: ClientOf, alice: User, metric: Metric, version: Version, endpoint: Endpoint
) -> None:
    from tests.judging.metrics.conftest import KEY

    text = (
        client_of(alice).get(page_of(metric)).text + client_of(alice).get(page_of(metric, "versions/1/")).text
    )
    assert KEY not in text
