"""Licences of checklists go by their criteria: TPR and TNR over criteria, by rows."""

from __future__ import annotations

import msgspec
import pytest

from datasets.core.rubric import read_rubric
from evalsite.accounts.models import Project, User
from judging.core.checklists import judged, outcome_of
from judging.core.licensing import Sizes
from judging.core.results import JudgementResult
from judging.metrics.services import metric_create
from judging.people.adjudication import adjudicate
from judging.people.sent_items import items_send
from judging.records.definitions import definitions_now
from judging.records.models import Run
from judging.reports.selectors import metrics_of
from judging.trust.criteria import majority
from judging.trust.dev import dev_agreements, disagreements, keys_in
from judging.trust.drawing import Asking, rows_of_draw, sealed_test_draw
from judging.trust.licence_page import licence_page
from judging.trust.models import Licence, SealedTest, Split
from judging.trust.promise import promise_of
from judging.trust.report_figures import figures_of_test, licence_entry, licensed_tests
from judging.trust.services import sealed_test_open
from judging.trust.sources import Source, failure_rate
from tests.conftest import ClientOf
from tests.judging.checklists.helpers import RUBRIC, a_checklist, with_rubrics
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.people.make import rate_each
from tests.make import a_run

pytestmark = pytest.mark.django_db
ROWS = 24
DEFINITION = a_checklist(JUDGE_URL)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([], {}),
        ([{"1": True, "2": False}], {"1": True, "2": False}),
        ([{"1": True}, {"1": False}], {}),
        ([{"1": True}, {"1": False}, {"1": False, "2": True}], {"1": False, "2": True}),
    ],
)
def test_the_majority_decides_by_criterion(votes: list[dict[str, bool]], expected: dict[str, bool]) -> None:
    assert majority(votes) == expected


def ticked(place: int) -> JudgementResult:
    """The judge's checklist of a row: a dose in every second answer, kind in all, antibiotics in none."""
    rubric = read_rubric(RUBRIC)[0]
    assert rubric is not None
    checklist = judged(rubric, [place % 2 == 0, True, False], [""] * 3)
    outcome = outcome_of(checklist)
    return msgspec.structs.replace(said(outcome.value), outcome=outcome, checklist=checklist.to_json())


@pytest.fixture
def run(project: Project) -> Run:
    metric = metric_create(project=project, definition=DEFINITION, user=None)
    version = with_rubrics(project, [RUBRIC] * ROWS, models=["alpha"])
    run = judge(a_run(version, DEFINITION), ticked)
    run.metrics.update(metric_version=metric.versions.get())
    return run


def drawn(run: Run, alice: User, rita: User, sizes: Sizes) -> Split:
    split = sealed_test_draw(
        metric=run.metrics.get().metric_version.metric,
        definition=DEFINITION,
        source=Source(run.version, run),
        sizes=sizes,
        user=alice,
        asking=Asking([rita]),
        seed=5,
    )
    return Split.objects.get(pk=split.pk)


@pytest.fixture
def test(run: Run, alice: User, rita: User) -> SealedTest:
    """Rita says what the judge says, but that the answer of row 3 names no dose."""
    return rated_by(rita, drawn(run, alice, rita, Sizes(0, 0, ROWS)))


@pytest.fixture
def disputed(run: Run, alice: User, rita: User) -> SealedTest:
    """The same test, where row 3 was sent to those who adjudicate."""
    split = drawn(run, alice, rita, Sizes(0, 0, ROWS))
    evaluation = split.test.evaluation
    items_send(evaluation=evaluation, items=[evaluation.items.get(row__line=3).pk], by=alice)
    return rated_by(rita, split)


def rated_by(rita: User, split: Split) -> SealedTest:
    test = SealedTest.objects.select_related("evaluation__run", "split").get(split=split)
    ticks = {True: "met,met,not_met", False: "not_met,met,not_met"}
    rate_each(test.evaluation, rita, lambda item: ticks[item.row.line % 2 == 1 and item.row.line != 3])
    return test


