"""The seal: a label of a test that was not opened is found nowhere but at its rater's desk and with who adjudicates."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import transaction
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.mail.digests import send_due
from evalsite.mcp.tools import BY_NAME, TOOLS, Tool
from evalsite.webhooks.kinds import Event
from evalsite.webhooks.models import Delivery
from evalsite.webhooks.services import webhook_create
from judging.core.licensing import Sizes
from judging.core.metric_definition import Label
from judging.core.people.criteria import Criterion
from judging.metrics.models import Metric
from judging.metrics.services import metric_create
from judging.people import assignments, ratings
from judging.people.adjudication import ClosedTest, adjudicate
from judging.people.gold import gold_add, gold_of_item, item_at
from judging.people.models import Assignment, Evaluation, Item
from judging.people.ratings import DeskRefused
from judging.people.services import evaluation_close
from judging.records.models import Judgement, Run, RunState
from judging.reports.services import report_document
from judging.reports.sharing import report_link_create
from judging.trust.drawing import Asking, sealed_test_draw
from judging.trust.further import further_draw
from judging.trust.models import SealedTest, Split
from judging.trust.services import sealed_test_close, sealed_test_open, split_draw
from judging.trust.sources import Source
from tests.api import Api
from tests.conftest import ClientOf
from tests.datasets.conftest import upload
from tests.evalsite.api import test_every_address as api
from tests.evalsite.mail.conftest import Sent, confirmed, mail_site, sent
from tests.evalsite.test_every_address import GET, TABLE, Places, address, pages, places
from tests.evalsite.test_mcp import Agent
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.judging.people.make import about, give, make_evaluation
from tests.make import a_metric

__all__ = ["mail_site", "places", "sent", "upload"]  # fixtures
VALUE, COMMENT, DECISION, REASON = MARKS = ("zebra-7731", "okapi-4452", "tapir-9914", "ibex-3308")
LABELS = (Label(label="good"), Label(label="bad"))
DEFINITION = a_metric(JUDGE_URL, name="tone", gives="category", labels=LABELS)
CRITERION = Criterion(name=DEFINITION.name, scale="categories", categories=("good", "bad"))
WHY = Criterion(name="why", scale="text")
ROWS = 6
DESK, ADJUDICATION = {"desk:mine", "desk:item"}, {"people:adjudicate"}
ALLOWED = DESK | ADJUDICATION
SIX_ROWS = Sizes(0, 0, ROWS)
TELL_OF_TESTS = (
    *("trust:", "people:", "metrics:", "project", "inbox"),
    *("runs:detail", "runs:report", "runs:ask", "runs:metric_people"),
)
"""Beginnings of the names of pages that may know of a test once it is drawn."""
EVERY_FIELD = "core,value,prompt,reasoning,io,ratings"


@pytest.fixture
def metric(project: Project) -> Metric:
    return metric_create(project=project, definition=DEFINITION, user=None)


@pytest.fixture
def run(project: Project, metric: Metric) -> Run:
    run = a_judged_run(project, lambda place: said("good"), rows=ROWS, metric=DEFINITION, models=["alpha"])
    run.metrics.update(metric_version=metric.versions.get())
    return run


@pytest.fixture
def evaluation(run: Run, cast: dict[str, User]) -> Evaluation:
    return rated(run, cast, "bad")


def rated(run: Run, cast: dict[str, User], label: str) -> Evaluation:
    """Rita and Adam rate every answer; Rita's label of the first is marked, and Bob adjudicates it."""
    evaluation = about(run, [cast["rita"], cast["adam"]], criteria=[CRITERION, WHY], overlap=2)
    for name in ("rita", "adam"):
        for assignment in _all_claimed(evaluation, cast[name]):
            marked = assignment.item.row.line == 1 and name == "rita"
            said_why = {"comment": COMMENT} if marked else {}
            give(assignment, label if marked else "good", VALUE if marked else "because", **said_why)
    item = evaluation.items.get(row__line=1)
    adjudicate(item=item, values={0: label, 1: DECISION}, reason=REASON, by=cast["bob"])
    return evaluation


