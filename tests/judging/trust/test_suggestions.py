"""Better prompts suggested by a model: what is sent, what is refused, and the dev figures of a draft."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from django.test import Client
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import ScriptedJudge
from judging.core.licensing import DEV, TEST, Sizes
from judging.core.metric_definition import MetricDefinition
from judging.metrics.editor.prompt_draft import drafted_prompts
from judging.metrics.model_drafts import CannotDraft
from judging.metrics.models import DraftState, Metric, MetricVersion
from judging.metrics.services import metric_create
from judging.records.models import RunMetric
from judging.trust.dev import dev_agreements, keys_in, labels_in
from judging.trust.models import PromptSuggestion, Split
from judging.trust.services import split_draw
from judging.trust.suggestions import (
    SuggestionRequest,
    figures_of,
    prompt_suggest,
    suggestion_judge,
    with_template,
)
from tests.conftest import ClientOf
from tests.judging.judged import judge, said
from tests.judging.trust.conftest import DEFINITION, WRONG
from tests.judging.working import an_endpoint

pytestmark = pytest.mark.django_db
BEGIN, END = "----- NEW PROMPT BEGIN -----", "----- NEW PROMPT END -----"
TEMPLATE = DEFINITION.judges[0].template
BETTER = f"Be strict.\n\n{TEMPLATE.strip()}\n"


def suggested(template: str) -> str:
    return f"{BEGIN}\n{template.strip()}\n{END}"


@pytest.fixture
def wanted(split: Split, judged: RunMetric) -> SuggestionRequest:
    return SuggestionRequest(split, judged)


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def ask(wanted: SuggestionRequest, user: User, reply: str) -> tuple[PromptSuggestion, str]:
    """The stored suggestion, and the prompt that was sent."""
    with ScriptedJudge(reply) as model:
        endpoint = an_endpoint(wanted.split.metric.project, model.url)
        suggestion = prompt_suggest(wanted=wanted, endpoint=endpoint, user=user)
        return suggestion, model.requests[0].prompt


def lines_of(split: Split, judged: RunMetric, part: str) -> set[int]:
    keys = set(split.rows.filter(part=part).values_list("key", flat=True))
    return {line for line, key in keys_in(split, judged.run).items() if key in keys}


def test_only_disagreements_on_dev_and_train_rows_are_sent(
    wanted: SuggestionRequest, split: Split, judged: RunMetric, alice: User
) -> None:
    suggestion, sent = ask(wanted, alice, suggested(BETTER))
    assert (suggestion.state, suggestion.template, suggestion.calls) == ("draft", BETTER, 1)
    asked = {int(line) for line in re.findall(r"question: question (\d+)\n", sent)}
    assert asked == {line for line in WRONG if line not in lines_of(split, judged, TEST)}


def test_rows_in_a_sealed_test_of_another_metric_are_not_sent(
    wanted: SuggestionRequest, judged: RunMetric, project: Project
) -> None:
    other = metric_create(
        project=project, definition=msgspec.structs.replace(DEFINITION, name="other"), user=None
    )
    version = judged.run.version
    split_draw(version=version, metric=other, sizes=Sizes(0, 0, 30), seed=1)
    assert wanted.sent == []


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("Sorry.", "no_prompt"),
        (suggested(TEMPLATE), "same_prompt"),
        (suggested("Judge."), "lost_variable"),
        (suggested(f"{BETTER} {{% if %}}"), "broken_prompt"),
    ],
)
def test_a_reply_without_a_usable_prompt_fails(
    wanted: SuggestionRequest, alice: User, reply: str, problem: str
) -> None:
    suggestion, _sent = ask(wanted, alice, reply)
    assert (suggestion.state, suggestion.problem) == (DraftState.FAILED, problem)


def test_a_prompt_that_quotes_a_dev_row_fails(
    wanted: SuggestionRequest, split: Split, judged: RunMetric, alice: User
) -> None:
    long = "Which of the two planets is nearer to the sun, and by how many kilometres does it miss?"
    rows = judged.run.version.data_rows.filter(line__in=lines_of(split, judged, DEV))
    rows.update(raw=json.dumps({"messages": [{"role": "user", "content": long}]}))
    suggestion, _sent = ask(wanted, alice, suggested(f"{long}\n{BETTER}"))
    assert suggestion.problem == "quotes_dev"


def test_the_dev_rows_are_judged_in_a_run_of_their_own(
    wanted: SuggestionRequest, split: Split, judged: RunMetric, alice: User
) -> None:
    suggestion, _sent = ask(wanted, alice, suggested(BETTER))
    cost, _estimate = wanted.judging()
    run = suggestion_judge(suggestion=suggestion, wanted=wanted, user=alice)
    run = judge(run, lambda _place: said(True))
    lines = set(run.judgements.values_list("row__line", flat=True))
    assert lines == lines_of(split, judged, DEV)
    assert (run.state, run.total, run.extendable) == ("finished", cost.judgements, False)
    (before,) = dev_agreements(split)
    figures = figures_of(PromptSuggestion.objects.get(), before)
    labels = labels_in(split, DEV)
    assert figures.ended
    assert figures.agreement is not None
    assert figures.agreement.rate.rate == sum(label.value is True for label in labels.values()) / len(labels)
    assert figures.agreement.change is not None


def test_a_draft_is_judged_as_a_change_of_its_own_version(
    wanted: SuggestionRequest, metric: Metric, alice: User
) -> None:
    """Also where a later version has fewer judges: the page of that version lists it, too."""
    suggestion, _sent = ask(wanted, alice, suggested(BETTER))
    suggestion.metric_version = MetricVersion.objects.create(
        metric=metric,
        number=2,
        definition=msgspec.structs.replace(
            DEFINITION, judges=DEFINITION.judges * 2, jury="majority"
        ).to_json(),
    )
    suggestion.judge = 1
    run = suggestion_judge(suggestion=suggestion, wanted=wanted, user=alice)
    judges = MetricDefinition.from_json(run.metrics.get().definition).judges
    assert [judge.template for judge in judges] == [TEMPLATE, BETTER]


def test_the_page_shows_the_price_then_the_difference_and_takes_the_draft(
    page: Client, split: Split, judged: RunMetric, metric: Metric, project: Project, alice: User
) -> None:
    address = f"/p/physics/judges/tests/{split.pk}/disagreements/{judged.pk}/suggest/"
    assert "The project has no endpoint yet" in page.get(address).content.decode()
    with ScriptedJudge(suggested(BETTER)) as model:
        endpoint = an_endpoint(project, model.url, input_price=2, output_price=4, currency="USD")
        before = page.get(address).content.decode()
        assert "USD" in before
        assert "The dev rows are then judged with the new prompt: 10 answers, 10 calls" in before
        page.post(address, {"endpoint": endpoint.pk})
    after = page.get(address).content.decode()
    assert "Be strict." in after
    assert "The dev rows are being judged." in after
    suggestion = PromptSuggestion.objects.get()
    assert suggestion.run is not None
    page.post(f"{address}{suggestion.pk}/", {"act": "take"})
    assert [prompt.template for prompt in drafted_prompts(metric=metric, user=alice)] == [BETTER]
    assert page.post(f"{address}{suggestion.pk}/", {"act": "take"}).status_code == 404


def test_without_disagreements_nothing_is_asked(
    split: Split, judged: RunMetric, alice: User, project: Project
) -> None:
    split.rows.exclude(part=TEST).delete()
    wanted = SuggestionRequest(split, judged)
    with pytest.raises(CannotDraft, match="no_disagreements"):
        prompt_suggest(wanted=wanted, endpoint=an_endpoint(project, "http://127.0.0.1:9/v1"), user=alice)


def test_the_prompt_of_the_chosen_judge_is_changed() -> None:
    both = msgspec.structs.replace(DEFINITION, judges=(DEFINITION.judges[0], DEFINITION.judges[0]))
    changed = with_template(both, BETTER, 1)
    assert [judge.template for judge in changed.judges] == [TEMPLATE, BETTER]


def test_a_judge_that_the_metric_does_not_have_is_not_found(
    wanted: SuggestionRequest, split: Split, judged: RunMetric, page: Client
) -> None:
    address = reverse("trust:suggest", args=("physics", split.pk, judged.pk))
    assert page.get(address).status_code == 200
    assert page.get(address, {"judge": 2}).status_code == 404
