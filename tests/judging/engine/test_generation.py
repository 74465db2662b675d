"""Generate and judge with a real run worker: answers are generated, stored, judged; the version never changes."""

from __future__ import annotations

import json
import threading

import pytest
from django.db import connections
from django.test import Client

from datasets import selectors
from datasets.importing.worker import import_or_wait
from datasets.models import Candidate, Response, Version
from datasets.versions import row_writer
from datasets.versions.run_answers import answered_lines
from datasets.views import row_browser
from evalsite.accounts.models import User
from judging.core.judges import scripted
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.endpoints import limiter
from judging.endpoints.models import Endpoint, EndpointLoad
from judging.engine import stopping
from judging.people.presets import candidates_of
from judging.records.models import INFER, Generation, Run, RunCandidate, RunState
from judging.reports.services import report_document
from judging.runs import services
from judging.runs.endpoint_outages import endpoint_states, failing
from tests.deadlines import TIMEOUT, wait_until
from tests.judging.working import work
from tests.make import a_candidate, a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


def unanswered(rows: int = 3) -> Version:
    return a_version(a_project(), rows=rows, models=())


def is_judge(asked: Received) -> bool:
    return asked.prompt.startswith("Q: ")


def answering(asked: Received) -> Answer | str:
    """A candidate and a judge in one: the judge scores by the answer's length."""
    if is_judge(asked):
        return f"Score: [[{min(10, len(asked.prompt.rsplit('A: ', 1)[1]))}]]"
    return Answer(content="x" * (1 + int(asked.prompt[-1])), reasoning="I thought.")


def inferred(
    reply: object = answering, *, version: Version | None = None, metrics: int = 1, **candidate: object
) -> Run:
    with ScriptedJudge(reply=reply) as judge:
        named = [a_metric(judge.url, name=f"metric {n}") for n in range(metrics)]
        return work(
            a_run(version or unanswered(), *named, candidate_models=[a_candidate(judge.url, **candidate)])
        )


def states(run: Run) -> set[tuple[str, str]]:
    return set(run.judgements.filter(current=True).values_list("state", "reason"))


def test_answers_are_asked_for_stored_and_judged() -> None:
    run = inferred()
    assert (run.kind, run.state, run.scored) == (INFER, RunState.FINISHED, 3)
    scores = run.judgements.order_by("position").values_list("row__line", "score")
    assert list(scores) == [(1, 2.0), (2, 3.0), (3, 4.0)]
    assert {one.raw for one in Response.objects.filter(candidate__name="gamma", row__line=2)} == {
        '{"content":"xxx","reasoning_content":"I thought."}'
    }


def test_every_metric_judges_the_same_answer_which_is_asked_for_once() -> None:
    with ScriptedJudge(reply=answering) as judge:
        metrics = [a_metric(judge.url, name=name) for name in ("a", "b", "c")]
        run = work(a_run(unanswered(70), *metrics, candidate_models=[a_candidate(judge.url, n=2)]))
        asked = [one for one in judge.requests if not is_judge(one)]
    assert (run.total, len(asked)) == (420, 140)
    assert Generation.objects.filter(run=run, state="answered").count() == 140


def test_judgements_of_one_response_are_in_one_chunk() -> None:
    run = inferred(metrics=3, version=unanswered(40))
    assert all((chunk.last + 1) % 3 == chunk.first % 3 == 0 for chunk in run.chunks.all())
    assert run.chunks.count() == 2


def test_the_request_every_call_and_the_tokens_of_an_answer_are_kept() -> None:
    run = inferred(lambda asked: "[[5]]" if is_judge(asked) else Answer(content="ok", tokens=(11, 4)))
    kept = Generation.objects.filter(run=run).order_by("pk")[0]
    assert json.loads(kept.request)["messages"][0]["content"].startswith("question ")
    assert (kept.attempt, kept.state, kept.finish_reason) == (1, "answered", "stop")
    assert (kept.prompt_tokens, kept.completion_tokens, len(json.loads(kept.calls))) == (11, 4, 1)
    assert kept.first_token_seconds is not None