def _all_claimed(evaluation: Evaluation, user: User) -> Iterator[Assignment]:
    while claimed := assignments.claim(evaluation=evaluation, user=user, count=50):
        yield from claimed


def a_split(run: Run, metric: Metric, **options: Any) -> Split:
    return split_draw(**{"version": run.version, "metric": metric, "sizes": SIX_ROWS, "seed": 5, **options})


def label_of(evaluation: Evaluation) -> Judgement:
    """The judgement that holds the marked label."""
    return Judgement.objects.get(
        run=evaluation.run_id, row__line=1, rater__username="rita", run_metric__name=DEFINITION.name
    )


def marks_in(response: HttpResponseBase) -> bool:
    content = response.getvalue() if response.streaming else response.content  # type: ignore[attr-defined]
    return any(mark.encode() in content for mark in MARKS)


class Filled(dict[str, Any]):
    """Path parameters; whatever is not named is the evaluation's number."""

    def __missing__(self, name: str) -> Any:
        return self["evaluation"]


Look = tuple[str, str, dict[str, str]]


def addresses(
    places: Places, run: Run, evaluation: Evaluation, secrets: Sequence[str], split: Split | None = None
) -> Iterator[Look]:
    """(name, address, fields) of every page, about the run, its evaluation, the item with the marked label, and the
    split, if it is drawn. `secrets`: of links to reports."""
    label, item = label_of(evaluation), evaluation.items.get(row__line=1)
    token = Assignment.objects.get(item=item, rater__user__username="rita").token
    in_people = {"pk": evaluation.run_id, "number": item.number, "form": "jsonl"}
    places |= {
        "people": places["people"] | in_people,
        "desk": {"pk": evaluation.run_id, "token": token},
        "runs:people_result": {"pk": evaluation.run_id},
        "metrics": places["metrics"] | {"metric": run.metrics.get().metric_version.metric_id},
        "runs:metric_people": {"metric": run.metrics.get().metric_version.metric_id},
    }
    if split is not None:
        of_split = {"metric": split.metric_id, "split": split.pk, "run_metric": run.metrics.get().pk}
        places["trust"] = places["trust"] | of_split
    own = {"response": label.response_id, "response_pk": label.response_id}
    fields = {
        "metric": DEFINITION.name,
        "a": "alpha",
        "b": "alpha",
        "author": "R1",
        "of": "R1",
        "kind": "ratings",
    }
    for each in (run, evaluation.run):
        judgement = label if each == evaluation.run else run.judgements.get(row=label.row_id)
        metrics = {
            "metric": each.metrics.get(number=0).pk,
            "judgement_pk": judgement.pk,
            "other": evaluation.run_id,
        }
        of_run = {
            **places["runs"],
            **own,
            **metrics,
            "first": judgement.pk,
            "second": judgement.pk,
            "pk": each.pk,
        }
        for name, route in pages().items():
            if each == run or name.startswith("runs:"):
                where = address(name, route, places | {"runs": of_run, "runs:report_pair": {"pk": each.pk}})
                yield (
                    name,
                    where,
                    {**fields, "names": "1", "history": "1"} if name.endswith("export") else fields,
                )
        for form in ("csv", "results", "every_eval_ever", "inspect"):
            yield "runs:export", reverse("runs:export", args=("physics", each.pk, form)), {}
    for secret in secrets:
        yield "shared_report", reverse("shared_report", args=(secret,)), {}
    yield "runs:judgements", reverse("runs:judgements", args=("physics", evaluation.run_id)), {"value": "bad"}
    yield "people:export", reverse("people:export", args=("physics", evaluation.run_id, "csv")), {}