def licensed(test: SealedTest, run: Run) -> Licence:
    test.refresh_from_db()
    return sealed_test_open(test=test, run_metric=run.metrics.get())


def test_both_rates_count_criteria(test: SealedTest, run: Run) -> None:
    licence = licensed(test, run)
    page = licence_page(licence)
    assert (page.positive.right, page.positive.of) == (ROWS // 2 - 1 + ROWS, ROWS // 2 - 1 + ROWS)
    assert (page.negative.right, page.negative.of) == (ROWS // 2 + ROWS, ROWS // 2 + ROWS + 1)
    assert (licence.figures["items"], licence.figures["rows"], page.answers) == (3 * ROWS, ROWS, ROWS)
    assert licence.figures["judged"] == "passes"
    assert licence.figures["bias"]["mean"] == pytest.approx(7 / 11 / ROWS)
    assert licence.use == "gates"


def test_what_its_licence_says_follows_from_the_criteria(test: SealedTest, run: Run) -> None:
    licence = licensed(test, run)
    (of_run,) = licensed_tests(run, definitions_now(run), metrics_of(run), with_criteria=True)
    entry = licence_entry("quality", licence, licence.judge)
    figures = figures_of_test(of_run)
    assert figures == {name: entry[name] for name in figures}
    assert figures["items"] == 3 * ROWS


def test_a_decision_counts_in_place_of_the_majority(disputed: SealedTest, run: Run, bob: User) -> None:
    item = disputed.evaluation.items.select_related("evaluation__run", "row").get(row__line=3)
    adjudicate(item=item, values={0: "met,met,not_met"}, reason="it does", by=bob)
    figures = licensed(disputed, run).figures
    assert (figures["agreement"]["rate"], figures["failed"]) == (1.0, ROWS // 2 + ROWS)


def test_the_page_says_that_criteria_are_counted(
    test: SealedTest, run: Run, alice: User, client_of: ClientOf
) -> None:
    licence = licensed(test, run)
    page = client_of(alice).get(f"/p/physics/judges/licences/{licence.pk}/").content.decode()
    assert f"{3 * ROWS} criteria of {ROWS} answers, {ROWS} rows" in page


def test_an_answer_with_an_open_criterion_counts_with_its_others(
    disputed: SealedTest, run: Run, bob: User
) -> None:
    item = disputed.evaluation.items.select_related("evaluation__run", "row").get(row__line=3)
    adjudicate(item=item, values={0: "open,met,not_met"}, reason="no source says", by=bob)
    licence = licensed(disputed, run)
    page = licence_page(licence)
    assert (licence.figures["items"], page.answers, len(licence.answers)) == (3 * ROWS - 1, ROWS, ROWS - 1)
    assert (licence.figures["agreement"]["rate"], licence.tier) == (1.0, "one")


def test_dev_agreement_counts_criteria_as_the_test_does(run: Run, alice: User, rita: User) -> None:
    split = drawn(run, alice, rita, Sizes(0, ROWS - 20, 20))
    rate_each(split.test.evaluation, rita, lambda item: "not_met,met,not_met")
    (agreement,) = dev_agreements(split)
    lines = set(keys_in(split, run, "dev"))
    assert len(agreement.agrees) == 3 * (ROWS - 20)
    assert agreement.wrong == sum(line % 2 for line in lines)
    assert len(disagreements(split, run.metrics.get())) == agreement.wrong


def test_a_draw_says_what_its_criteria_buy(run: Run) -> None:
    metric = run.metrics.get().metric_version.metric
    source = Source(run.version, run)
    counts = rows_of_draw(Sizes(0, 0, ROWS), source, metric)
    promise = promise_of(metric, DEFINITION, source, counts)
    rate = failure_rate(metric)
    assert rate is not None
    assert rate.share == pytest.approx(0.5)
    assert promise.prospect is not None
    assert (promise.prospect.items, promise.prospect.failures) == (3 * ROWS, 3 * ROWS // 2)
