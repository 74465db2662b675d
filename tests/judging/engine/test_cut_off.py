"""A judge reply cut off by its token limit is marked wherever the judgement is shown."""

from __future__ import annotations

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.filters.conditions import matching
from judging.filters.judgement_filter import Filters
from judging.records.models import Run
from judging.reports.figures import current_figures
from tests.conftest import ClientOf
from tests.judging.working import work
from tests.make import a_metric, a_run, a_version

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(project: Project) -> Run:
    """Six judgements; the judge's three replies about alpha are cut off."""

    def cut_for_alpha(asked: object) -> Answer:
        cut = "alpha" in asked.prompt  # type: ignore[attr-defined]
        return Answer("Score: [[7]], because", finish_reason="length" if cut else "stop")

    with ScriptedJudge(cut_for_alpha) as judge:
        return work(a_run(a_version(project), a_metric(judge.url)))


def test_only_what_was_cut_off_has_the_flag(run: Run) -> None:
    flagged = run.judgements.filter(flags="truncated").values_list("candidate__name", "score")
    assert set(flagged) == {("alpha", 7.0)}
    assert current_figures(run).figures.truncated == matching(run, Filters(flag="truncated")).count() == 3


def test_a_flag_is_not_found_by_the_end_of_another(run: Run) -> None:
    run.judgements.filter(flags="").update(flags="answer_truncated,order_flip")
    assert matching(run, Filters(flag="truncated")).count() == 3
    assert matching(run, Filters(flag="order_flip")).count() == 3


def test_the_list_the_judgement_and_the_report_say_so(run: Run, alice: User, client_of: ClientOf) -> None:
    client, place = client_of(alice), (run.project.slug, run.pk)
    first = run.judgements.filter(flags="truncated")[0]
    assert "reply cut off" in client.get(reverse("runs:judgements", args=place)).content.decode()
    assert (
        "Raise max_tokens" in client.get(reverse("runs:judgement", args=(*place, first.pk))).content.decode()
    )
    assert "?flag=truncated" in client.get(reverse("runs:report", args=place)).content.decode()


def test_a_run_and_its_judgements_say_what_can_be_done_there_about_unparsed_replies(
    project: Project, alice: User, client_of: ClientOf
) -> None:
    with ScriptedJudge(lambda _: "no idea") as judge:
        run = work(a_run(a_version(project, rows=1), a_metric(judge.url)))
    client, place = client_of(alice), (project.slug, run.pk)
    judgement = run.judgements.first()
    assert judgement is not None
    pages = [reverse("runs:detail", args=place), reverse("runs:judgement", args=(*place, judgement.pk))]
    for page in pages:
        text = client.get(page).content.decode()
        assert "No verdict was found in the judge&#x27;s reply. Re-judge, re-parse" in text
        assert "in the template" not in text