def test_tokens_of_answers_are_counted_apart_from_the_judges() -> None:
    run = inferred(
        lambda asked: (
            Answer(content="[[5]]", tokens=(100, 10))
            if is_judge(asked)
            else Answer(content="a", tokens=(7, 2))
        )
    )
    asked = RunCandidate.objects.get(run=run)
    assert (asked.answered, asked.calls, asked.prompt_tokens, asked.completion_tokens) == (3, 3, 21, 6)
    assert (run.calls, run.prompt_tokens, run.completion_tokens) == (6, 321, 36)


def test_several_answers_to_a_row_differ_in_their_seed() -> None:
    seeds: list[int] = []

    def noting(asked: Received) -> str:
        if not is_judge(asked):
            seeds.append(asked.body["seed"])
        return "[[5]]"

    run = inferred(noting, version=unanswered(1), n=3, params={"seed": 40})
    assert (run.total, sorted(seeds)) == (3, [40, 41, 42])


def test_a_failed_answer_is_an_error_of_its_own_and_no_judge_is_asked() -> None:
    with ScriptedJudge(reply=scripted.refusal(400, "maximum context length is 10 tokens")) as judge:
        run = work(a_run(unanswered(), a_metric(judge.url), candidate_models=[a_candidate(judge.url)]))
        assert not any(is_judge(one) for one in judge.requests)
    assert states(run) == {("error", "answer_failed")}
    assert run.judgements.first().detail.startswith("context_too_long: ")  # type: ignore[union-attr]
    assert (run.errors, RunCandidate.objects.get(run=run).failed) == (3, 3)


def test_a_failed_answer_is_asked_for_again_when_errors_are_retried() -> None:
    down = [True]

    def recovering(asked: Received) -> Answer | str:
        return scripted.refusal(400, "no") if down[0] and not is_judge(asked) else answering(asked)

    with ScriptedJudge(reply=recovering) as judge:
        run = work(
            a_run(
                unanswered(),
                a_metric(judge.url),
                a_metric(judge.url, name="b"),
                candidate_models=[a_candidate(judge.url)],
            )
        )
        down[0] = False
        assert services.run_retry(run) == 6
        again = work(run)
    assert (again.scored, again.errors) == (6, 0)
    assert set(Generation.objects.filter(run=run).values_list("attempt", "state")) == {
        (1, "failed"),
        (2, "answered"),
    }


def test_an_answer_that_was_given_is_not_asked_for_again_when_its_judge_failed() -> None:
    with ScriptedJudge(
        reply=lambda asked: scripted.refusal(400, "no") if is_judge(asked) else "fine"
    ) as judge:
        run = work(a_run(unanswered(), a_metric(judge.url), candidate_models=[a_candidate(judge.url)]))
        assert services.run_retry(run) == 3
        work(run)
        assert len([one for one in judge.requests if not is_judge(one)]) == 3


@pytest.mark.parametrize(
    ("answer", "flags"),
    [
        (Answer(), "answer_empty"),
        (Answer(content="half", finish_reason="length"), "answer_truncated"),
        (Answer(content="", finish_reason="length"), "answer_empty,answer_truncated"),
    ],
)
def test_empty_and_truncated_answers_are_judged_and_flagged(answer: Answer, flags: str) -> None:
    run = inferred(lambda asked: "[[5]]" if is_judge(asked) else answer)
    assert set(run.judgements.values_list("state", "flags")) == {("scored", flags)}


def test_an_answer_that_a_filter_emptied_is_an_error_named_so() -> None:
    run = inferred(
        lambda asked: "[[5]]" if is_judge(asked) else Answer(content="", finish_reason="content_filter")
    )
    assert states(run) == {("error", "answer_failed")}
    assert set(Generation.objects.filter(run=run).values_list("error", flat=True)) == {"content_filter"}


def test_uploaded_and_inferred_answers_are_judged_side_by_side() -> None:
    run = inferred(version=a_version(a_project()))
    counts = run.judgements.filter(state="scored").values_list("candidate__name", flat=True)
    assert sorted(counts) == ["alpha"] * 3 + ["beta"] * 3 + ["gamma"] * 3


def test_only_drawn_rows_are_asked_about() -> None:
    with ScriptedJudge(reply=answering) as judge:
        run = a_run(
            unanswered(9),
            a_metric(judge.url),
            candidate_models=[a_candidate(judge.url)],
            sample_size=4,
            seed=1,
        )
        assert work(run).scored == 4
    assert (
        Candidate.objects.get(name="gamma").responses
        == Response.objects.filter(candidate__name="gamma").count()
        == 4
    )


