"""The run worker against a judge over HTTP: every judgement ends exactly once, scored or with a reason."""

from __future__ import annotations

import json
import threading

import pytest
from django.db import connections, transaction
from msgspec import structs

from judging.core.judges import scripted
from judging.core.judges.scripted import Answer, Received, ScriptedJudge
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.core.results import JudgementResult
from judging.core.values import Outcome
from judging.engine import chunks, run_worker, stopping
from judging.engine.write_buffer import WriteBatch, write
from judging.records.models import Chunk, Judgement, JudgeReply, Run, RunState
from judging.runs import services
from judging.transfer.export.files import jsonl_lines
from tests.deadlines import TIMEOUT, wait_until
from tests.judging.working import at_work, work
from tests.make import a_metric, a_project, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


def states(run: Run) -> set[tuple[str, str]]:
    return set(run.judgements.values_list("state", "reason"))


def judged_by(reply: object, **metric: object) -> Run:
    with ScriptedJudge(reply=reply) as judge:
        return work(a_run(a_version(a_project()), a_metric(judge.url, **metric)))


def test_every_response_gets_the_score_that_its_judge_gave() -> None:
    run = judged_by(lambda asked: "Score: [[8]]" if "alpha" in asked.prompt else "Score: [[3]]")
    assert run.state == RunState.FINISHED
    assert run.scored == run.total == 6
    assert set(run.judgements.values_list("candidate__name", "score")) == {("alpha", 8.0), ("beta", 3.0)}


def test_the_exact_request_the_reply_and_its_reasoning_are_kept() -> None:
    run = judged_by(lambda _: Answer(content="Score: [[8]]", reasoning="I compared them."))
    kept = JudgeReply.objects.filter(judgement__run=run).order_by("judgement__position").first()
    assert kept is not None
    assert '"Q: question 1\\nA: alpha says 1.1"' in kept.request
    assert (kept.content, kept.reasoning) == ("Score: [[8]]", "I compared them.")
    assert kept.calls.count("started_unix") == 1


def test_a_judge_is_asked_once_for_each_judgement() -> None:
    with ScriptedJudge(reply="Score: [[5]]") as judge:
        run = work(a_run(a_version(a_project(), rows=130), a_metric(judge.url)))
        assert len(judge.requests) == run.total == 260


def test_a_reply_without_a_verdict_is_unparsed_and_not_asked_again() -> None:
    with ScriptedJudge(reply="A fine answer.") as judge:
        run = work(a_run(a_version(a_project()), a_metric(judge.url)))
        assert len(judge.requests) == 6
    assert states(run) == {("unparsed", "nothing_offered")}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(), "empty_reply"),
        (Answer(body=b"<html><body>Welcome to the gateway</body></html>"), "bad_reply"),
        (Answer(fault="cut"), "cut"),
        (Answer("Score: [[7]]", fault="half_stream"), "cut"),
        (scripted.server_error(), "server_error"),
        (scripted.rate_limited(), "rate_limited"),
        (scripted.refusal(401, "wrong key"), "bad_key"),
    ],
)
def test_a_faulty_judge_makes_errors_that_say_why(answer: Answer, reason: str) -> None:
    assert states(judged_by(lambda _: answer)) == {("error", reason)}


def test_a_judge_that_stumbles_is_asked_again_and_every_try_is_kept() -> None:
    seen: dict[str, int] = {}

    def stumbling(asked: Received) -> Answer | str:
        seen[asked.prompt] = seen.get(asked.prompt, 0) + 1
        return scripted.rate_limited("0") if seen[asked.prompt] == 1 else "Score: [[6]]"

    run = judged_by(stumbling)
    assert states(run) == {("scored", "")}
    assert (run.calls, run.calls_failed) == (12, 6)


def test_a_judge_nobody_listens_for_is_an_error_of_every_item() -> None:
    run = work(a_run(a_version(a_project(), rows=1), a_metric("http://127.0.0.1:9/v1")))
    assert states(run) == {("error", "connect")}


def test_a_template_that_names_what_is_not_there_is_an_error_of_the_item() -> None:
    run = judged_by("Score: [[5]]", template="{{ data.nothing }}")
    assert {state for state, _ in states(run)} == {"error"}
    assert all(reason.startswith("prompt_") for _, reason in states(run))


def test_scripts_run_before_and_after_the_judge() -> None:
    run = judged_by(
        "Score: [[5]]",
        preprocess="def preprocess(data, resp):\n    data.extra = 'seen'\n    return 1\n",
        template="{{ data.extra }} {{ preprocess_result }}",
        postprocess="def postprocess(judge_reqs):\n    return judge_reqs[0].messages[0].content == 'seen 1'\n",
    )
    assert set(run.judgements.values_list("state", "value", "score")) == {("scored", "true", 1.0)}


FIND_CLAIMS = """
def preprocess(data, resp, **kwargs):
    data.claims = kwargs["judge_resps"][-1].content.split(";")
    print(len(data.claims), kwargs["judge_models"][0].name, kwargs["results"])
    return len(data.claims)
"""


