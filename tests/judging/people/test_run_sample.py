"""Human rating of a sample of the answers a run judged."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from django.urls import reverse
from msgspec import structs

from evalsite.accounts.models import Project, User
from judging.people.models import Evaluation, Item
from judging.people.presets import criteria_of_run
from judging.people.sampling import ItemChoice, SampledItems, sample_items, strata_of_draw
from judging.records.models import Judgement, Run, RunMetric
from judging.records.overrides import override_add
from judging.reports.frames import run_frame
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, said
from tests.judging.people.make import about, rate_all, sample_sent
from tests.make import a_metric

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    """Ten rows, two candidates, scores 1 to 10."""
    return a_judged_run(project, rows=10, models=["alpha", "beta"])


def drawn(run: Run, size: int | None, by: str = "", seed: int = 3) -> SampledItems:
    candidates = [one.candidate for one in run.run_candidates.select_related("candidate")]
    return sample_items(
        ItemChoice(run.version, candidates, sample_size=size, stratify_by=by, about=run, seed=seed)
    )


def with_scale(project: Project, low: float, high: float, value: Any = 1) -> Run:
    metric = structs.replace(a_metric(JUDGE_URL), name="good", min_score=low, max_score=high)
    return a_judged_run(project, lambda _: said(value), metric=metric)


# —— sampling


def test_each_candidate_gets_an_equal_share_with_its_probability(run: Run) -> None:
    things = drawn(run, 6).things
    assert Counter(thing.candidates for thing in things) == {
        (one.pk,): 3 for one in run.version.candidates.all()
    }
    assert {thing.drawn_with for thing in things} == {0.3}


def test_stratified_by_score_every_fifth_of_the_scores_is_there(run: Run) -> None:
    metric = run.metrics.get().name
    things = drawn(run, 10, metric).things
    assert {thing.stratum.partition(":")[2] for thing in things} == {"0", "1", "2", "3", "4"}


def test_without_a_size_every_judged_answer_is_rated(run: Run) -> None:
    assert {thing.drawn_with for thing in drawn(run, None).things} == {1.0}
    assert len(drawn(run, None).things) == 20


def test_the_same_seed_draws_the_same_answers(run: Run) -> None:
    assert drawn(run, 6).things == drawn(run, 6).things
    assert drawn(run, 6).things != drawn(run, 6, seed=4).things


def test_only_answers_that_a_filter_means_are_drawn(
    run: Run, alice: User, rita: User, client_of: ClientOf
) -> None:
    """The filter of the list is passed through the form to the sampling."""
    sent = sample_sent(run, rita, sample_size=2, filter="least=10")
    page = client_of(alice).get(
        reverse("people:new", args=("physics",)), {"run": run.pk, "filter": "least=10"}
    )
    assert 'name="filter" value="least=10.0"' in page.content.decode()
    assert page.context["form"].initial["sample_size"] == 2
    client_of(alice).post(reverse("people:new", args=("physics",)), sent)
    rated = Item.objects.values_list("response", flat=True)
    scores = Judgement.objects.filter(run=run, response__in=rated).values_list("score", flat=True)
    assert list(scores) == [10, 10]
    assert set(Item.objects.values_list("drawn_with", flat=True)) == {None}  # they represent no others


# —— strata of a draw


def drawn_by_score(run: Run, size: int = 10) -> Evaluation:
    metric = run.metrics.get().name
    return about(run, [], sample={"stratify_by": metric, "sample_size": size})


def test_the_strata_of_a_draw_cover_all_answers_that_could_be_drawn(run: Run) -> None:
    strata = strata_of_draw(drawn_by_score(run))
    assert set(strata) == set(run.judgements.values_list("response", flat=True))
    assert Counter(stratum.partition(":")[2] for stratum in strata.values()) == dict.fromkeys("01234", 4)
    drawn_from = dict(Item.objects.values_list("response", "stratum"))
    assert drawn_from.items() <= strata.items()


def test_scores_that_no_longer_give_the_strata_of_the_draw_leave_none(run: Run) -> None:
    evaluation = drawn_by_score(run)
    item = Item.objects.filter(evaluation=evaluation).first()
    assert item is not None
    judgement = run.judgements.get(response=item.response)
    value = 1 if judgement.score > 5 else 10
    by = User.objects.create(username="rosa")
    override_add(judgement=judgement, value=value, reason="wrong", by=by)
    assert strata_of_draw(evaluation) == {}


def test_a_draw_without_strata_has_none(run: Run) -> None:
    assert strata_of_draw(about(run, [], sample={"sample_size": 10})) == {}


def test_the_report_estimates_by_the_strata_of_the_draw(run: Run, rita: User) -> None:
    rate_all(about(run, [rita], sample={"stratify_by": run.metrics.get().name, "sample_size": 10}), rita, 7)
    frame = run_frame(run)
    assert set(frame["stratum"].dropna()) == set(strata_of_draw(Evaluation.objects.get()).values())


# —— criteria


@pytest.mark.parametrize(("low", "high", "scale"), [(1, 5, "five"), (1, 10, "ten"), (0, 1, "yes_no")])
def test_a_criterion_has_the_scale_of_its_metric(
    project: Project, low: float, high: float, scale: str
) -> None:
    (one,) = criteria_of_run(with_scale(project, low, high))
    assert (one.name, one.scale) == ("good", scale)


def test_a_metric_that_people_have_no_scale_for_is_left_out(project: Project) -> None:
    assert criteria_of_run(with_scale(project, 0, 100)) == []


# —— pages


def address(run: Run) -> str:
    return f"{reverse('people:new', args=('physics',))}?run={run.pk}"


def test_the_runs_page_leads_to_the_form_and_the_form_proposes_the_runs_metrics(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    client = client_of(alice)
    assert address(run) in client.get(reverse("runs:detail", args=("physics", run.pk))).text
    form = client.get(address(run)).context
    assert form["criteria"][0].initial["scale"] == "ten"
    assert form["form"].initial["sample_size"] == 20


def test_the_judges_instruction_is_offered_as_the_guideline(
    run: Run, alice: User, client_of: ClientOf
) -> None:
    metric = run.metrics.get()
    definition = json.loads(metric.definition)
    definition["judges"][0]["template"] = "Count the facts.\n{{ data.question }}\n{{ response.content }}"
    RunMetric.objects.filter(pk=metric.pk).update(definition=json.dumps(definition))
    page = client_of(alice).get(address(run)).text
    assert 'data-fill="#id_criteria-0-guideline" data-with="Count the facts."' in page


def test_what_is_organised_so_belongs_to_the_run_and_its_ratings_reach_the_runs_report(
    run: Run, alice: User, rita: User, client_of: ClientOf
) -> None:
    client_of(alice).post(reverse("people:new", args=("physics",)), sample_sent(run, rita))
    rate_all(Evaluation.objects.get(about_run=run), rita, 8)
    people = run_frame(run).query("source == 'rater'")
    assert (list(people["value"]), set(people["drawn_with"])) == ([8] * 6, {0.3})


def test_the_runs_page_names_its_evaluations(run: Run, alice: User, rita: User, client_of: ClientOf) -> None:
    client = client_of(alice)
    client.post(reverse("people:new", args=("physics",)), sample_sent(run, rita))
    assert "Round one" in client.get(reverse("runs:detail", args=("physics", run.pk))).text
    page = client.get(reverse("people:detail", args=("physics", Evaluation.objects.get().run_id))).text
    assert reverse("runs:detail", args=("physics", run.pk)) in page


def test_raters_see_no_score_of_the_judge(run: Run, alice: User, rita: User, client_of: ClientOf) -> None:
    Judgement.objects.filter(run=run).update(detail="JUDGE-DETAIL")
    client_of(alice).post(reverse("people:new", args=("physics",)), sample_sent(run, rita))
    page = client_of(rita).get(reverse("desk:page", args=("physics", Evaluation.objects.get().run_id))).text
    assert Item.objects.count() == 6
    assert not [word for word in ("JUDGE-DETAIL", run.name) if word in page]


def test_where_people_have_no_scale_the_form_says_so(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    page = client_of(alice).get(address(with_scale(project, 0, 100)), follow=True)
    assert "People cannot rate on the scales" in page.text
