"""A gallery metric is measured with the project's judge: in the background, within its budget, with its record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError

from evalsite.accounts.models import Project, User
from judging.core.gallery import Card, gallery
from judging.core.judges.scripted import Answer, Received, ScriptedJudge, refusal
from judging.core.people.criteria import Criterion
from judging.endpoints.models import Endpoint
from judging.look.groups import group_create
from judging.trust.gallery.labelled import LabelledData, labelled_data
from judging.trust.gallery.measurements import measurement_start, measurement_stop
from judging.trust.models import Measurement
from tests.judging.importing import imported, verdict
from tests.judging.look.make import a_look, noted
from tests.judging.people.make import make_evaluation, rate_each
from tests.judging.working import an_endpoint
from tests.make import a_version
from tests.working import do_jobs

pytestmark = pytest.mark.django_db(transaction=True)
FAITHFUL = gallery()["faithful"]


def knows(request: Received) -> str:
    """Passes what the context says, as the examples' labels have it; but one, which it gets wrong."""
    prompt = request.body["messages"][-1]["content"]
    right = {example.answer: example.verdict for example in FAITHFUL.examples}
    verdict = next((right[answer] for answer in right if f"\n{answer}\n" in prompt), "pass")
    return "[[PASS]]" if verdict == "pass" else "[[FAIL]]"


@pytest.fixture
def judge() -> Iterator[ScriptedJudge]:
    with ScriptedJudge(knows) as server:
        yield server


@pytest.fixture
def endpoint(project: Project, judge: ScriptedJudge) -> Endpoint:
    return an_endpoint(project, judge.url, input_price=1, output_price=2, currency="EUR")


def start(
    endpoint: Endpoint,
    user: User,
    card: Card = FAITHFUL,
    labels: LabelledData | None = None,
    most_calls: int | None = None,
) -> Measurement:
    return measurement_start(
        project=endpoint.project,
        card=card,
        language="en",
        endpoint=endpoint,
        labels=labels,
        most_calls=most_calls,
        user=user,
    )


def done(measurement: Measurement) -> Measurement:
    do_jobs("measure_metric")
    return Measurement.objects.get(pk=measurement.pk)


def test_the_examples_are_judged_and_counted(endpoint: Endpoint, alice: User, judge: ScriptedJudge) -> None:
    measured = done(start(endpoint, alice))
    assert measured.record["n"] == measured.record["equal"] == len(FAITHFUL.examples)
    assert measured.record["data"] == "examples"
    assert measured.record["agreement"] is None
    assert measured.calls == len(judge.requests) == len(FAITHFUL.examples)
    assert measured.cost
    assert measured.problem == ""
    assert measured.finished_at


def test_no_more_calls_are_made_than_the_budget_allows(
    endpoint: Endpoint, alice: User, judge: ScriptedJudge
) -> None:
    measured = done(start(endpoint, alice, most_calls=2))
    assert measured.problem == "budget_calls"
    assert measured.calls == len(judge.requests) == 2
    assert measured.record["n"] == 2


def test_a_worker_that_stopped_goes_on_where_it_was(
    endpoint: Endpoint, alice: User, judge: ScriptedJudge
) -> None:
    measurement = start(endpoint, alice)
    Measurement.objects.update(results={"example 1": [True, "", True, "1"]}, calls=1)
    assert done(measurement).calls == len(FAITHFUL.examples)
    assert len(judge.requests) == len(FAITHFUL.examples) - 1


def test_a_second_one_waits_until_the_first_has_ended(endpoint: Endpoint, alice: User) -> None:
    first = start(endpoint, alice)
    with pytest.raises(ValidationError, match="being measured already"):
        start(endpoint, alice)
    measurement_stop(measurement=first)
    assert done(first).problem == "stopped"
    assert done(start(endpoint, alice)).problem == ""


def test_replies_that_can_t_be_read_are_counted_apart(project: Project, alice: User) -> None:
    with ScriptedJudge("I would rather not say.") as server:
        measured = done(start(an_endpoint(project, server.url), alice))
    assert (measured.record["n"], measured.record["unread"]) == (0, len(FAITHFUL.examples))
    assert measured.cost is None


