"""Stored replies are re-parsed with another parser, postprocess or scale; no judge model is called."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from msgspec import structs

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import ScriptedJudge
from judging.core.metric_definition import MetricDefinition, Script
from judging.engine import chunks, planning, run_worker, stopping
from judging.engine.write_buffer import WriteBatch, write
from judging.filters.judgement_filter import Filters
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.services import metric_create, metric_edit
from judging.records.definitions import definition_now
from judging.records.models import JudgeReply, Run, RunMetric
from judging.records.overrides import override_add
from judging.reports.selectors import metrics_of
from judging.runs import services
from judging.runs.rerun import reparse
from judging.runs.rerun.preview import CHANGES, ReparsePreview, preview_reading
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import EVERYTHING, Selection
from judging.runs.services import ChosenMetric, run_create
from judging.transfer.export.files import jsonl_lines
from tests.conftest import ClientOf
from tests.judging.judged import said
from tests.make import a_metric, a_version, with_scripts

pytestmark = pytest.mark.django_db(transaction=True)

REPLY = "It names 8 points in all."
BY_REGEX = {"regex": r"(\d+) points"}


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(reply=REPLY) as server:
        yield server


@pytest.fixture
def metric(project: Project, judge: ScriptedJudge, alice: User) -> Metric:
    return metric_create(project=project, definition=a_metric(judge.url), user=alice)


def work(run: Run) -> Run:
    run_worker.work("test:1:1", stop=threading.Event(), only=run.pk)
    return Run.objects.get(pk=run.pk)


def a_run(metric: Metric, version: Version, name: str = "run") -> Run:
    """A new run of the metric, not planned yet."""
    first = MetricVersion.objects.get(metric=metric)
    return run_create(
        project=metric.project,
        name=name,
        version=version,
        candidates=list(version.candidates.all()),
        metrics=[ChosenMetric(MetricDefinition.from_json(first.definition), first)],
        user=None,
    )


@pytest.fixture
def run(project: Project, metric: Metric) -> Run:
    """Six judgements whose replies could not be parsed."""
    return work(a_run(metric, a_version(project)))


def run_metric(run: Run) -> RunMetric:
    return RunMetric.objects.select_related("metric_version").get(run=run)


def read_by(definition: MetricDefinition, **judge: object) -> MetricDefinition:
    return structs.replace(
        definition, judges=tuple(structs.replace(one, **judge) for one in definition.judges)
    )


def again(run: Run, **judge: object) -> Run:
    found = run_metric(run)
    definition = read_by(definition_now(found), **judge)
    reparse.run_reparse(run=run, run_metric=found, definition=definition, user=None)
    return work(run)


@pytest.fixture
def stopped(project: Project, metric: Metric, judge: ScriptedJudge) -> Run:
    """250 judgements in three chunks, paused after the first chunk was judged."""
    run = a_run(metric, a_version(project, rows=125))
    planning.plan(run.pk)
    leased = chunks.lease(run.pk, "test:1:1")
    assert leased
    result = [chunks.Judged(one, said(None, content=REPLY)) for one in chunks.load(leased, "judge_only")]
    write(WriteBatch(result, finished={leased.chunk}), "test:1:1")
    stopping.run_pause(run)
    return Run.objects.get(pk=run.pk)


@pytest.mark.parametrize("stop", [stopping.run_pause, stopping.run_cancel])
def test_what_a_stopped_run_received_is_read_again_and_the_rest_is_not_asked(
    stopped: Run, judge: ScriptedJudge, stop: Callable[[Run], bool]
) -> None:
    stop(stopped)
    run = again(stopped, parse=BY_REGEX)
    assert (run.state, run.scored, run.not_run, run.total) == ("cancelled", 100, 150, 250)
    assert judge.requests == []


def test_the_rest_is_read_in_the_new_way_when_it_is_resumed(stopped: Run, judge: ScriptedJudge) -> None:
    run = again(again(stopped, parse={"regex": "I (would)"}), parse=BY_REGEX)
    assert services.run_resume(run)
    run = work(run)
    assert (run.state, run.scored, run.unparsed) == ("finished", 250, 0)
    assert len(judge.requests) == 150
    assert not run.chunks.filter(done=False).exists()


@pytest.mark.parametrize("how", ["retry", "judge again"])
def test_so_it_is_where_something_else_makes_the_run_go_on(
    stopped: Run, judge: ScriptedJudge, how: str
) -> None:
    run = again(stopped, parse={"regex": "I (would)"})
    if how == "retry":
        assert services.run_retry(run, ("unparsed",)) == 100
    else:
        assert run_rejudge(run=run, selection=Selection(Filters(state="unparsed")), user=None) == 100
    run = work(run)
    assert (run.state, run.done, len(judge.requests)) == ("finished", 250, 250)


def test_a_run_that_was_stopped_while_it_was_read_again_loses_nothing(
    stopped: Run, judge: ScriptedJudge
) -> None:
    found = run_metric(stopped)
    definition = read_by(definition_now(found), parse=BY_REGEX)
    assert reparse.run_reparse(run=stopped, run_metric=found, definition=definition, user=None) == 100
    stopping.run_cancel(stopped)
    run = again(stopped, parse={"regex": r"(8) points"})
    assert services.run_resume(run)
    run = work(run)
    assert (run.state, run.scored, len(judge.requests)) == ("finished", 250, 150)


def test_replies_that_still_come_are_waited_for(stopped: Run) -> None:
    services.run_resume(stopped)
    assert chunks.lease(stopped.pk, "test:1:1")
    stopping.run_pause(stopped)
    found = run_metric(stopped)
    definition = read_by(definition_now(found), parse=BY_REGEX)
    assert reparse.run_reparse(run=stopped, run_metric=found, definition=definition, user=None) == 0
    assert stopped.chunks.filter(done=False).count() == 2
    assert not found.readings.exists()


def test_a_spent_budget_does_not_keep_a_run_from_what_is_free(run: Run, judge: ScriptedJudge) -> None:
    Run.objects.filter(pk=run.pk).update(budget_calls=6)
    run = again(run, parse=BY_REGEX)
    assert (run.state, run.scored) == ("finished", 6)


def test_a_run_that_spent_its_budget_can_be_read_again_and_then_given_more(
    stopped: Run, alice: User, client_of: ClientOf
) -> None:
    Run.objects.filter(pk=stopped.pk).update(budget_calls=100, calls=100, problem="budget_calls")
    run = again(stopped, parse=BY_REGEX)
    assert (run.state, run.scored) == ("cancelled", 100)
    address = reverse("runs:detail", args=("physics", run.pk))
    assert 'name="budget_calls"' in client_of(alice).get(address).content.decode()
    client_of(alice).post(reverse("runs:resume", args=("physics", run.pk)), {"budget_calls": ""})
    assert work(run).scored == 250


def test_the_page_of_a_stopped_run_says_what_comes_of_it(
    stopped: Run, alice: User, client_of: ClientOf
) -> None:
    place = reverse("runs:read_again", args=("physics", stopped.pk, run_metric(stopped).pk))
    page = client_of(alice).get(place).content.decode()
    assert "150 judgements of this run are not done yet" in page
    assert "disabled" not in page
    assert (
        place in client_of(alice).get(reverse("runs:detail", args=("physics", stopped.pk))).content.decode()
    )
    services.run_resume(stopped)
    assert "The run is in progress." in client_of(alice).get(place).content.decode()


def test_replies_are_read_again_and_nobody_is_asked(run: Run, judge: ScriptedJudge) -> None:
    assert (run.unparsed, len(judge.requests)) == (6, 6)
    run = again(run, parse=BY_REGEX)
    assert (run.state, run.scored, run.unparsed, run.total) == ("finished", 6, 0, 6)
    assert set(run.judgements.filter(current=True).values_list("score", flat=True)) == {8.0}
    assert len(judge.requests) == 6


def test_the_earlier_attempts_and_their_replies_stay(run: Run) -> None:
    run = again(run, parse=BY_REGEX)
    earlier = run.judgements.filter(current=False)
    assert set(earlier.values_list("state", "attempt")) == {("unparsed", 1)}
    assert set(JudgeReply.objects.values_list("judgement", flat=True)) == {one.pk for one in earlier}


def test_nothing_is_counted_as_asked_twice(run: Run) -> None:
    before = (run.calls, run.prompt_tokens)
    run = again(run, parse=BY_REGEX)
    assert (run.calls, run.prompt_tokens) == before


def test_a_reading_of_a_reading_still_knows_who_asked(run: Run) -> None:
    again(run, parse=BY_REGEX)
    run = again(run, parse={"regex": r"say (\d)"})
    third = run.judgements.filter(current=True).first()
    assert third is not None
    assert third.attempt == 3
    assert third.replies_from is not None
    assert third.replies_from.attempt == 1


def test_a_postprocess_reads_the_stored_replies_and_what_preprocess_did(run: Run) -> None:
    found = run_metric(run)
    script = "def postprocess(judge_resps, **kwargs):\n    return len(judge_resps[0].content)\n"
    definition = structs.replace(definition_now(found), **with_scripts({"postprocess": script}))
    reparse.run_reparse(run=run, run_metric=found, definition=definition, user=None)
    work(run)
    assert set(run.judgements.filter(current=True).values_list("score", flat=True)) == {float(len(REPLY))}


def test_what_would_be_asked_something_else_is_left_as_it_is_and_counted(
    project: Project, judge: ScriptedJudge, alice: User
) -> None:
    same = "def preprocess(data, resp):\n    return 0\n"
    metric = metric_create(project=project, definition=a_metric(judge.url, preprocess=same), user=alice)
    run = work(a_run(metric, a_version(project)))
    found = run_metric(run)
    other = Script(kind="preprocess", source=same.replace("0", "int('alpha says 2' in resp.content)"))
    new = structs.replace(read_by(definition_now(found), parse=BY_REGEX), scripts=(other,))
    definition = reparse.reparsed_definition(definition_now(found), new)
    assert definition is not None
    preview = preview_reading(found, definition, EVERYTHING)
    assert preview is not None
    assert dict(preview.counts) == {CHANGES["scored"]: 5, CHANGES["asks"]: 1}
    reparse.run_reparse(run=run, run_metric=found, definition=definition, user=None)
    run = work(run)
    assert (run.scored, run.unparsed, len(judge.requests)) == (5, 1, 6)
    assert run.judgements.filter(current=True, state="unparsed", flags="would_ask_again").count() == 1


def test_a_retry_after_that_asks_again_and_reads_the_new_way(run: Run, judge: ScriptedJudge) -> None:
    run = again(run, parse={"regex": r"(\d+) stars"})
    judge.server.script = lambda _: "3 stars"
    services.run_retry(run, ("unparsed",))
    run = work(run)
    assert (run.scored, len(judge.requests)) == (6, 12)


def test_pages_and_downloads_read_the_replies_of_who_asked(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    run = again(run, parse=BY_REGEX)
    now = run.judgements.filter(current=True).order_by("position").first()
    assert now is not None
    page = client_of(alice).get(f"/p/physics/runs/{run.pk}/judgements/{now.pk}/", {"tab": "reply"})
    assert REPLY in page.text
    result = [json.loads(line) for line in jsonl_lines(run)]
    assert {(one["attempt"], one["judges"][0]["verdict"]) for one in result} == {(2, 8)}
    assert {one["judges"][0]["reply"]["content"] for one in result} == {REPLY}


def test_the_report_uses_the_scale_by_which_the_replies_are_read(run: Run) -> None:
    found = run_metric(run)
    definition = structs.replace(read_by(definition_now(found), parse=BY_REGEX), max_score=20)
    reparse.run_reparse(run=run, run_metric=found, definition=definition, user=None)
    assert metrics_of(work(run))[found.pk].high == 20


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({"parse": BY_REGEX}, True),
        ({"template": "other"}, False),
        ({"system_prompt": "Be strict."}, False),
        ({"repeats": 2}, False),
    ],
)
def test_only_versions_that_ask_the_same_are_offered(
    change: dict[str, object], fits: bool, run: Run, metric: Metric
) -> None:
    first = MetricDefinition.from_json(MetricVersion.objects.get(metric=metric).definition)
    metric_edit(metric=metric, definition=read_by(first, **change), based_on=1, user=None)
    assert bool(reparse.fitting_versions(run_metric(run))) is fits


def address(run: Run) -> str:
    return f"/p/physics/runs/{run.pk}/read-again/{run_metric(run).pk}/"


def test_a_version_is_chosen_on_the_page(run: Run, metric: Metric, alice: User, client_of: ClientOf) -> None:
    first = MetricDefinition.from_json(MetricVersion.objects.get(metric=metric).definition)
    metric_edit(metric=metric, definition=read_by(first, parse=BY_REGEX), based_on=1, user=None)
    client = client_of(alice)
    assert 'value="2"' in client.get(address(run)).text
    assert "Re-parse 6 items" in client.post(address(run), {"version": "2"}).text
    assert run.judgements.count() == 6
    page = client.post(address(run), {"version": "2", "begin": "1"}, follow=True)
    assert "Re-parsing 6 judgements" in page.text
    assert work(run).scored == 6


def preview_of(run: Run, client: Client, query: str = "") -> ReparsePreview:
    found: ReparsePreview = client.post(address(run) + query, {**SETTINGS, "try": "1"}).context["preview"]
    return found


def test_a_preview_shows_before_and_after_and_changes_nothing(
    run: Run, judge: ScriptedJudge, alice: User, client_of: ClientOf
) -> None:
    preview = preview_of(run, client_of(alice))
    assert (preview.read, preview.mean_before, preview.mean_after) == (6, None, 8)
    assert [(str(name), count) for name, count in preview.counts] == [("Scored now", 6)]
    assert [(one.before, one.after) for one in preview.changed] == [("unparsed", "8")] * 6
    assert (run.judgements.count(), run.metrics.get().readings.count(), len(judge.requests)) == (6, 0, 6)


def test_a_preview_is_what_comes_of_it(run: Run, alice: User, client_of: ClientOf) -> None:
    client = client_of(alice)
    preview = preview_of(run, client)
    client.post(address(run), {**SETTINGS, "begin": "1"})
    scores = work(run).judgements.filter(current=True).values_list("score", flat=True)
    assert preview.mean_after == sum(scores) / len(scores)


def test_an_override_stays_in_the_mean_after(run: Run, alice: User, bob: User, client_of: ClientOf) -> None:
    override_add(judgement=run.judgements.order_by("position")[0], value=2, reason="so", by=bob)
    preview = preview_of(run, client_of(alice))
    assert (preview.mean_before, preview.mean_after) == (2, 7)


def test_a_large_run_is_previewed_in_part(
    run: Run, alice: User, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judging.runs.rerun.preview.MOST", 4)
    page = client_of(alice).post(address(run), {**SETTINGS, "try": "1"})
    assert "The preview reads the first 4 judgements." in page.text


@pytest.mark.parametrize(("query", "count"), [("?candidate=alpha", 3), ("?q=alpha+says+2", 1)])
def test_what_a_filter_means_is_read_again_and_nothing_else(
    run: Run, alice: User, client_of: ClientOf, query: str, count: int
) -> None:
    client = client_of(alice)
    assert preview_of(run, client, query).read == count
    client.post(address(run) + query, {**SETTINGS, "begin": "1"})
    run = work(run)
    assert (run.state, run.scored, run.unparsed) == ("finished", count, 6 - count)


def test_one_item_is_read_again_and_the_metric_stays_as_it_was(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    one = run.judgements.order_by("position")[0]
    client_of(alice).post(f"{address(run)}?only={one.pk}", {**SETTINGS, "begin": "1"})
    assert work(run).judgements.filter(attempt=2).get().value == "8"
    assert definition_now(run_metric(run)).judges[0].parse == "score"


def test_a_part_is_not_read_on_another_scale(run: Run, alice: User, client_of: ClientOf) -> None:
    page = client_of(alice).post(
        f"{address(run)}?candidate=alpha", {**SETTINGS, "max_score": "20", "begin": "1"}
    )
    assert (page.status_code, "A different scale can only be applied" in page.text) == (422, True)
    assert run.judgements.count() == 6


def test_a_preview_asks_the_database_no_more_for_more_judgements(
    project: Project, metric: Metric, alice: User, client_of: ClientOf
) -> None:
    counts = []
    for rows in (3, 30):
        run = work(a_run(metric, a_version(project, rows=rows), name=f"of {rows}"))
        client = client_of(alice)
        with CaptureQueriesContext(connection) as queries:
            preview_of(run, client)
        counts.append(len(queries))
    assert counts[0] == counts[1]


SETTINGS = {"parse-0": "regex", "pattern-0": r"(\d+) points", "min_score": "1", "max_score": "10"}


def test_settings_are_tried_on_the_page_before_they_are_used(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    page = client.post(address(run), {**SETTINGS, "try": "1"})
    assert page.text.count("<strong title=") == 6
    assert run.judgements.count() == 6
    client.post(address(run), {**SETTINGS, "begin": "1"})
    assert work(run).scored == 6


@pytest.mark.parametrize(
    ("change", "says"),
    [({"pattern-0": "("}, "Invalid regular expression"), ({"min_score": "10"}, "must be above")],
)
def test_a_mistake_in_the_settings_is_marked(
    change: dict[str, str], says: str, run: Run, alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).post(address(run), {**SETTINGS, **change, "begin": "1"})
    assert (page.status_code, says in page.text) == (422, True)


@pytest.mark.parametrize(("name", "status"), [("alice", 200), ("bob", 403), ("rita", 403), ("charlie", 404)])
def test_who_may_run_may_read_again(
    name: str, status: int, run: Run, cast: dict[str, User], client_of: ClientOf
) -> None:
    assert client_of(cast[name]).get(address(run)).status_code == status


def test_a_run_that_is_under_way_is_not_read_again(run: Run) -> None:
    Run.objects.update(state="running")
    found = run_metric(run)
    definition = definition_now(found)
    assert reparse.run_reparse(run=run, run_metric=found, definition=definition, user=None) == 0


def test_overrides_that_stay_in_force_are_reported_before(
    run: Run, alice: User, bob: User, client_of: ClientOf
) -> None:
    address = reverse("runs:read_again", args=("physics", run.pk, run_metric(run).pk))
    assert "stay in force" not in client_of(alice).get(address).text
    for judgement in run.judgements.order_by("position")[:2]:
        override_add(judgement=judgement, value=7, reason="so", by=bob)
    assert "2 overrides still apply." in client_of(alice).get(address).text
