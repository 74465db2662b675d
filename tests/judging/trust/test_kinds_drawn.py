"""Draws for judges that compare, and for judges on scales of their own."""

from __future__ import annotations

import json

import pytest

from datasets.models import Row
from evalsite.accounts.models import Project, User
from judging.core.licensing import Sizes
from judging.core.metric_definition import MetricDefinition
from judging.core.pairs import ORDERS_DISAGREE
from judging.core.people.criteria import Criterion, numbers_between
from judging.core.results import JudgementResult, Verdict
from judging.core.values import Outcome, Value
from judging.metrics.services import metric_create
from judging.people.labels import choices_of, scale_name
from judging.people.models import Evaluation, Item
from judging.records.models import RunMetric
from judging.trust.dev import agrees_with, dev_agreements, labels_in, values_in
from judging.trust.disagreement_page import Disagreements
from judging.trust.doubts import items_of_answers
from judging.trust.drawing import Asking, criterion_of, sealed_test_draw
from judging.trust.models import SealedTest, Split
from judging.trust.progress import candidates_to_open
from judging.trust.services import sealed_test_open
from judging.trust.sources import sources_of
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.people.make import rate_each
from tests.make import a_comparison, a_metric, a_run, a_version

pytestmark = pytest.mark.django_db
ROWS, TESTED = 30, 24
TO_REFERENCE = a_metric(JUDGE_URL, gives="comparison", max_score=5)
OF_TWO = a_comparison(JUDGE_URL, both_orders=False)
IN_BOTH_ORDERS = a_comparison(JUDGE_URL)
HUNDRED = a_metric(JUDGE_URL, gives="score", min_score=0, max_score=100)


def drawn(
    project: Project,
    definition: MetricDefinition,
    alice: User,
    rita: User,
    *values: Value | None,
    without: int = 0,
) -> tuple[Split, RunMetric]:
    """The split of a run whose judge gives these values in turn. The first rows `without` have no reference."""
    metric = metric_create(project=project, definition=definition, user=None)
    version = a_version(project, rows=ROWS, models=["beta", "alpha"])
    for row in Row.objects.filter(version=version, line__gt=without):
        row.raw = json.dumps(json.loads(row.raw) | {"ref_answer": f"reference {row.line}"})
        row.save()
    run = judge(a_run(version, definition), lambda place: _verdict(values[place % len(values)]))
    run.metrics.update(metric_version=metric.versions.get())
    split = sealed_test_draw(
        metric=metric,
        definition=definition,
        source=sources_of(metric)[0],
        sizes=Sizes(0, ROWS - TESTED, TESTED),
        user=alice,
        asking=Asking([rita]),
        seed=5,
    )
    return Split.objects.get(pk=split.pk), run.metrics.select_related("metric_version").get()


def _verdict(value: Value | None) -> JudgementResult:
    """None: both orders name the first side."""
    if value is not None:
        return said(value)
    votes = (Verdict(0, 0, "A>B", order="first"), Verdict(0, 0, "B>A", order="swapped"))
    both = Verdict(0, 0, None, ORDERS_DISAGREE, order="both")
    return JudgementResult(Outcome.unsettled(ORDERS_DISAGREE), said("A>B").calls, (*votes, both))


def test_a_run_of_which_every_pair_is_unsettled_is_a_source_and_agrees_with_ties(
    project: Project, alice: User, rita: User
) -> None:
    """The judge names whatever it sees first."""
    split, judged = drawn(project, IN_BOTH_ORDERS, alice, rita, None)
    assert judged.run.unsettled == ROWS
    rate_each(evaluation_of(split), rita, lambda item: "A=B" if item.row.line % 2 else "A>B")
    (agreement,) = dev_agreements(split)
    labels = labels_in(split, "dev")
    assert agreement.wrong == sum(label.value == "B>A" for label in labels.values())
    assert len(Disagreements(split, judged).by_judgement) == agreement.wrong
    assert 0 < agreement.wrong < len(labels)
    test = SealedTest.objects.get(split=split)
    (offered,) = candidates_to_open(test)
    assert offered.scored == TESTED
    licence = sealed_test_open(test=test, run_metric=judged)
    assert {judge for *_answer, judge, _people in licence.answers} == {"A=B"}
    assert licence.figures["items"] == TESTED


def test_unsettled_pairs_count_as_ties_among_settled_ones(project: Project, alice: User, rita: User) -> None:
    split, judged = drawn(project, IN_BOTH_ORDERS, alice, rita, None, "A>B", "B>A")
    assert set(values_in(split, judged).values()) == {"A=B", "A>B", "B>A"}


def evaluation_of(split: Split) -> Evaluation:
    evaluation = split.test.evaluation
    assert evaluation is not None
    return evaluation