@pytest.fixture(params=["the first draw", "a further draw"])
def drawn(request: pytest.FixtureRequest, run: Run, metric: Metric) -> Callable[[], Split]:
    """Draw a test with the marked row: at once, or after rows without it."""

    def split() -> Split:
        if request.param == "the first draw":
            return a_split(run, metric)
        others = {line for line in Source(run.version, run).rows if line != 1}
        split = a_split(run, metric, sizes=Sizes(0, 0, 3), lines=others)
        draw_more(split, run)
        return split

    return split


def draw_more(split: Split, run: Run, *raters: User) -> Evaluation:
    """Draw the other rows for the test; returns the evaluation in which they are to be rated."""
    drawn = further_draw(
        test=split.test,
        definition=DEFINITION,
        source=Source(run.version, run),
        sizes=Sizes(0, 0, 3),
        asking=Asking(raters),
        user=User.objects.get(username="adam"),
        seed=5,
    )
    assert drawn.evaluation is not None
    return drawn.evaluation


@pytest.mark.alike
def test_a_sealed_label_is_found_only_where_it_is_given_and_adjudicated(
    cast: dict[str, User],
    client_of: ClientOf,
    places: Places,
    run: Run,
    evaluation: Evaluation,
    drawn: Callable[[], Split],
) -> None:
    """Whatever showed a mark before the draw is walked again after it, as each role and without an account; and what
    tells of the test, by who manages the project."""
    secrets = [
        report_link_create(run=each, note="", days=7, by=cast["alice"])[1] for each in (run, evaluation.run)
    ]
    looks = readable(addresses(places, run, evaluation, secrets))
    clients = {name: client_of(cast[name]) for name in ("alice", "rita", "bob", "olga")} | {"": Client()}
    adam = client_of(cast["adam"])
    shown = [*showing(adam, looks), *showing(clients["rita"], looks)]
    names = {name for name, _where, _fields in shown}
    assert names >= {"runs:export", "people:item", "people:export", *ALLOWED}
    split = drawn()
    allowed = {"rita": DESK, "bob": ADJUDICATION, "olga": ADJUDICATION}
    for who, client in clients.items():
        assert {name for name, *_ in showing(client, shown)} == allowed.get(who, set()), who
    of_test = [
        look
        for look in readable(addresses(places, run, evaluation, secrets, split))
        if look in shown or look[0].startswith(TELL_OF_TESTS)
    ]
    assert {name for name, *_ in showing(adam, of_test)} == ADJUDICATION


def readable(looks: Iterable[Look]) -> list[Look]:
    return [look for look in looks if TABLE[look[0]].method == GET]


def showing(client: Client, looks: list[Look]) -> list[Look]:
    """The addresses that show a mark."""
    found = []
    for look in looks:
        with transaction.atomic():
            if marks_in(client.get(look[1], look[2])):
                found.append(look)
            transaction.set_rollback(True)
    return found


def test_the_api_and_commands_leave_it_out_and_say_how_many(
    cast: dict[str, User], run: Run, metric: Metric, evaluation: Evaluation, tmp_path: Path
) -> None:
    token, label = Api(cast["adam"]), label_of(evaluation)
    a_split(run, metric)
    for each in (run, evaluation.run):
        where = {"slug": "physics", "run": each.pk, "judgement": label.pk, "dataset": run.version.dataset_id}
        where |= {"number": run.version.number, "metric": metric.pk, "evaluation": evaluation.run_id}
        paths = [path for method, _, path in (entry.partition(" ") for entry in api.TABLE) if method == "get"]
        assert [path for path in paths if marks_in(token.get(path.format_map(Filled(where))))] == []
        every = f"projects/physics/runs/{each.pk}/judgements?fields={EVERY_FIELD}"
        assert not marks_in(token.get(every))
    listed = token.get(f"projects/physics/runs/{evaluation.run_id}/judgements").json()
    assert (listed["items"], listed["sealed"]) == ([], 4 * ROWS)
    out, error = io.StringIO(), io.StringIO()
    for each in (run, evaluation.run):
        call_command("report", each.name, "--json", stdout=out, stderr=error)
        call_command("compare", each.name, evaluation.run.name, stdout=out, stderr=error)
        for form in ("jsonl", "results"):
            file = tmp_path / f"{form}-{each.pk}"
            call_command("export", each.name, "--format", form, "--out", str(file), stderr=error)
            out.write(file.read_text())
    assert [mark for mark in MARKS if mark in out.getvalue()] == []
    assert "24 ratings in a sealed test" in error.getvalue()


