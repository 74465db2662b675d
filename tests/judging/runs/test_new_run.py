"""Starting a run in the browser."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.tasks import workers
from judging.core.candidates import CandidateModel
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.engine import planning
from judging.metrics.models import Metric, MetricVersion
from judging.records.models import Run
from judging.runs import services
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL
from tests.make import a_metric, a_project, a_version

pytestmark = pytest.mark.django_db
ADDRESS = "/p/physics/runs/new/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    return Endpoint.objects.create(project=project, name="House judge", url=JUDGE_URL, model="qwen-judge")


@pytest.fixture
def metric(project: Project, endpoint: Endpoint) -> MetricVersion:
    metric = Metric.objects.create(project=project, name="quality")
    definition = a_metric("", endpoint=endpoint.pk, model="", repeats=2).to_json()
    MetricVersion.objects.create(metric=metric, number=1, definition=a_metric("").to_json())
    return MetricVersion.objects.create(metric=metric, number=2, definition=definition)


@pytest.fixture
def version(project: Project) -> Version:
    made = a_version(project, rows=10)
    made.candidates.update(rows=10, responses=10)
    return made


def sent(version: Version, metric: MetricVersion, **more: Any) -> dict[str, Any]:
    candidates = [candidate.pk for candidate in version.candidates.all()]
    form = {
        "version": version.pk,
        "candidates": candidates,
        "metrics": [metric.pk],
        "name": "first",
        "seed": 7,
    }
    return form | more


def text(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", response.content.decode())


def test_the_form_proposes_all_candidates_the_only_metric_and_a_name(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    Endpoint.objects.update(probe={"ok": True})
    form = client_of(alice).get(ADDRESS).context["form"]
    assert [one.name for one in form.initial["candidates"]] == ["alpha", "beta"]
    assert form.chosen().candidate_models == []
    assert form.initial["metrics"] == [str(metric.pk)]
    assert form.initial["name"] == f"{metric.metric.name} {timezone.localdate():%Y-%m-%d}"


def test_the_form_is_one_card_beside_its_summary(
    project: Project, alice: User, version: Version, metric: MetricVersion, client_of: ClientOf
) -> None:
    page = text(client_of(alice).get(f"/p/physics/runs/new/?version={version.pk}"))
    assert page.count('class="card') == 2


def test_a_proposed_name_lists_two_metrics_and_is_free(project: Project, version: Version) -> None:
    definitions = [MetricDefinition(name=name, min_score=1, max_score=5) for name in ("a", "b", "c")]
    today = f"{timezone.localdate():%Y-%m-%d}"
    assert services.proposed_name(project, version, definitions) == f"a + b + 1 {today}"
    assert services.proposed_name(project, version, []) == f"{version.dataset.name} {today}"
    first = services.proposed_name(project, version, definitions[:1])
    Run.objects.create(project=project, name=first, version=version, seed=1)
    assert services.proposed_name(project, version, definitions[:1]) == f"a {today} (2)"


def test_the_proposed_name_follows_the_chosen_metrics(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    chosen = {**sent(version, metric), "part": "cost"}
    part = client_of(alice).get(ADDRESS, chosen, headers={"HX-Request": "true"})
    assert f'data-proposed-name="{metric.metric.name} ' in text(part)


def test_the_form_shows_the_models_that_the_metric_asks(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    assert "qwen-judge via House judge × 2" in text(client_of(alice).get(ADDRESS))


FAILED = {"ok": False, "code": "connection_refused", "detail": "", "refuses": [], "models": []}


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        ({}, "The connection to “House judge” has never been tested"),
        (FAILED, "The last connection test of “House judge” failed"),
        ({**FAILED, "ok": True}, ""),
    ],
)
def test_the_form_warns_of_an_endpoint_that_no_test_has_reached(
    probe: dict[str, Any],
    said: str,
    alice: User,
    client_of: ClientOf,
    version: Version,
    metric: MetricVersion,
    endpoint: Endpoint,
) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(probe=probe, probed_at=timezone.now())
    page = text(client_of(alice).get(ADDRESS))
    assert said in page if said else "House judge” has never" not in page and "test of “House" not in page


def test_the_cost_is_shown_before_the_start(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    page = text(client_of(alice).get(ADDRESS))
    assert "<dt>Judgements</dt><dd>20</dd>" in page
    assert "<dt>Judge calls</dt><dd>40</dd>" in page


def test_the_cost_follows_what_is_chosen(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    chosen = sent(version, metric, sample_size=3, candidates=[version.candidates.first().pk], part="cost")  # type: ignore[union-attr]
    part = client_of(alice).get(ADDRESS, chosen, headers={"HX-Request": "true"})
    assert "<dt>Judge calls</dt><dd>6</dd>" in text(part)
    assert b"<html" not in part.content


def test_a_run_is_started_and_its_page_shown(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    answer = client_of(alice).post(ADDRESS, sent(version, metric, sample_size=4))
    run = Run.objects.get()
    assert answer.headers["Location"] == reverse("runs:detail", args=("physics", run.pk))
    assert (run.name, run.sample_size, run.seed, run.created_by) == ("first", 4, 7, alice)
    assert run.metrics.get().metric_version == metric


def test_the_same_seed_draws_the_same_rows(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    for name in ("first", "second"):
        client_of(alice).post(ADDRESS, sent(version, metric, sample_size=4, name=name))
    rows = []
    for run in Run.objects.all():
        planning.plan(run.pk)
        rows.append(set(run.judgements.values_list("row", flat=True)))
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4


def test_a_form_sent_twice_makes_one_run(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    first, second = (client_of(alice).post(ADDRESS, sent(version, metric)) for _ in range(2))
    assert Run.objects.count() == 1
    assert first.headers["Location"] == second.headers["Location"]


def test_another_run_of_the_same_name_is_refused_in_the_form(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    client_of(alice).post(ADDRESS, sent(version, metric))
    answer = client_of(alice).post(ADDRESS, sent(version, metric, seed=8))
    assert (answer.status_code, Run.objects.count()) == (422, 1)
    assert "A run with this name already exists" in text(answer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": []},
        {"metrics": []},
        {"metrics": [999]},
        {"sample_size": 0},
        {"name": ""},
        {"seed": "x"},
    ],
)
def test_what_is_wrong_is_said_and_nothing_started(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion, wrong: dict[str, Any]
) -> None:
    answer = client_of(alice).post(ADDRESS, sent(version, metric, **wrong))
    assert (answer.status_code, Run.objects.count()) == (422, 0)
    assert b"errorlist" in answer.content


def test_a_candidate_of_another_version_is_refused(
    alice: User, client_of: ClientOf, project: Project, version: Version, metric: MetricVersion
) -> None:
    outsider = a_version(project).candidates.first()
    assert outsider is not None
    client_of(alice).post(ADDRESS, sent(version, metric, candidates=[outsider.pk]))
    assert Run.objects.count() == 0


def test_a_version_with_bad_rows_is_named_with_what_to_do(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    bad = a_version(version.dataset.project)
    Version.objects.filter(pk=bad.pk).update(rows=5)
    page = text(client_of(alice).get(ADDRESS))
    assert "2 invalid rows. Fix or exclude them." in page
    assert reverse("datasets:version", args=("physics", bad.dataset_id, 1)) in page


def test_without_a_data_set_the_page_leads_to_the_upload(alice: User, client_of: ClientOf) -> None:
    assert reverse("datasets:upload", args=("physics",)) in text(client_of(alice).get(ADDRESS))


def test_without_a_metric_the_page_says_so(alice: User, client_of: ClientOf, version: Version) -> None:
    assert "No metrics yet" in text(client_of(alice).get(ADDRESS))


@pytest.mark.parametrize(
    ("name", "status"), [("bob", 403), ("rita", 403), ("charlie", 404), ("adam", 302), ("olga", 302)]
)
def test_who_may_start_a_run(
    cast: dict[str, User],
    client_of: ClientOf,
    version: Version,
    metric: MetricVersion,
    name: str,
    status: int,
) -> None:
    assert client_of(cast[name]).post(ADDRESS, sent(version, metric)).status_code == status
    assert Run.objects.count() == (status == 302)


@pytest.mark.parametrize("nonsense", ["9" * 24, "x", "-1", "0"])
def test_a_candidate_that_cannot_be_is_refused(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion, nonsense: str
) -> None:
    answer = client_of(alice).post(ADDRESS, sent(version, metric, candidates=[nonsense]))
    assert answer.status_code == 422
    assert "candidates" in answer.context["form"].errors


def worded(metric: MetricVersion, template: str) -> MetricVersion:
    MetricVersion.objects.filter(pk=metric.pk).update(definition=a_metric("", template=template).to_json())
    return metric


def test_what_lint_finds_over_the_rows_is_reported_before_the_run_begins(
    client_of: ClientOf, alice: User, version: Version, metric: MetricVersion
) -> None:
    worded(metric, "{{ data.questoin }}{{ response.content }}")
    page = text(client_of(alice).get(ADDRESS, {"part": "cost", **sent(version, metric)}, headers=HTMX))
    assert "“quality”: 1 error in this version" in page
    assert "Did you mean “data.question”?" in page


def test_a_run_may_begin_all_the_same(
    client_of: ClientOf, alice: User, version: Version, metric: MetricVersion
) -> None:
    worded(metric, "{{ data.questoin }}{{ response.content }}")
    assert client_of(alice).post(ADDRESS, sent(version, metric)).status_code == 302


def test_nothing_is_said_of_a_prompt_that_fits_every_row(
    client_of: ClientOf, alice: User, version: Version, metric: MetricVersion
) -> None:
    worded(metric, "{{ data.question }}{{ response.content }}{{ answer_format }}")
    page = text(client_of(alice).get(ADDRESS, {"part": "cost", **sent(version, metric)}, headers=HTMX))
    assert "in this version" not in page


def test_a_large_version_is_looked_through_by_a_worker(
    client_of: ClientOf, alice: User, version: Version, metric: MetricVersion
) -> None:
    version.candidates.update(responses=5_000)
    page = text(client_of(alice).get(ADDRESS, {"part": "cost", **sent(version, metric)}, headers=HTMX))
    assert "no worker is running" in page
    workers.heartbeat(workers.DATA)
    page = text(client_of(alice).get(ADDRESS, {"part": "cost", **sent(version, metric)}, headers=HTMX))
    assert "against all rows. You don" in page


def asking(endpoint: Endpoint, **more: Any) -> dict[str, Any]:
    """Form data for one model that generates answers."""
    first = {"endpoint": endpoint.pk, "n": 2, "params": '{"seed": 3}', **more}
    form = {"asked-TOTAL_FORMS": 4, "asked-INITIAL_FORMS": 0}
    return form | {f"asked-0-{name}": value for name, value in first.items()}


def test_a_version_without_answers_offers_to_ask_models(
    project: Project, alice: User, client_of: ClientOf, metric: MetricVersion
) -> None:
    empty = a_version(project, models=())
    page = text(client_of(alice).get(f"{ADDRESS}?version={empty.pk}"))
    assert "Select a model to generate them" in page
    assert re.search(r'<details class="fold" open>\s*<summary>Model 1', page)


@pytest.mark.parametrize(("tested", "proposed"), [(0, []), (1, ["House judge"]), (2, [])])
def test_the_only_tested_endpoint_is_proposed_to_answer_a_version_without_answers(
    tested: int,
    proposed: list[str],
    project: Project,
    alice: User,
    client_of: ClientOf,
    metric: MetricVersion,
) -> None:
    Endpoint.objects.update(probe={"ok": True} if tested else {})
    if tested == 2:
        Endpoint.objects.create(project=project, name="b", url=JUDGE_URL, model="m", probe={"ok": True})
    empty = a_version(project, models=())
    context = client_of(alice).get(f"{ADDRESS}?version={empty.pk}").context
    assert [model.name for model in context["form"].chosen().candidate_models] == proposed
    assert bool(context["cost"].answers) == bool(proposed)


def test_models_are_chosen_by_endpoint_and_frozen_into_the_run(
    project: Project, alice: User, client_of: ClientOf, metric: MetricVersion, endpoint: Endpoint
) -> None:
    empty = a_version(project, models=())
    client_of(alice).post(
        ADDRESS, sent(empty, metric) | asking(endpoint, name="qwen", system_prompt="Be kind.")
    )
    asked = CandidateModel.from_json(Run.objects.get().run_candidates.get().definition)
    assert (asked.name, asked.model, asked.url, asked.n) == ("qwen", "qwen-judge", JUDGE_URL, 2)
    assert (asked.params, asked.system_prompt) == ({"seed": 3}, "Be kind.")


def test_the_form_says_how_many_answers_are_asked_for(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion, endpoint: Endpoint
) -> None:
    form = sent(version, metric) | asking(endpoint) | {"part": "cost"}
    page = text(client_of(alice).get(ADDRESS, form, headers=HTMX))
    assert "<dt>Judge calls</dt><dd>80</dd>" in page
    assert "<dt>Answers to generate</dt><dd>20</dd>" in page


def test_two_candidates_of_one_name_are_refused_with_a_sentence(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion, endpoint: Endpoint
) -> None:
    answer = client_of(alice).post(ADDRESS, sent(version, metric) | asking(endpoint, name="alpha"))
    assert (answer.status_code, Run.objects.count()) == (422, 0)
    assert "Two candidates are named alpha." in text(answer)


def test_an_endpoint_of_another_project_cannot_be_asked(
    alice: User, client_of: ClientOf, version: Version, metric: MetricVersion
) -> None:
    foreign = Endpoint.objects.create(project=a_project("Other"), name="x", url=JUDGE_URL, model="m")
    answer = client_of(alice).post(ADDRESS, sent(version, metric) | asking(foreign))
    assert (answer.status_code, Run.objects.count()) == (422, 0)


BROKEN = {
    "its syntax": ("postprocess", "def postprocess(:", "line 1 of the postprocess script: SyntaxError"),
    "no function": ("postprocess", "def preprocess(data): ...", "there is no function"),
    "an import": (
        "preprocess",
        "\nimport numpy\ndef preprocess(data): ...",
        "line 2 of the preprocess script",
    ),
}


@pytest.mark.parametrize(("kind", "source", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_script_that_cannot_be_loaded_is_refused_before_the_run(
    kind: str,
    source: str,
    why: str,
    alice: User,
    client_of: ClientOf,
    version: Version,
    metric: MetricVersion,
) -> None:
    metric.definition = a_metric(JUDGE_URL, **{kind: source}).to_json()
    metric.save()
    page = client_of(alice).post(ADDRESS, sent(version, metric))
    assert (page.status_code, Run.objects.count()) == (422, 0)
    assert why in unescape(text(page))


def test_a_metrics_page_leads_to_a_run_by_it(
    project: Project, alice: User, version: Version, metric: MetricVersion, client_of: ClientOf
) -> None:
    other = Metric.objects.create(project=project, name="style")
    MetricVersion.objects.create(metric=other, number=1, definition=metric.definition)
    client, address = client_of(alice), f"{ADDRESS}?metric={metric.pk}"
    assert address in client.get(f"/p/physics/metrics/{metric.metric_id}/").text
    assert client.get(address).context["form"].initial["metrics"] == [str(metric.pk)]


def test_twenty_rows_are_one_choice_of_three(
    project: Project, alice: User, metric: MetricVersion, client_of: ClientOf
) -> None:
    large = a_version(project, rows=30)
    large.candidates.update(rows=30, responses=30)
    page = client_of(alice).get(f"{ADDRESS}?version={large.pk}")
    assert "All 30 rows" in page.text
    client_of(alice).post(ADDRESS, sent(large, metric, rows_wanted="few", sample_size=3))
    assert Run.objects.get().sample_size == 20
