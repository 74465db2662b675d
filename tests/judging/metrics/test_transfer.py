"""Import and export of metrics files, in the browser and by command. Files never contain keys."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError

from evalsite.accounts.models import Project, User
from judging.core.metric_definition import MetricDefinition
from judging.core.metrics_file import read_metrics_file
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from judging.runs.services import frozen
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import KEY

METRICS = "/p/physics/metrics/"


def yaml_of(url: str, name: str = "Imported", more: str = "") -> str:
    return (
        f"metrics:\n- name: {name}\n  max_score: 5\n  pipeline:\n  - type: PREPROCESS\n    file_content: |-\n"
        "      def preprocess(data, resp): return 1\n  - type: JUDGE_MODEL\n    judge_model:\n"
        f"      name: j\n      url: {url}\n      model: scripted\n      repeats: 2\n"
        f"      judge_template_content: '{{{{ response.content }}}}'\n{more}"
    )


def definition(metric: Metric) -> MetricDefinition:
    return MetricDefinition.from_json(newest_version(metric).definition)


def sent(client_of: ClientOf, user: User, text: str) -> Any:
    file = SimpleUploadedFile("metrics.yaml", text.encode())
    return client_of(user).post(METRICS + "import/", {"file": file}, follow=True)


def test_a_file_becomes_metrics_that_ask_the_project_s_endpoint(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    assert "1 metric is new." in sent(client_of, alice, yaml_of(live.url)).text
    made = definition(Metric.objects.get(name="Imported"))
    assert (made.max_score, made.judges[0].endpoint, made.judges[0].repeats) == (5, live.pk, 2)


def test_an_address_may_be_written_with_and_without_its_path(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    sent(client_of, alice, yaml_of(live.url.removesuffix("/v1")))
    assert definition(Metric.objects.get(name="Imported")).judges[0].endpoint == live.pk


def test_a_metric_that_is_there_gets_a_new_version(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    for text in (yaml_of(live.url), yaml_of(live.url).replace("max_score: 5", "max_score: 7")):
        sent(client_of, alice, text)
    assert newest_version(Metric.objects.get(name="Imported")).number == 2
    assert "unchanged" in sent(client_of, alice, text).text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("metrics:\n- nme: x\n  pipeline: []", "line 2"),
        (yaml_of("http://h/v1", more="      api_key: sk-1\n"), "Unknown key “api_key”"),
        ("metrics:\n- name: m\n  pipeline:\n  - {type: PREPROCESS, filename: a.py}", "File a.py not found"),
        (yaml_of("http://nobody.example/v1"), "this project has no endpoint with address"),
        ("", "Choose a file"),
    ],
)
def test_a_file_that_cannot_be_imported_says_why_and_changes_nothing(
    text: str, says: str, client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).post(METRICS + "import/", {"text": text})
    assert (page.status_code, says in page.text) == (422, True)
    assert not Metric.objects.exists()


def test_a_file_cannot_have_a_variable_of_the_server_sent_somewhere(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    page = sent(client_of, alice, yaml_of("http://evil/v1", more="      api_key_env: SECRET_KEY\n"))
    assert "this project has no endpoint" in page.text
    assert not Metric.objects.exists()


def imported_by_command(path: Path, project: Project) -> None:
    path.write_text(yaml_of("http://other.example/v1", more="      api_key_env: JUDGE_KEY\n"))
    call_command("import_metrics", str(path), project=project.slug)


def test_what_a_command_imported_comes_back_through_the_browser(
    client_of: ClientOf, alice: User, path: Path, project: Project
) -> None:
    imported_by_command(path, project)
    text = client_of(alice).get(METRICS + "export/").text
    assert "1 metric unchanged." in sent(client_of, alice, text).text


def test_what_a_command_imported_lends_its_key_to_no_other_metric_or_address(
    client_of: ClientOf, alice: User, path: Path, project: Project
) -> None:
    imported_by_command(path, project)
    text = path.read_text()
    others = (
        text.replace("Imported", "Other"),
        text.replace("other.example", "evil"),
        text.replace("JUDGE_KEY", "A_KEY"),
    )
    pages = [sent(client_of, alice, other).text for other in others]
    assert ["this project has no endpoint" in page for page in pages] == [True] * 3


def test_a_file_that_was_refused_can_be_fixed_in_the_page(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    assert "- nme: x</textarea>" in sent(client_of, alice, "metrics:\n- nme: x").text


def test_what_is_exported_and_imported_elsewhere_judges_the_same(
    client_of: ClientOf, alice: User, metric: Metric, live: Endpoint, project: Project
) -> None:
    live.params = {"temperature": 0}
    live.save()
    before = frozen(definition(metric))
    text = client_of(alice).get(f"{METRICS}{metric.pk}/export/").text
    Metric.objects.filter(pk=metric.pk).update(name="Old")
    sent(client_of, alice, text)
    assert frozen(definition(Metric.objects.get(name="Quality"))) == before


@pytest.mark.parametrize("what", ["export/", "1/export/", "1/versions/1/export/"])
def test_no_export_holds_a_key(what: str, client_of: ClientOf, alice: User, metric: Metric) -> None:
    page = client_of(alice).get(METRICS + what.replace("1/", f"{metric.pk}/", 1))
    assert "Q: {{ data.question }}" in page.text
    assert KEY not in page.text
    assert "attachment" in page["Content-Disposition"]


@pytest.mark.parametrize(("name", "status"), [("alice", 200), ("bob", 403), ("rita", 403), ("charlie", 404)])
@pytest.mark.parametrize("what", ["import/", "export/", "1/export/", "1/compare/", "1/versions/1/export/"])
def test_who_writes_metrics_may_move_and_compare_them(
    what: str, name: str, status: int, cast: dict[str, User], client_of: ClientOf, metric: Metric
) -> None:
    address = METRICS + what.replace("1/", f"{metric.pk}/", 1)
    assert client_of(cast[name]).get(address).status_code == status


# --- by command --------------------------------------------------------------------------------------------------


def run(*arguments: object) -> str:
    out = io.StringIO()
    call_command(*map(str, arguments), stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.yaml"


def test_a_round_trip_by_command_judges_the_same(path: Path, project: Project) -> None:
    path.write_text(yaml_of("http://h/v1", more="      api_key_env: JUDGE_KEY\n"))
    result = json.loads(run("import_metrics", path, "--json"))
    assert result == {"metrics": [{"name": "Imported", "version": 1, "done": "new"}]}
    exported = run("export_metrics", "Imported")
    assert (
        read_metrics_file(exported, path.parent).metrics
        == read_metrics_file(path.read_text(), path.parent).metrics
    )


def test_files_beside_the_yaml_are_read_by_command(path: Path, project: Project) -> None:
    (path.parent / "clean.py").write_text("def preprocess(data, resp): return 2\n")
    path.write_text("metrics:\n- name: m\n  pipeline:\n  - {type: PREPROCESS, filename: clean.py}\n")
    run("import_metrics", path)
    assert definition(Metric.objects.get()).scripts[0].source == "def preprocess(data, resp): return 2\n"


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [(None, 2, "No such file"), ("metrics:\n- nme: x", 1, "line 2"), ("metrics: [", 1, "YAML")],
)
def test_a_wrong_file_ends_the_command_with_a_sentence(
    text: str | None, status: int, says: str, path: Path, project: Project
) -> None:
    if text is not None:
        path.write_text(text)
    with pytest.raises(CommandError, match=says) as caught:
        run("import_metrics", path)
    assert caught.value.returncode == status


def test_where_there_are_several_projects_one_must_be_named(
    path: Path, project: Project, charlie: User
) -> None:
    path.write_text(yaml_of("http://h/v1"))
    with pytest.raises(CommandError, match="--project SLUG, one of: elsewhere, physics"):
        run("import_metrics", path)
    run("import_metrics", path, "--project", "elsewhere")
    assert Metric.objects.get().project.slug == "elsewhere"


def test_an_unknown_name_is_not_exported(project: Project) -> None:
    metric_create(project=project, definition=MetricDefinition(name="a"), user=None)
    with pytest.raises(CommandError, match="no metric called b"):
        run("export_metrics", "a", "b")


# --- comparing ---------------------------------------------------------------------------------------------------


def test_two_versions_are_compared_setting_by_setting_and_line_by_line(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    text = yaml_of(live.url)
    for version in (text, text.replace("max_score: 5", "max_score: 7").replace("return 1", "return 2")):
        sent(client_of, alice, version)
    page = client_of(alice).get(f"{METRICS}{Metric.objects.get().pk}/compare/")
    assert "<del>5</del>" in page.text
    assert "<ins>7</ins>" in page.text
    assert "<ins>def preprocess(data, resp): return 2</ins>" in page.text


def test_a_version_compared_with_itself_says_so(client_of: ClientOf, alice: User, metric: Metric) -> None:
    page = client_of(alice).get(f"{METRICS}{metric.pk}/compare/", {"from": "1", "to": "1"})
    assert "These versions are identical" in page.text