def test_an_agent_s_tools_leave_it_out(
    cast: dict[str, User], run: Run, metric: Metric, evaluation: Evaluation
) -> None:
    """Every tool that reads, about the run, the evaluation and the judgements of the marked row."""
    agent = Agent(cast["adam"])

    def marks(tool: Tool) -> set[str]:
        text = "".join(json.dumps(agent.call(tool.name, **arguments)) for arguments in about_the_row(tool))
        return {mark for mark in MARKS if mark in text}

    def about_the_row(tool: Tool) -> Iterator[dict[str, Any]]:
        known: dict[str, Any] = {
            "dataset": run.version.dataset_id,
            "version": run.version.number,
            "metric": metric.pk,
        }
        for each in (run, evaluation.run):
            if "judgement" in tool.properties:
                for judgement in each.judgements.filter(row__line=1).values_list("pk", flat=True):
                    yield {"run": each.pk, "judgement": judgement}
            every = {"fields": EVERY_FIELD} if "fields" in tool.properties else {}
            yield (
                {"run": each.pk, **every}
                if "run" in tool.properties
                else {name: known[name] for name in tool.required if name in known}
            )

    reading = [tool for tool in TOOLS if not tool.writes]
    assert marks(BY_NAME["judgements"]) >= {VALUE, DECISION}
    a_split(run, metric)
    assert {tool.name: marks(tool) for tool in reading} == {tool.name: set() for tool in reading}


def test_webhooks_and_mail_tell_nothing_of_a_label(
    cast: dict[str, User],
    run: Run,
    metric: Metric,
    rita: User,
    mail_site: None,
    sent: Sent,
) -> None:
    """A test that is drawn, rated, adjudicated, closed and opened."""
    webhook_create(project=run.project, url="https://hooks.example/", events=Event.values)
    for user in cast.values():
        confirmed(user)
    evaluation = about(run, [rita], criteria=[CRITERION, WHY])
    split = a_split(run, metric)
    for assignment in _all_claimed(evaluation, rita):
        give(assignment, "bad", VALUE, comment=COMMENT)
    item = evaluation.items.get(row__line=1)
    adjudicate(item=item, values={0: "bad", 1: DECISION}, reason=REASON, by=cast["bob"])
    evaluation_close(evaluation=evaluation, by=cast["adam"])
    sealed_test_close(test=split.test, run=evaluation.run)
    send_due(timezone.make_aware(datetime(2030, 1, 1, 12)))
    bodies = list(Delivery.objects.values_list("body", flat=True))
    told = "".join([*bodies, *(str(message.body) for message in sent())])
    assert bodies
    assert [mark for mark in MARKS if mark in told] == []


def test_evidence_leaves_it_out_and_says_how_many(
    run: Run, metric: Metric, evaluation: Evaluation, tmp_path: Path
) -> None:
    a_split(run, metric)
    Run.objects.filter(pk=evaluation.run_id).update(state=RunState.FINISHED)
    error, file = io.StringIO(), tmp_path / "evidence.zip"
    for name in (run.name, evaluation.run.name):
        call_command("evidence", name, "--out", str(file), stderr=error)
        with zipfile.ZipFile(file) as archive:
            text = b"".join(archive.read(member) for member in archive.namelist()).decode()
        assert [mark for mark in MARKS if mark in text] == []
        assert '"source": "rater"' not in text
    assert "24 ratings in a sealed test" in error.getvalue()