def test_rule_programs_judge_answers_too() -> None:
    program = "# DSL\n@单个字段:精确存在于:axxxb\n@格式限制:字符串"
    with ScriptedJudge(reply=answering) as judge:
        rules = a_metric(judge.url, rules=program, judges=())
        run = work(a_run(unanswered(), rules, candidate_models=[a_candidate(judge.url)]))
    assert list(run.judgements.order_by("position").values_list("score", flat=True)) == [5.0, 5.0, 1.0]


def test_a_version_never_changes_by_a_run() -> None:
    version = a_version(a_project())
    Candidate.objects.filter(version=version).update(rows=3, responses=3)
    before = list(row_writer.whole_rows(version, only_valid=True))
    inferred(version=version)
    assert list(row_writer.whole_rows(version, only_valid=True)) == before
    assert [one.name for one in selectors.candidates_of(version)] == ["alpha", "beta"]
    assert [one.name for one in candidates_of(version)] == ["alpha", "beta"]
    row = selectors.sample_rows(version)[0]
    assert {one.candidate.name for one in selectors.responses_of(row)} == {"alpha", "beta"}
    assert {line.answers for line in row_browser.rows_page(version, row_browser.BrowserFilter()).rows} == {2}


def test_a_run_that_is_paused_keeps_the_answers_that_were_under_way() -> None:
    def slow(asked: Received) -> Answer:
        return Answer(content="[[5]]") if is_judge(asked) else Answer(content="ok", delay=4)

    with ScriptedJudge(reply=slow) as judge:
        run = a_run(unanswered(20), a_metric(judge.url), candidate_models=[a_candidate(judge.url)])
        thread = threading.Thread(target=lambda: threaded(run))
        thread.start()
        wait_until(lambda: len(judge.requests) == 20)
        assert stopping.run_pause(Run.objects.get(pk=run.pk))
        thread.join(TIMEOUT)
        paused = len(judge.requests)
        assert Generation.objects.filter(run=run, state="answered").count() == paused == 20
        services.run_resume(Run.objects.get(pk=run.pk))
        assert work(run).scored == 20
        assert len(judge.requests) == 40


def threaded(run: Run) -> None:
    work(run)
    connections.close_all()


def test_what_was_judged_by_an_answer_that_another_worker_forestalled_is_given_back() -> None:
    with ScriptedJudge(reply=answering) as judge:
        run = a_run(unanswered(1), a_metric(judge.url), candidate_models=[a_candidate(judge.url)])

        def other_is_faster(asked: Received) -> Answer | str:
            if not is_judge(asked):
                other = threading.Thread(target=answer_first)
                other.start()
                other.join()
            return answering(asked)

        judge.server.script = other_is_faster
        assert work(run).scored == 1
    assert run.judgements.get().score == len("theirs!")
    assert not Generation.objects.filter(run=run).exists()


def answer_first() -> None:
    Response.objects.filter(candidate__name="gamma").update(raw='{"content":"theirs!"}')
    connections.close_all()


