"""Align through its pages: the draw, closing, opening, the licence, and who may do what."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.core.licensing import Sizes
from judging.metrics.models import Metric
from judging.metrics.services import metric_edit
from judging.people.assignments import raters_add
from judging.people.models import Evaluation, Item
from judging.people.services import evaluation_close
from judging.records.models import Run
from judging.trust.licence_page import places_below
from judging.trust.models import Licence, SealedTest
from judging.trust.services import licence_suspend, sealed_test_open
from tests.conftest import ClientOf
from tests.judging.people.make import about, rate_each
from tests.judging.trust.conftest import DEFINITION, Draw

pytestmark = pytest.mark.django_db
BASE = "/p/physics/judges/"


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


@pytest.fixture
def sealed(draw: Draw, rita: User) -> SealedTest:
    """Rita has rated 24 test rows and 4 of dev as the judge did, but the first row."""
    split = draw(Sizes(2, 4, 24))
    test = SealedTest.objects.select_related("evaluation__run").get(split=split)
    assert test.evaluation is not None
    rate_each(test.evaluation, rita, lambda item: item.row.line % 2 == 1 and item.row.line > 1)
    test.refresh_from_db()
    return test


@pytest.fixture
def unfinished(draw: Draw, rita: User) -> SealedTest:
    """Rita has rated 24 test rows, for which another rater was asked too."""
    test = SealedTest.objects.select_related("evaluation__run").get(split=draw(Sizes(2, 4, 24), overlap=2))
    assert test.evaluation is not None
    rate_each(test.evaluation, rita, lambda item: item.row.line % 2 == 1)
    return test


@pytest.fixture
def licence(sealed: SealedTest, run: Run) -> Licence:
    return sealed_test_open(test=sealed, run_metric=run.metrics.get())


def text_of(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_the_page_says_what_a_draw_buys_before_anybody_rates(page: Client, run: Run, metric: Metric) -> None:
    shown = text_of(page, f"{BASE}{metric.pk}/")
    assert "20 test answers at 50 % failures hold about 10 of the rarer verdict." in shown
    assert "Too few for gates: these need at least 16 of the rarer verdict without a mistake" in shown
    assert "For a gate the test needs about 80 rows" in shown
    assert "The rate is the judge's own" in shown


def test_the_number_chosen_changes_what_it_buys(page: Client, run: Run, metric: Metric) -> None:
    shown = text_of(
        page, f"{BASE}{metric.pk}/?part=promise&source=run-{run.pk}&test=10&dev=0&train=0&overlap=2"
    )
    assert "A test of under 20 rows allows nothing" in shown
    assert "Ratings in all 20" in shown


def test_a_draw_asks_raters_for_all_its_rows_and_offers_the_prompt(
    page: Client, run: Run, metric: Metric, rita: User
) -> None:
    form = {"source": f"run-{run.pk}", "test": 20, "dev": 6, "train": 4, "overlap": 1, "raters": [rita.pk]}
    response = page.post(f"{BASE}{metric.pk}/", {**form, "guideline": "Is it good?"})
    assert response.headers["Location"] == f"{BASE}{metric.pk}/"
    test = SealedTest.objects.get()
    assert test.evaluation is not None
    items = Item.objects.filter(evaluation=test.evaluation)
    assert (items.count(), {item.drawn_with for item in items}) == (30, {1.0})
    assert test.evaluation.guideline == "Is it good?"
    assert "0 of 30 ratings, blind." in text_of(page, f"{BASE}{metric.pk}/")


@pytest.mark.parametrize("reads", [True, False])
def test_raters_see_the_reference_where_the_judge_reads_it(
    page: Client, run: Run, metric: Metric, alice: User, reads: bool
) -> None:
    """Where it does not, the form offers it without proposing it."""
    row = run.version.data_rows.earliest("line")
    row.raw = json.dumps({**json.loads(row.raw), "ref_answer": "Kepler."})
    row.save(update_fields=["raw"])
    if reads:
        (judge,) = DEFINITION.judges
        judge = msgspec.structs.replace(judge, template=f"{judge.template} {{{{ data.ref_answer }}}}")
        definition = msgspec.structs.replace(DEFINITION, judges=(judge,))
        metric_edit(metric=metric, definition=definition, based_on=1, user=alice)
    content = page.get(f"{BASE}{metric.pk}/").content.decode()
    (box,) = re.findall(r'<input type="checkbox" name="shows_reference"[^>]*>', content)
    assert ("checked" in box) is reads
    form = {"source": f"run-{run.pk}", "test": 20, "dev": 6, "train": 4, "overlap": 1, "guideline": "x"}
    page.post(f"{BASE}{metric.pk}/", form | ({"shows_reference": "on"} if reads else {}))
    assert Evaluation.objects.get().shows_reference is reads


def test_a_reviewer_reads_the_page_and_draws_nothing(
    bob: User, client_of: ClientOf, run: Run, metric: Metric
) -> None:
    reviewer, form = client_of(bob), {"source": f"run-{run.pk}", "test": 20, "dev": 6, "train": 4}
    assert "An analyst or an administrator can draw one." in text_of(reviewer, f"{BASE}{metric.pk}/")
    assert reviewer.post(f"{BASE}{metric.pk}/", {**form, "overlap": 1}).status_code == 403
    assert not SealedTest.objects.exists()


def test_a_guideline_that_names_a_model_is_refused_with_what_was_typed(
    page: Client, run: Run, metric: Metric
) -> None:
    form = {"source": f"run-{run.pk}", "test": 20, "dev": 6, "train": 4, "overlap": 1}
    response = page.post(f"{BASE}{metric.pk}/", {**form, "guideline": "Is alpha good?"})
    assert response.status_code == 422
    assert "contains the model name alpha" in response.content.decode()
    assert "Is alpha good?" in response.content.decode()
    assert not SealedTest.objects.exists()


def test_judging_the_rows_comes_before_opening(
    page: Client, sealed: SealedTest, run: Run, metric: Metric
) -> None:
    """A version that has judged nothing cannot be licensed, so that is not the step after it."""

    def steps() -> list[str]:
        content = page.get(f"{BASE}{metric.pk}/").content.decode()
        return re.findall(r'class="step" data-step="(\w+)"', content)

    assert steps() == ["done", "done", "done", "next"]
    run.metrics.update(metric_version=None)
    assert steps() == ["done", "next", "done", "later"]


def test_rows_of_dev_can_be_rated_after_closing(page: Client, unfinished: SealedTest, metric: Metric) -> None:
    def rates() -> bool:
        shown = page.get(f"{BASE}{metric.pk}/").content.decode()
        return f'/p/physics/evaluations/{unfinished.evaluation.run_id}/">Add raters' in shown

    assert unfinished.evaluation is not None
    page.post(f"{BASE}tests/{unfinished.split_id}/close/")
    assert rates()
    evaluation_close(evaluation=unfinished.evaluation, by=None)
    assert not rates()


def test_who_has_rated_goes_on_with_the_judge(sealed: SealedTest, adam: User, client_of: ClientOf) -> None:
    assert sealed.evaluation is not None
    raters_add(evaluation=sealed.evaluation, users=[adam], by=None)
    desk = client_of(adam).get(f"/p/physics/desk/{sealed.evaluation.run_id}/").content.decode()
    assert f'href="{BASE}{sealed.split.metric_id}/"' in desk


def test_closing_says_what_it_means_and_keeps_the_labels(page: Client, unfinished: SealedTest) -> None:
    address = f"{BASE}tests/{unfinished.split_id}/close/"
    assert "No rating of a test row can be changed or added afterwards." in text_of(page, address)
    page.post(address)
    unfinished.refresh_from_db()
    assert (unfinished.open, len(unfinished.labels)) == (False, 24)
    assert page.post(address).headers["Location"] == f"{BASE}{unfinished.split.metric_id}/"


def test_a_test_that_is_still_rated_is_not_opened(page: Client, unfinished: SealedTest) -> None:
    assert "Close the test first" in text_of(page, f"{BASE}tests/{unfinished.split_id}/open/")


def test_opening_counts_and_leads_to_the_licence(page: Client, sealed: SealedTest, run: Run) -> None:
    address = f"{BASE}tests/{sealed.split_id}/open/"
    assert "24 of 24 test answers scored" in text_of(page, address)
    response = page.post(address, {"run_metric": run.metrics.get().pk})
    licence = Licence.objects.get()
    assert response.headers["Location"] == f"{BASE}licences/{licence.pk}/"
    assert licence.dev_gap is not None
    assert "No version to open it for" in text_of(page, address)


def test_a_run_leads_to_the_test_that_waits_for_its_version(
    page: Client, sealed: SealedTest, run: Run
) -> None:
    waits = "was not opened for this version yet"
    assert waits in text_of(page, f"/p/physics/runs/{run.pk}/")
    licence = sealed_test_open(test=sealed, run_metric=run.metrics.get())
    assert waits not in text_of(page, f"/p/physics/runs/{run.pk}/")
    shown = page.get(f"{BASE}licences/{licence.pk}/").content.decode()
    assert f'href="/p/physics/runs/{run.pk}/report/"' in shown


def test_the_licence_shows_counts_data_set_and_share_of_failures(page: Client, licence: Licence) -> None:
    shown = text_of(page, f"{BASE}licences/{licence.pk}/")
    right, passes = (licence.figures["positive"][name] for name in ("count", "trials"))
    assert f"{right} of {passes:.0f} [" in shown
    assert f"measured on {licence.dataset_name} v1" in shown
    assert re.search(r"of whose test answers \d+ % fail", shown)
    assert "number 1 of this test" in shown
    assert re.search(r"Kappa 0\.\d\d \[0\.\d\d, 1(\.00)?\]", shown)


def test_a_lower_end_under_a_threshold_is_not_shown_as_the_threshold(page: Client, licence: Licence) -> None:
    licence.figures["negative"] |= {"count": 19, "trials": 24, "low": 0.5953, "high": 0.9076}
    licence.save(update_fields=["figures"])
    shown = text_of(page, f"{BASE}licences/{licence.pk}/")
    assert "[0.595, 0.908]" in shown
    assert "Trends need a lower end of at least 0.6" in shown


@pytest.mark.parametrize(
    ("low", "places"), [(None, 2), (0.4, 2), (0.6, 2), (0.604, 2), (0.5953, 3), (0.79996, 5)]
)
def test_a_lower_end_gets_the_places_that_tell_it_from_a_threshold(low: float | None, places: int) -> None:
    assert places_below(low, (0.6, 0.8)) == places


def test_dev_agreement_is_told_without_the_test(page: Client, sealed: SealedTest) -> None:
    assert "v1 1 [" in text_of(page, f"{BASE}tests/{sealed.split_id}/versions/")


def test_a_suspension_is_lifted_by_who_manages_with_a_reason(
    page: Client, licence: Licence, adam: User, client_of: ClientOf
) -> None:
    suspension = licence_suspend(licence=licence, reason="The server changed.")
    shown = text_of(page, f"{BASE}licences/{licence.pk}/")
    assert "suspended" in shown
    assert "An administrator can lift this" in shown
    assert re.search(r"Exploring No .*Trends No .*Gates No ", shown)
    address = f"{BASE}licences/{licence.pk}/suspensions/{suspension.pk}/lift/"
    assert page.post(address, {"reason": "same model"}).status_code == 403
    client_of(adam).post(address, {"reason": "same model"})
    assert "same model" in text_of(page, f"{BASE}licences/{licence.pk}/")


def test_a_licence_gets_a_date_that_must_lie_ahead(licence: Licence, adam: User, client_of: ClientOf) -> None:
    address = f"{BASE}licences/{licence.pk}/expiry/"
    assert client_of(adam).post(address, {"expires_on": "2001-01-01"}).status_code == 422
    client_of(adam).post(address, {"expires_on": "2999-01-01"})
    licence.refresh_from_db()
    assert licence.expires_at is not None


def test_another_project_sees_neither_test_nor_licence(
    licence: Licence, sealed: SealedTest, charlie: User, client_of: ClientOf
) -> None:
    for address in (f"licences/{licence.pk}/", f"tests/{sealed.split_id}/close/"):
        assert client_of(charlie).get(f"{BASE}{address}").status_code == 404
        assert client_of(charlie).get(f"/p/elsewhere/judges/{address}").status_code == 404


def test_people_who_disagree_are_said_to_be_the_limit(
    page: Client, run: Run, metric: Metric, rita: User, adam: User, project: Project
) -> None:
    evaluation = about(run, [rita, adam], overlap=2)
    rate_each(evaluation, rita, lambda item: item.row.line % 2 == 0)
    rate_each(evaluation, adam, lambda item: item.row.line % 3 == 0)
    shown = text_of(page, f"{BASE}{metric.pk}/")
    assert "No judge can reach the threshold of trends or gates" in shown
    assert "take those of" in shown


def test_disagreements_show_false_passes_first_and_never_a_test_row(
    page: Client, run: Run, draw: Draw, rita: User
) -> None:
    split = draw(Sizes(10, 10, 10))
    evaluation = SealedTest.objects.get(split=split).evaluation
    assert evaluation is not None
    rate_each(evaluation, rita, lambda item: item.row.line % 2 == 0)  # the judge says the opposite
    shown = text_of(page, f"{BASE}tests/{split.pk}/disagreements/{run.metrics.get().pk}/")
    kinds = re.findall(r"line \d+, alpha false (pass|fail) (train|dev)", shown)
    assert len(kinds) == 20
    assert [kind for kind, _part in kinds] == sorted((kind for kind, _part in kinds), reverse=True)