def test_a_judgement_of_the_judge_stays_visible(
    cast: dict[str, User], client_of: ClientOf, run: Run, metric: Metric, evaluation: Evaluation
) -> None:
    a_split(run, metric)
    judged = run.judgements.get(row=label_of(evaluation).row_id)
    page = client_of(cast["alice"]).get(reverse("runs:judgement", args=("physics", run.pk, judged.pk)))
    assert "in a sealed test" in page.content.decode()


def test_the_report_counts_agreement_among_raters_and_opens_with_the_test(
    run: Run, metric: Metric, evaluation: Evaluation
) -> None:
    before = report_of(evaluation.run)
    split = a_split(run, metric)
    sealed = report_of(evaluation.run)
    assert (sealed["left_out"]["sealed"], sealed["people_candidates"]) == (4 * ROWS, {})
    assert sealed["raters"] == before["raters"]
    assert report_of(run)["judges"] == []
    sealed_test_open(test=sealed_test_close(test=split.test, run=run), run_metric=run.metrics.get())
    opened = report_of(evaluation.run)
    assert opened["left_out"]["sealed"] == 0
    assert opened["people_candidates"] == before["people_candidates"]


def test_figures_are_the_same_whatever_a_sealed_label_says(
    run: Run, metric: Metric, cast: dict[str, User]
) -> None:
    """But for those of raters alone, and how long they took."""

    def figures(label: str) -> list[dict[str, Any]]:
        with transaction.atomic():
            evaluation = rated(run, cast, label)
            a_split(run, metric)
            reports = [report_of(each) for each in (run, evaluation.run)]
            transaction.set_rollback(True)
        return reports

    good, bad = figures("good"), figures("bad")
    assert good[1]["raters"] != bad[1]["raters"]
    for report in (*good, *bad):
        report.update(raters=[], run="", run_id=0, cost={})
    assert good == bad


def report_of(run: Run) -> dict[str, Any]:
    return report_document(Run.objects.get(pk=run.pk))


def test_other_criteria_of_the_same_rating_stay_visible_without_its_comment(
    run: Run, metric: Metric, rita: User, cast: dict[str, User]
) -> None:
    criteria = [CRITERION, WHY, Criterion(name="length", scale="five")]
    evaluation = about(run, [rita], criteria=criteria)
    for assignment in _all_claimed(evaluation, rita):
        give(assignment, "bad", VALUE, 3, comment=COMMENT)
    a_split(run, metric)
    listed = Api(cast["alice"]).get(f"projects/physics/runs/{evaluation.run_id}/export?form=results")
    lines = listed.getvalue()
    assert (lines.count(b'"length"'), lines.count(VALUE.encode()), lines.count(COMMENT.encode())) == (
        ROWS,
        0,
        0,
    )


@pytest.fixture
def held(run: Run, metric: Metric, rita: User) -> list[Assignment]:
    """Rita holds every item of a test that was closed after she had rated the first."""
    evaluation = about(run, [rita], criteria=[CRITERION])
    held = list(assignments.claim(evaluation=evaluation, user=rita, count=50))
    give(held[0], "good")
    sealed_test_close(test=a_split(run, metric).test, run=run)
    return held


def _undo(held: list[Assignment]) -> None:
    ratings.undo(evaluation=held[0].evaluation, user=held[0].rater.user, key=uuid4())


@pytest.mark.parametrize(
    "act",
    [
        lambda held: give(held[1], "good"),
        lambda held: ratings.change(assignment=held[0], values={0: "bad"}, key=uuid4()),
        lambda held: ratings.skip(assignment=held[1], reason="unclear", key=uuid4()),
        _undo,
    ],
)
def test_no_rating_of_a_closed_test_changes_or_is_added(
    held: list[Assignment], act: Callable[[list[Assignment]], object]
) -> None:
    with pytest.raises(DeskRefused) as refused:
        act(held)
    assert refused.value.code == "test_closed"