def test_answers_are_compared_with_their_references(project: Project, alice: User, rita: User) -> None:
    split, judged = drawn(project, TO_REFERENCE, alice, rita, 1, 5, without=2)
    evaluation = evaluation_of(split)
    assert evaluation.items.count() == 2 * (ROWS - 2)
    rate_each(evaluation, rita, lambda item: "B>A" if wins(judged, item) else "A>B")
    licence = sealed_test_open(test=SealedTest.objects.get(split=split), run_metric=judged)
    assert (licence.figures["judged"], licence.figures["items"]) == ("ordered", 2 * TESTED)
    assert (licence.figures["agreement"]["rate"], licence.use) == (0.0, "exploring")


def wins(judged: RunMetric, item: Item) -> bool:
    """Whether the judge prefers the item's answer, its `response`, to the reference."""
    value = judged.run.judgements.get(response=item.response).value
    return json.loads(value) > 3


def test_a_comparison_with_the_reference_is_shown_with_both_texts(
    project: Project, alice: User, rita: User
) -> None:
    split, judged = drawn(project, TO_REFERENCE, alice, rita, 1)
    rate_each(evaluation_of(split), rita, lambda item: "A>B")
    listed = Disagreements(split, judged)
    shown = listed.shown(next(iter(listed.by_judgement)))
    assert (shown.answer.split()[0], shown.names[0], shown.can_be_sent) == ("reference", "reference", True)


def test_a_disagreement_of_two_answers_has_them_in_the_judge_s_order(
    project: Project, alice: User, rita: User
) -> None:
    """As in its reply, whose letters are the judge's: alpha, the first by name, is B."""
    split, judged = drawn(project, OF_TWO, alice, rita, "A>>B")
    rate_each(evaluation_of(split), rita, lambda item: "B>A")
    split.rows.filter(part="dev").update(part="train")
    listed = Disagreements(split, judged)
    shown = listed.shown(next(iter(listed.by_judgement)))
    assert (shown.names, shown.judge, shown.people) == (("beta", "alpha"), "A>>B", "B>A")
    assert f"\nAnswer A: {shown.answer}\nAnswer B: {shown.other}\nVerdict: B>A" in shown.example


def test_comparisons_agree_by_their_direction(project: Project, alice: User, rita: User) -> None:
    split, judged = drawn(project, OF_TWO, alice, rita, "A>>B")
    evaluation = evaluation_of(split)
    rate_each(evaluation, rita, lambda item: "A>B" if item.row.line % 2 else "B>A")
    labels, values = labels_in(split, "dev"), values_in(split, judged)
    agrees = agrees_with(values, labels)
    assert 0 < sum(agrees.values()) < len(agrees) == ROWS - TESTED
    assert dev_agreements(split)[0].wrong == len(Disagreements(split, judged).by_judgement)
    assert labels.keys() <= items_of_answers(split).keys()


def test_people_choose_from_the_judge_s_own_scale(project: Project, alice: User, rita: User) -> None:
    split, judged = drawn(project, HUNDRED, alice, rita, 0, 20, 70, 100)
    evaluation = evaluation_of(split)
    (criterion,) = evaluation.criteria.values()
    assert criterion.choices == (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    assert scale_name(criterion) == "0 to 100"
    rate_each(evaluation, rita, lambda item: score_of(judged, item))
    licence = sealed_test_open(test=SealedTest.objects.get(split=split), run_metric=judged)
    assert (licence.figures["kappa"], licence.use) == (1.0, "gates")


def score_of(judged: RunMetric, item: Item) -> int:
    return int(json.loads(judged.run.judgements.get(response=item.response).value))


@pytest.mark.parametrize(
    ("ends", "numbers"),
    [
        ((1, 7), (1, 2, 3, 4, 5, 6, 7)),
        ((0, 10), tuple(range(11))),
        ((1, 100), (1, 11, 21, 31, 41, 50, 60, 70, 80, 90, 100)),
        ((0, 2.5), (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5)),
    ],
)
def test_a_scale_has_at_most_eleven_numbers(ends: tuple[float, float], numbers: tuple[float, ...]) -> None:
    assert numbers_between(*ends) == numbers


def test_the_key_of_a_number_is_its_digit_where_it_begins_at_0() -> None:
    criterion = Criterion(name="m", scale="ends", min_score=0, max_score=10)
    assert [choice.key for choice in choices_of(criterion)] == [*"0123456789", ""]


@pytest.mark.parametrize("changes", [{"scale_declared": False}, {"gives": "", "postprocess": "def f(): 1"}])
def test_a_judge_without_a_scale_has_nothing_to_rate(changes: dict[str, object]) -> None:
    definition = a_metric(JUDGE_URL, **{"gives": "score", "min_score": 0, "max_score": 7, **changes})
    assert criterion_of("m", definition) is None
