"""The metric editor with a comparison of candidates: its fields, both answers in the preview, and trials in both
orders."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from datasets.models import Candidate, Version
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from judging.metrics.services import metric_create
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import KEY, form_of, imported

METRICS = "/p/physics/metrics/"
TEMPLATE = "Q: {{ data.question }} First: {{ a.content }} Second: {{ b.content }} {{ answer_format }}"
BOTH_ORDERS = {"judge-0-both_orders": "on"}
POSTPROCESS = (
    "def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):\n"
    "    print(resp['content'], '/', kwargs['other_resp']['content'])\n"
    "    print([req['messages'][-1]['content'].split('First: ')[1][:3] for req in judge_reqs])\n"
    "    return 'A>B'\n"
)


@pytest.fixture
def pair_metric(project: Project, live: Endpoint, alice: User) -> Metric:
    judge = JudgeModel(name="Live", endpoint=live.pk, template=TEMPLATE, both_orders=True)
    definition = MetricDefinition(
        name="Better", judges=(judge,), gives="comparison", compares="all", max_score=5
    )
    return metric_create(project=project, definition=definition, user=alice)


def prefers_ant(received: Received) -> str:
    return "[[A>B]]" if "First: ant" in received.prompt else "[[B>A]]"


@pytest.fixture
def server() -> Any:
    with ScriptedJudge(prefers_ant, api_key=KEY) as judge:
        yield judge


def saved() -> MetricDefinition:
    return MetricDefinition.from_json(newest_version(Metric.objects.get()).definition)


def new(live: Endpoint, **more: object) -> dict[str, object]:
    return form_of(
        None, gives="candidates", **{"judge-0-endpoint": live.pk, "judge-0-template": TEMPLATE, **more}
    )


def tried(client_of: ClientOf, alice: User, metric: Metric, **more: object) -> str:
    typed = form_of(metric, gives="candidates", **BOTH_ORDERS, **more)
    answer = client_of(alice).post(METRICS + "try/", typed)
    body = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    return str(json.loads(body.splitlines()[-1])["html"])


def test_a_template_for_two_answers_starts_with_all_pairs_in_both_orders(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).get(METRICS + "new/", {"start": "reference_pair.en"}).text
    assert re.search(r'name="gives" value="candidates"[^>]* checked', page)
    assert re.search(r'name="judge-0-both_orders"[^>]* checked', page)


def test_the_templates_for_two_answers_are_offered(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    page = client_of(alice).get(METRICS + "new/").text
    assert all(f"gallery/{name}_pair/" in page for name in ("single_turn", "multi_turn", "reference"))


def test_all_pairs_are_saved(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    client_of(alice).post(
        METRICS + "new/", new(live, pairs="any", both_bad="on", three_steps="on", **BOTH_ORDERS)
    )
    metric = saved()
    assert (metric.gives, metric.compares, metric.any_pairs, metric.max_score) == (
        "comparison",
        "all",
        True,
        5,
    )
    assert (metric.both_bad, metric.three_steps, metric.all_answers) == (True, True, False)
    assert metric.judges[0].both_orders


def test_a_baseline_is_saved(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    client_of(alice).post(METRICS + "new/", new(live, pairs="baseline", baseline=" ant ", all_answers="on"))
    assert (saved().compares, saved().baseline, saved().all_answers) == ("baseline", "ant", True)


def test_a_baseline_needs_a_name(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    page = client_of(alice).post(METRICS + "new/", new(live, pairs="baseline"))
    assert page.status_code == 422
    assert "Enter the name of a candidate." in page.text


def test_verdicts_on_two_answers_are_not_read_with_a_pattern(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    pattern = {"judge-0-parse": "regex", "judge-0-pattern": "(A|B)"}
    page = client_of(alice).post(METRICS + "new/", new(live, **pattern))
    assert page.status_code == 422
    assert "with a pattern or a JSON path" in page.text


def test_saving_a_stored_metric_as_it_is_changes_nothing(
    client_of: ClientOf, alice: User, pair_metric: Metric
) -> None:
    typed = form_of(pair_metric, gives="candidates", pairs="all", **BOTH_ORDERS)
    client_of(alice).post(f"{METRICS}{pair_metric.pk}/", typed)
    assert newest_version(pair_metric).number == 1


def test_another_kind_compares_no_candidates(client_of: ClientOf, alice: User, pair_metric: Metric) -> None:
    client_of(alice).post(f"{METRICS}{pair_metric.pk}/", form_of(pair_metric, gives="comparison"))
    assert saved().compares_reference


def test_the_preview_shows_both_answers(
    client_of: ClientOf, alice: User, pair_metric: Metric, version: Version
) -> None:
    typed = form_of(pair_metric, gives="candidates")
    shown = client_of(alice).post(METRICS + "preview/", typed, headers={"HX-Request": "true"}).text
    assert 'title="a.content&nbsp;· line 1">ant says 1</mark>' in shown
    assert 'title="b.content&nbsp;· line 1">bee says 1</mark>' in shown


def test_the_answer_to_compare_with_can_be_chosen(
    client_of: ClientOf, alice: User, project: Project, pair_metric: Metric
) -> None:
    answers = [{"model_name": name, "responses": [{"content": name}]} for name in ("ant", "bee", "cow")]
    version = imported(
        project, "Three", [{"messages": [{"role": "user", "content": "?"}], "model_outputs": answers}]
    )
    cow = Candidate.objects.get(version=version, name="cow")
    typed = form_of(pair_metric, gives="candidates", row_version=version.pk, row_other=f"{cow.pk}:1")
    shown = client_of(alice).post(METRICS + "preview/", typed, headers={"HX-Request": "true"}).text
    assert 'title="b.content&nbsp;· line 1">cow</mark>' in shown


def test_a_trial_asks_in_both_orders_and_combines_them(
    client_of: ClientOf, alice: User, pair_metric: Metric, version: Version, server: ScriptedJudge
) -> None:
    shown = tried(client_of, alice, pair_metric)
    assert "Verdict" in shown
    assert '<span class="score">A&gt;B</span>' in shown
    first = [re.findall("First: (...)", request.prompt) for request in server.requests]
    assert first == [["ant"], ["bee"]]


def test_a_trial_says_when_the_orders_disagree(
    client_of: ClientOf, alice: User, pair_metric: Metric, version: Version, server: ScriptedJudge
) -> None:
    server.server.script = lambda _: "[[A>B]]"
    shown = tried(client_of, alice, pair_metric)
    assert 'data-state="unsettled"' in shown
    assert "The two orders disagree." in shown


def test_a_trial_in_one_order_asks_once(
    client_of: ClientOf, alice: User, pair_metric: Metric, version: Version, server: ScriptedJudge
) -> None:
    client_of(alice).post(METRICS + "try/", form_of(pair_metric, gives="candidates")).getvalue()
    assert len(server.requests) == 1


def test_nothing_is_tried_where_one_candidate_answered(
    client_of: ClientOf, alice: User, project: Project, pair_metric: Metric, server: ScriptedJudge
) -> None:
    answers = [{"model_name": "ant", "responses": [{"content": "alone"}]}]
    imported(project, "One", [{"messages": [{"role": "user", "content": "?"}], "model_outputs": answers}])
    tried(client_of, alice, pair_metric)
    assert server.requests == []


def test_a_postprocess_gets_both_answers_and_both_orders(
    client_of: ClientOf, alice: User, pair_metric: Metric, version: Version
) -> None:
    shown = tried(client_of, alice, pair_metric, postprocess=POSTPROCESS)
    assert "ant says 1 / bee says 1" in shown
    assert "[&#x27;ant&#x27;, &#x27;bee&#x27;]" in shown