def test_two_workers_ask_for_each_answer_once() -> None:
    with ScriptedJudge(reply=answering) as judge:
        metrics = [a_metric(judge.url, name=name) for name in ("a", "b")]
        run = a_run(unanswered(120), *metrics, candidate_models=[a_candidate(judge.url)])
        threads = [threading.Thread(target=lambda n=n: threaded_as(run, f"test:{n}:1")) for n in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        asked = [one for one in judge.requests if not is_judge(one)]
    assert (Run.objects.get(pk=run.pk).scored, len(asked)) == (240, 120)


def threaded_as(run: Run, owner: str) -> None:
    work(run, owner)
    connections.close_all()


def test_the_pages_show_how_an_answer_came_about_or_why_there_is_none(client: Client) -> None:
    failing = inferred(lambda asked: scripted.refusal(400, "maximum context length is 10 tokens"))
    olga = User.objects.create_user("olga", is_superuser=True)
    client.force_login(olga)
    address = f"/p/{failing.project.slug}/runs/{failing.pk}/"
    page = client.get(f"{address}judgements/{failing.judgements.all()[0].pk}/").content.decode()
    assert "How this answer was generated" in page
    assert "maximum context length" in page
    assert "Failed attempts" in client.get(address).content.decode()
    assert client.get(f"{address}judgements/").status_code == 200


def test_answers_are_kept_as_a_new_version_and_what_failed_is_reported(client: Client) -> None:
    version = unanswered()
    run = inferred(
        lambda asked: scripted.refusal(400, "no") if asked.prompt.endswith(" 2") else answering(asked),
        version=version,
    )
    client.force_login(User.objects.create_user("olga", is_superuser=True))
    address = f"/p/{run.project.slug}/runs/{run.pk}/"
    assert client.post(f"{address}keep-answers/").status_code == 302
    made = import_or_wait(Version.objects.get(origin="run").pk)
    assert (made.state, made.format, made.rows, made.valid_rows) == ("ready", "judge_only", 2, 2)
    assert made.models_found == {"gamma": {"rows": 2, "responses": 2}}
    assert [row.raw for row in selectors.sample_rows(made)] == [
        row.raw for row in selectors.sample_rows(version) if row.line != 2
    ]
    assert client.get(f"/p/{run.project.slug}/datasets/{made.dataset_id}/v{made.number}/").status_code == 200
    client.post(f"{address}keep-answers/")
    assert Version.objects.filter(origin="run").count() == 1
    assert "1 failed answer is not included." in client.get(address).content.decode()


def test_kept_answers_are_not_mixed_with_those_of_an_uploaded_model_of_the_same_name() -> None:
    version = a_version(a_project(), rows=1)
    with ScriptedJudge(reply=answering) as judge:
        asked = [a_candidate(judge.url, name="alpha")]
        run = services.run_create(
            project=version.dataset.project,
            name="one",
            version=version,
            candidates=[],
            metrics=[services.ChosenMetric(a_metric(judge.url))],
            user=None,
            candidate_models=asked,
        )
        work(run)
    ((_, line),) = answered_lines(version, f"run{run.pk}")
    outputs = {one["model_name"]: one["responses"] for one in json.loads(line)["model_outputs"]}
    assert [len(outputs["alpha"]), outputs["alpha"][0]["content"], len(outputs["beta"])] == [1, "xx", 1]


def prompts(asked: Received) -> Answer:
    return (
        Answer(content="[[5]]", tokens=(100, 10)) if is_judge(asked) else Answer(content="a", tokens=(7, 2))
    )


def test_the_report_shows_what_answers_cost_apart_from_judging() -> None:
    cost = report_document(inferred(prompts))["cost"]
    assert cost["answers"] == {"gamma": {"requests": 3, "prompt_tokens": 21, "completion_tokens": 6}}
    assert cost["judges"] == {"requests": 3, "prompt_tokens": 300, "completion_tokens": 30}
    assert (cost["requests"], cost["retries"], cost["prompt_tokens"]) == (6, 0, 321)


def test_money_is_shown_separately_too_where_prices_are_set() -> None:
    version = unanswered()
    with ScriptedJudge(reply=prompts) as judge:
        priced = {"input_price": 1_000_000, "output_price": 0, "currency": "EUR"}
        endpoint = Endpoint.objects.create(
            project=version.dataset.project, name="gamma", url=judge.url, model="m", **priced
        )
        asked = a_candidate(judge.url, endpoint=endpoint.pk)
        run = work(a_run(version, a_metric(judge.url), candidate_models=[asked]))
    cost = report_document(run)["cost"]
    assert (cost["money"], cost["answers"]["gamma"]["money"], cost["judges"]["money"]) == (21.0, 21.0, 0.0)


def test_a_candidate_that_is_down_is_said_to_be() -> None:
    version = unanswered()
    endpoint = Endpoint.objects.create(project=version.dataset.project, name="gamma", url="u", model="m")
    run = a_run(
        version, a_metric("http://127.0.0.1:9/v1"), candidate_models=[a_candidate("", endpoint=endpoint.pk)]
    )
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    limiter.ensure_row(f"endpoint {endpoint.pk}")
    EndpointLoad.objects.update(down_since=limiter.now() - 5, problem="connect")
    (down,) = failing(endpoint_states(Run.objects.get(pk=run.pk)))
    assert (down.name, "Can't connect" in down.why) == ("gamma", True)