def test_scripts_between_judges_see_their_replies_and_shape_the_next_prompt() -> None:
    """The first judge lists claims, a script picks them, the second judge scores them."""

    def reply(asked: Received) -> str:
        return "a; b; c" if asked.prompt == "List." else f"Score: [[{len(asked.prompt)}]]"

    with ScriptedJudge(reply=reply) as judge:
        first = JudgeModel(name="lister", url=judge.url, model="m", template="List.")
        second = structs.replace(
            first, name="scorer", template="{{ data.claims | join }}{{ preprocess_result }}"
        )
        scripts = (
            Script(kind="postprocess", source="def postprocess(resp):\n    return 'begun'"),
            Script(kind="preprocess", source=FIND_CLAIMS, after=1),
        )
        metric = MetricDefinition(name="claims", judges=(first, second), scripts=scripts)
        run = work(a_run(a_version(a_project(), rows=1, models=["alpha"]), metric))
    (judgement,) = run.judgements.all()
    assert (judgement.state, judgement.score) == ("scored", 6.0)
    begun, found = json.loads(judgement.scripts)
    assert (begun["result"], found["result"]) == ("begun", 3)
    assert found["printed"] == "3 lister ['begun']\n"
    assert found["changed"]["data"] == {"claims": ["a", " b", " c"]}


def test_a_postprocess_that_returns_none_gives_no_score() -> None:
    run = judged_by("Score: [[5]]", postprocess="def postprocess(**kwargs):\n    return None\n")
    assert states(run) == {("no_score", "none_returned")}


def test_an_integer_of_64_bits_is_kept_exactly() -> None:
    run = judged_by("x", postprocess="def postprocess(**kwargs):\n    return 9007199254740993\n")
    assert set(run.judgements.values_list("value", flat=True)) == {"9007199254740993"}


def test_a_regular_expression_of_the_metric_reads_the_score() -> None:
    run = judged_by("total 7 of 9", parse={"regex": r"total (\d+)"})
    assert set(run.judgements.values_list("score", flat=True)) == {7.0}


def test_a_reply_with_nul_and_half_characters_is_stored() -> None:
    run = judged_by("bad \x00 text [[4]]")
    assert states(run) == {("scored", "")}


def test_a_paused_run_asks_no_further_and_goes_on_where_it_was() -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.6)) as judge:
        run = a_run(a_version(a_project(), rows=200), a_metric(judge.url))
        worker = at_work(run)
        wait_until(lambda: Run.objects.get(pk=run.pk).done > 20)
        assert stopping.run_pause(run)
        worker.join(TIMEOUT)
        paused = Run.objects.get(pk=run.pk)
        assert paused.state == RunState.PAUSED
        assert 0 < paused.done < 400
        assert not Chunk.objects.filter(run=run).exclude(owner="").exists()
        services.run_resume(run)
        assert work(run).scored == 400
        assert len(judge.requests) == 400


def test_a_cancelled_run_keeps_what_was_judged() -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.6)) as judge:
        run = a_run(a_version(a_project(), rows=200), a_metric(judge.url))
        worker = at_work(run)
        wait_until(lambda: Run.objects.get(pk=run.pk).done > 20)
        assert stopping.run_cancel(run)
        worker.join(TIMEOUT)
    ended = Run.objects.get(pk=run.pk)
    assert ended.state == RunState.CANCELLED
    assert ended.judgements.filter(state="scored").count() == ended.done
    assert ended.judgements.filter(state="not_run").count() == ended.not_run > 0


def test_retrying_makes_new_attempts_of_what_failed_and_keeps_the_old() -> None:
    failing = [True]

    def moody(asked: Received) -> Answer | str:
        return scripted.refusal(403, "no") if failing[0] and "alpha" in asked.prompt else "[[5]]"

    with ScriptedJudge(reply=moody) as judge:
        run = work(a_run(a_version(a_project()), a_metric(judge.url)))
        assert (run.scored, run.errors) == (3, 3)
        failing[0] = False
        assert services.run_retry(run) == 3
        run = work(run)
    assert (run.state, run.scored, run.errors, run.total) == (RunState.FINISHED, 6, 0, 6)
    assert run.judgements.filter(current=False, state="error", attempt=1).count() == 3
    assert run.judgements.filter(current=True, attempt=2).count() == 3


def test_two_workers_share_a_run_without_judging_anything_twice() -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.02)) as judge:
        run = a_run(a_version(a_project(), rows=300), a_metric(judge.url))
        for worker in (at_work(run, "test:1:1"), at_work(run, "test:2:1")):
            worker.join(TIMEOUT)
        assert len(judge.requests) == 600
    assert Run.objects.get(pk=run.pk).scored == 600


def test_a_living_worker_whose_leases_ran_out_while_the_database_was_away_asks_nobody_twice() -> None:
    with ScriptedJudge(reply=lambda _: Answer(content="[[5]]", delay=0.5)) as judge:
        run = a_run(a_version(a_project(), rows=150), a_metric(judge.url))
        worker = at_work(run)
        while worker.is_alive():
            Chunk.objects.filter(run=run, done=False).update(owner="", lease_until=0)
            worker.join(0.1)
        assert len(judge.requests) == 300
    assert Run.objects.get(pk=run.pk).scored == 300