def test_a_wrong_key_ends_it_with_the_reason(project: Project, alice: User) -> None:
    with ScriptedJudge(lambda _request: refusal(401, "no such key")) as server:
        measured = done(start(an_endpoint(project, server.url), alice))
    assert measured.problem
    assert "no such key" in measured.problem_detail


def test_a_comparison_is_asked_in_both_orders(project: Project, alice: User) -> None:
    card = gallery()["helpful_pair"]
    with ScriptedJudge(lambda request: Answer(content="[[A>B]]")) as server:
        measured = done(start(an_endpoint(project, server.url), alice, card))
        assert measured.calls == len(server.requests) == 2 * len(card.examples)


def test_ratings_of_people_give_rates(
    project: Project, alice: User, rita: User, judge: ScriptedJudge, endpoint: Endpoint
) -> None:
    card = gallery()["follows_instruction"]
    criterion = Criterion(name="follows", scale="pass_fail")
    evaluation = make_evaluation(
        project, [rita], rows=45, models=("alpha",), criteria=[criterion], side_by_side=False
    )
    rate_each(evaluation, rita, lambda item: item.row.line % 3 > 0)
    (labels,) = labelled_data(project, card)
    assert labels.answers == 45
    measured = done(start(endpoint, alice, card, labels))
    assert measured.record["n"] == 45
    assert measured.record["tpr"] == 1
    assert measured.record["tnr"] == 0
    assert measured.record["tpr_low"] < 1
    assert labelled_data(project, gallery()["concise"]) == []


def test_the_examples_of_a_checklist_are_counted_by_criterion(project: Project, alice: User) -> None:
    card = gallery()["multi_turn_checklist"]
    with ScriptedJudge(lambda _request: "Verdict: met") as server:
        measured = done(start(an_endpoint(project, server.url), alice, card))
    met = [is_met for example in card.examples for is_met in example.met]
    assert (measured.record["n"], measured.record["equal"]) == (len(met), sum(met))


def test_labels_of_a_category_take_the_place_of_the_template_s(
    project: Project, alice: User, rita: User
) -> None:
    card = gallery()["single_turn_category"]
    criterion = Criterion(name="kind", scale="categories", categories=("good", "bad"))
    evaluation = make_evaluation(
        project, [rita], rows=3, models=("alpha",), criteria=[criterion], side_by_side=False
    )
    rate_each(evaluation, rita, lambda item: "good" if item.row.line < 3 else "bad")
    (labels,) = labelled_data(project, card)
    with ScriptedJudge("[[good]]") as server:
        measured = done(start(an_endpoint(project, server.url), alice, card, labels))
        assert "bad" in server.requests[0].body["messages"][-1]["content"]
    assert (measured.record["n"], measured.record["equal"]) == (3, 2)


def test_imported_verdicts_of_people_are_labels(
    project: Project, alice: User, endpoint: Endpoint, judge: ScriptedJudge, tmp_path: Path
) -> None:
    card = gallery()["single_turn_pass_fail"]
    version = a_version(project, rows=3, models=("alpha",))
    lines = [verdict(line, value=line > 1, metric="ok", rater="Rita") for line in (1, 2, 3)]
    lines += [verdict(line, value=True, metric="ok") for line in (1, 2, 3)]
    imported(version, tmp_path, *lines)
    (labels,) = labelled_data(project, card)
    assert labels.answers == 3
    measured = done(start(endpoint, alice, card, labels))
    assert (measured.record["n"], measured.record["equal"]) == (3, 2)


def test_answers_of_a_look_are_labels_by_itself_and_by_its_groups(
    project: Project, alice: User, endpoint: Endpoint, judge: ScriptedJudge
) -> None:
    card = gallery()["single_turn_pass_fail"]
    look = a_look(project, alice, rows=8, size=4)
    notes = [noted(look, alice, place, passed=place > 2) for place in (1, 2, 3, 4)]
    group_create(look=look, user=alice, name="rude").notes.add(notes[0])
    whole, rude = labelled_data(project, card)
    assert [labelled.verdict for labelled in whole.load().values()].count(False) == 2
    assert [labelled.verdict for labelled in rude.load().values()].count(False) == 1
    measured = done(start(endpoint, alice, card, rude))
    assert (measured.record["n"], measured.record["equal"]) == (4, 3)
    assert measured.data_name.endswith(" · rude")
