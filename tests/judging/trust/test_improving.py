"""Stepping through disagreements: worked examples, and labels that are in doubt."""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from django.test import Client

from datasets.models import Response
from evalsite.accounts.models import User
from judging.core.licensing import DEV, TRAIN, Sizes
from judging.core.worked_examples import with_example
from judging.look.models import TrainLabel
from judging.metrics.editor.prompt_draft import drafted_prompts
from judging.metrics.models import Metric
from judging.metrics.services import metric_edit
from judging.people.adjudication import adjudicate, differing
from judging.people.models import Evaluation, Item, SentItem
from judging.records.models import Run, RunMetric
from judging.trust.dev import Change, dev_agreements, disagreements, labels_in, values_in
from judging.trust.disagreement_page import Disagreements
from judging.trust.doubts import items_of_answers
from judging.trust.drawing import Asking, sealed_test_draw
from judging.trust.models import Split
from judging.trust.sources import Source
from tests.conftest import ClientOf
from tests.judging.people.make import rate_each
from tests.judging.trust.conftest import DEFINITION, Draw

pytestmark = pytest.mark.django_db
BASE = "/p/physics/judges/"


@pytest.fixture
def page(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


def evaluation_of(split: Split) -> Evaluation:
    evaluation = split.test.evaluation
    assert evaluation is not None
    return evaluation


def address(split: Split, judged: RunMetric, judgement: int | None = None, act: str = "") -> str:
    of_run = f"{BASE}tests/{split.pk}/disagreements/{judged.pk}/"
    return (
        f"{of_run}{judgement}/{act}/"
        if act
        else of_run
        if judgement is None
        else f"{of_run}?judgement={judgement}"
    )


def shown(client: Client, at: str) -> str:
    response = client.get(at)
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def first_of(split: Split, judged: RunMetric, part: str) -> int:
    """The first disagreement on rows of a part."""
    each = Disagreements(split, judged).by_judgement.items()
    return next(judgement for judgement, differs in each if differs.part == part)


def test_disagreements_are_shown_one_by_one(page: Client, split: Split, judged: RunMetric) -> None:
    ids = list(Disagreements(split, judged).by_judgement)
    assert len(ids) == len(disagreements(split, judged)) >= 3
    first = page.get(address(split, judged)).content.decode()
    assert f"1 of {len(ids)}" in first
    assert f'data-key="j" href="?judgement={ids[1]}"' in first
    assert 'data-key="k"' not in first
    last = page.get(address(split, judged, ids[-1])).content.decode()
    assert f'data-key="k" href="?judgement={ids[-2]}"' in last


def test_a_train_item_is_taken_into_the_draft_and_a_dev_item_is_not(
    page: Client, split: Split, judged: RunMetric, metric: Metric, alice: User
) -> None:
    train, dev = (first_of(split, judged, part) for part in (TRAIN, DEV))
    assert "Take as a worked example" in shown(page, address(split, judged, train))
    assert page.post(address(split, judged, train, "example")).status_code == 302
    example = Disagreements(split, judged).shown(train).example
    taken = with_example(DEFINITION.judges[0].template, example)
    assert [prompt.template for prompt in drafted_prompts(metric=metric, user=alice)] == [taken]
    assert "in your draft of the prompt" in shown(page, address(split, judged, train))
    assert page.post(address(split, judged, dev, "example")).status_code == 404


def test_with_several_judges_an_example_is_for_one_or_for_all(
    page: Client, split: Split, judged: RunMetric, metric: Metric, alice: User
) -> None:
    """The second judge's prompt differs, so that the draft shows which one changed."""
    (first,) = DEFINITION.judges
    second = msgspec.structs.replace(first, name="Second", template=f"Be strict. {first.template}")
    both = msgspec.structs.replace(DEFINITION, judges=(first, second), jury="majority", quorum=1)
    metric_edit(metric=metric, definition=both, based_on=1, user=alice)
    train = first_of(split, judged, TRAIN)
    example = Disagreements(split, judged).shown(train).example

    def drafted(*, first_has: bool, second_has: bool) -> list[str]:
        templates = zip((first.template, second.template), (first_has, second_has), strict=True)
        return [with_example(text, example) if has else text for text, has in templates]

    text = shown(page, address(split, judged, train))
    assert f"In the prompt of all judges {first.name} Second" in text
    page.post(address(split, judged, train, "example"), {"judge": 1})
    assert [prompt.template for prompt in drafted_prompts(metric=metric, user=alice)] == drafted(
        first_has=False, second_has=True
    )
    assert f"In the prompt of {first.name} Take" in shown(page, address(split, judged, train))
    page.post(address(split, judged, train, "example"), {"judge": ""})
    assert [prompt.template for prompt in drafted_prompts(metric=metric, user=alice)] == drafted(
        first_has=True, second_has=True
    )


def test_a_row_s_reference_is_shown_with_its_disagreement(
    page: Client, run: Run, judged: RunMetric, draw: Draw, rita: User
) -> None:
    for row in run.version.data_rows.all():
        row.raw = json.dumps({**json.loads(row.raw), "ref_answer": "As Kepler has it."})
        row.save(update_fields=["raw"])
    split = Split.objects.get(pk=draw(Sizes(0, 10, 20)).pk)
    rate_each(evaluation_of(split), rita, lambda item: item.row.line % 2 == 0)  # the judge says the opposite
    judgement = first_of(split, judged, DEV)
    assert "Reference answer As Kepler has it." in shown(page, address(split, judged, judgement))


def test_a_doubted_label_is_sent_with_an_agreeing_one_and_counts_once_both_are_decided(
    page: Client, split: Split, judged: RunMetric, bob: User
) -> None:
    judgement = first_of(split, judged, DEV)
    answer = Disagreements(split, judged).by_judgement[judgement].answer
    page.post(address(split, judged, judgement, "doubt"))
    sent = set(SentItem.objects.values_list("item", flat=True))
    items = items_of_answers(split)
    (agreeing,) = sent - {items[answer]}
    assert {entry.number for entry in differing(evaluation_of(split))} == set(
        Item.objects.filter(pk__in=sent).values_list("number", flat=True)
    )
    before = labels_in(split, DEV, TRAIN)
    values = values_in(split, judged)
    decide(items[answer], values[answer] is True, bob)
    assert labels_in(split, DEV, TRAIN) == before
    decide(agreeing, True, bob)
    after = labels_in(split, DEV, TRAIN)
    assert (after[answer].value, after[answer].tier) == (values[answer], "adjudicated")


def decide(item: int, passes: bool, by: User) -> None:
    chosen = Item.objects.select_related("evaluation__run__version", "row").get(pk=item)
    (number,) = chosen.evaluation.criteria
    adjudicate(item=chosen, values={number: passes}, reason="read again", by=by)


def test_an_answer_is_sent_once_and_says_so(page: Client, split: Split, judged: RunMetric) -> None:
    judgement = first_of(split, judged, DEV)
    for _again in range(2):
        page.post(address(split, judged, judgement, "doubt"))
    assert SentItem.objects.count() == 2
    text = shown(page, address(split, judged, judgement))
    assert "with adjudicators" in text
    assert "already sent to adjudicators" in text


def test_nothing_is_sent_without_an_agreeing_answer(
    page: Client, split: Split, judged: RunMetric, run: Run
) -> None:
    labels = labels_in(split, DEV, TRAIN)
    agreeing = [
        answer.row for answer, label in labels.items() if values_in(split, judged)[answer] == label.value
    ]
    split.rows.filter(key__in=agreeing).delete()
    page.post(address(split, judged, first_of(split, judged, DEV), "doubt"))
    assert not SentItem.objects.exists()


def test_who_rates_the_answers_and_who_only_reads_sends_nothing(
    split: Split, judged: RunMetric, bob: User, rita: User, client_of: ClientOf
) -> None:
    judgement = first_of(split, judged, TRAIN)
    for person, status in ((bob, 403), (rita, 403)):
        for act in ("doubt", "example"):
            assert client_of(person).post(address(split, judged, judgement, act)).status_code == status


def test_the_editor_shows_dev_agreement(
    page: Client, split: Split, judged: RunMetric, metric: Metric
) -> None:
    assert f"{BASE}{metric.pk}/agreement/" in page.get(f"/p/physics/metrics/{metric.pk}/").content.decode()
    (agreement,) = dev_agreements(split)
    assert f"v1 {agreement.rate.rate:.2g}" in shown(page, f"{BASE}{metric.pk}/agreement/")


def test_an_answer_that_was_looked_at_is_a_train_item_with_its_note(
    page: Client, run: Run, metric: Metric, judged: RunMetric, alice: User
) -> None:
    response = Response.objects.get(row__version=run.version, row__line=1, candidate__name="alpha")
    TrainLabel.objects.create(
        metric=metric,
        version=run.version,
        run=run,
        row=response.row,
        response=response,
        passed=False,
        note="It names no source.",
        created_by=alice,
    )
    split = sealed_test_draw(
        metric=metric,
        definition=DEFINITION,
        source=Source(run.version, run),
        sizes=Sizes(1, 2, 20),
        user=alice,
        asking=Asking([]),
        seed=5,
    )
    split.refresh_from_db()
    ((answer, label),) = labels_in(split, TRAIN).items()
    assert (answer.response, label.value, label.tier) == (1, False, "one")
    assert labels_in(split, DEV) == {}
    text = shown(page, address(split, judged))
    assert "1 of 1&nbsp;· alpha false pass train" in text
    assert "It names no source." in text
    assert "Take as a worked example" in text
    assert "People were wrong" not in text
    (judgement,) = Disagreements(split, judged).by_judgement
    page.post(address(split, judged, judgement, "doubt"))
    assert not SentItem.objects.exists()


def test_no_change_reads_as_none() -> None:
    assert Change(1, 0.0, 2, 2, 1.0).signed == "±0"