def test_both_evaluations_of_a_test_close_with_it(run: Run, metric: Metric, rita: User, adam: User) -> None:
    drawing = {"definition": DEFINITION, "source": Source(run.version, run), "sizes": Sizes(0, 0, 3)}
    split = sealed_test_draw(metric=metric, user=adam, asking=Asking([rita]), seed=5, **drawing)
    further = draw_more(split, run, rita)
    first = SealedTest.objects.get(split=split).evaluation
    assert first is not None
    held = assignments.claim(evaluation=further, user=rita, count=50)
    for each in (*held[1:], *assignments.claim(evaluation=first, user=rita, count=50)):
        give(each, "good")
    test = sealed_test_close(test=SealedTest.objects.get(split=split), run=first.run)
    assert len(test.labels) == ROWS - 1
    with pytest.raises(DeskRefused) as refused:
        give(held[0], "bad")
    assert refused.value.code == "test_closed"


def test_labels_of_a_closed_test_are_decided_only_after_it_was_opened(
    held: list[Assignment], run: Run, cast: dict[str, User]
) -> None:
    item = held[0].item
    with pytest.raises(ClosedTest):
        adjudicate(item=item, values={0: "bad"}, reason=REASON, by=cast["bob"])
    address = reverse("people:adjudicate", args=("physics", item.evaluation.run_id, item.number))
    client = Client()
    client.force_login(cast["bob"])
    page = client.post(address, {"value_0": "0", "reason": REASON})
    assert page.status_code == 422
    assert "in a judge&#x27;s test that was closed" in page.content.decode()
    assert REASON in page.content.decode()
    sealed_test_open(test=Split.objects.get().test, run_metric=run.metrics.get())
    assert adjudicate(item=item, values={0: "bad"}, reason=REASON, by=cast["bob"]).pk


def test_a_rater_gets_no_item_of_a_closed_test(held: list[Assignment]) -> None:
    evaluation, rita = held[0].evaluation, held[0].rater.user
    assignments.give_back(
        evaluation=evaluation, user=rita, items=[each.pk for each in held], until=held[0].lease_until
    )
    Assignment.objects.filter(item__in=[each.item_id for each in held[1:]]).delete()
    Item.objects.filter(evaluation=evaluation, rated=0).update(free=1)
    assert assignments.claim(evaluation=evaluation, user=rita, count=50) == []


def test_rows_of_a_split_are_never_gold_or_repeats(run: Run, metric: Metric, rita: User) -> None:
    a_split(run, metric)
    evaluation = about(run, [rita], criteria=[CRITERION], repeat_share=0.5)
    assert not evaluation.items.filter(repeat_of__isnull=False).exists()
    gold = gold_of_item(evaluation, item_at(evaluation, 1, "alpha", None), {CRITERION.name: "good"})
    with pytest.raises(ValidationError, match="cannot be gold"):
        gold_add(evaluation=evaluation, gold=[gold])


def test_rows_that_check_raters_get_into_no_split(run: Run, metric: Metric, rita: User) -> None:
    evaluation = about(run, [rita], criteria=[CRITERION])
    gold_add(
        evaluation=evaluation,
        gold=[gold_of_item(evaluation, item_at(evaluation, 1, "alpha", None), {CRITERION.name: "good"})],
    )
    assert a_split(run, metric).rows.count() == ROWS - 1


def test_labels_of_another_data_set_are_not_sealed(
    project: Project, run: Run, metric: Metric, rita: User
) -> None:
    a_split(run, metric)
    other: Version = a_judged_run(project, rows=ROWS, models=["alpha"]).version
    evaluation = make_evaluation(project, [rita], version=other, side_by_side=False, criteria=[CRITERION])
    for assignment in _all_claimed(evaluation, rita):
        give(assignment, "good")
    assert report_of(evaluation.run)["left_out"]["sealed"] == 0