def test_a_free_chunk_that_is_locked_is_waited_for() -> None:
    with ScriptedJudge() as judge:
        run = a_run(a_version(a_project(), rows=2), a_metric(judge.url))
        run_worker.runs_to_work_on("test:1:1", run.pk)
    locked, leased = threading.Event(), list[chunks.Leased | None]()

    def lease() -> None:
        locked.wait(TIMEOUT)
        leased.append(chunks.lease(run.pk, "test:1:1"))
        connections.close_all()

    thread = threading.Thread(target=lease)
    thread.start()
    with transaction.atomic():
        Chunk.objects.update(owner="")
        locked.set()
        thread.join(0.3)  # it waits for this transaction
    thread.join(TIMEOUT)
    assert leased[0] is not None


def test_what_another_worker_has_taken_is_not_taken_back() -> None:
    with ScriptedJudge() as judge:
        run = a_run(a_version(a_project(), rows=2), a_metric(judge.url))
        run_worker.runs_to_work_on("test:1:1", run.pk)
        leased = chunks.lease(run.pk, "one:1:1")
        assert leased is not None
    for holder, after in [("two:2:2", "two:2:2"), ("", "one:1:1")]:
        Chunk.objects.update(owner=holder)
        chunks.renew([leased.chunk], "one:1:1")
        assert Chunk.objects.get().owner == after
    Chunk.objects.update(owner="", done=True)
    chunks.renew([leased.chunk], "one:1:1")
    assert Chunk.objects.get().owner == ""


def test_a_writer_that_lost_its_lease_writes_nothing() -> None:
    with ScriptedJudge(reply="[[5]]") as judge:
        run = a_run(a_version(a_project(), rows=2), a_metric(judge.url))
        run_worker.runs_to_work_on("test:1:1", run.pk)
        leased = chunks.lease(run.pk, "one:1:1")
        assert leased is not None
        items = chunks.load(leased, "judge_only")
        Chunk.objects.update(owner="two:2:2")
        judged = [chunks.Judged(items[0], JudgementResult(Outcome("scored", 5)))]
        write(WriteBatch(judged, finished={leased.chunk}), "one:1:1")
    assert Judgement.objects.filter(state="scored").count() == 0


def comparing(asked: Received) -> str:
    """Always prefers the first side."""
    return "[[A>B]]"


COMPARISON = {
    "template": "{{ data.ref_answer }} | {{ response.content }}",
    "parse": "comparison",
    "both_orders": True,
    "preprocess": "def preprocess(data, resp):\n    data.ref_answer = 'the reference'\n",
}


def test_a_comparison_in_both_orders_is_asked_twice_and_a_flip_is_flagged() -> None:
    with ScriptedJudge(reply=comparing) as judge:
        run = work(
            a_run(a_version(a_project(), rows=1, models=("alpha",)), a_metric(judge.url, **COMPARISON))
        )
        prompts = {asked.prompt for asked in judge.requests}
    assert prompts == {"the reference | alpha says 1.1", "alpha says 1.1 | the reference"}
    (made,) = run.judgements.all()
    assert (made.score, made.flags) == (3.0, "order_flip")
    assert list(made.replies.order_by("swapped").values_list("swapped", flat=True)) == [False, True]


def test_the_download_shows_each_order_s_verdict() -> None:
    run = judged_by(comparing, **COMPARISON)
    (line, *_) = (json.loads(one) for one in jsonl_lines(run))
    assert [(one["swapped"], one["verdict"]) for one in line["judges"]] == [(False, 2), (True, 4)]
    assert (line["value"], line["flags"]) == (3, ["order_flip"])


def two_judges(url: str, second: str) -> MetricDefinition:
    first, *_ = a_metric(url).judges
    return MetricDefinition(
        name="m",
        judges=(first, structs.replace(first, name="second", template=second)),
    )


def test_a_later_judge_reads_what_the_earlier_one_said() -> None:
    with ScriptedJudge(reply=lambda asked: "[[2]]" if "Q:" in asked.prompt else "[[6]]") as judge:
        metric = two_judges(judge.url, "It said {{ judge_resps[0].content }}")
        run = work(a_run(a_version(a_project(), rows=1, models=("alpha",)), metric))
        assert [asked.prompt for asked in judge.requests][1] == "It said [[2]]"
    assert run.judgements.get().score == 4.0


def test_a_judge_that_builds_on_nobody_does_not_wait_for_the_one_before() -> None:
    """The first judge never replies; the second is called anyway."""
    with ScriptedJudge(
        reply=lambda asked: Answer(fault="hang") if "Q:" in asked.prompt else "[[6]]"
    ) as judge:
        metric = two_judges(judge.url, "Other: {{ response.content }}")
        run = a_run(a_version(a_project(), rows=1, models=("alpha",)), metric)
        worker = at_work(run)
        wait_until(lambda: len(judge.requests) == 2)
        stopping.run_cancel(run)
    worker.join(TIMEOUT)
    assert not worker.is_alive()
