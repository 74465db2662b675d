"""The page of one judgement: the verdict first, and everything that led to it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.pipeline import Failure, ScriptResult
from judging.review.models import Override
from judging.review.services import override_add
from judging.runs import services
from judging.runs.models import Judgement, Run
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, first_of, judge, said
from tests.make import a_metric, a_run

pytestmark = pytest.mark.django_db
TABS = ("rendered", "raw", "request", "reply", "script")


def address(judgement: Judgement, name: str = "judgement") -> str:
    return reverse(f"runs:{name}", args=("physics", judgement.run_id, judgement.pk))


def text(response: HttpResponse) -> str:
    return re.sub(r"\s+", " ", response.content.decode())


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize(
    "story", [said(7, reasoning="hm"), said(None), failed()], ids=["scored", "unparsed", "error"]
)
def test_every_tab_shows_every_kind_of_judgement(
    project: Project, bob: User, client_of: ClientOf, tab: str, story: Any
) -> None:
    one = first_of(a_judged_run(project, lambda _: story))
    assert client_of(bob).get(address(one), {"tab": tab}).status_code == 200


def test_a_judgement_that_waits_has_a_page_too(project: Project, bob: User, client_of: ClientOf) -> None:
    run = a_judged_run(project, lambda _: failed())
    services.run_retry(run)
    waiting = run.judgements.filter(state="not_run")[0]
    assert "Not judged yet." in text(client_of(bob).get(address(waiting)))


def test_the_answer_the_reference_and_the_judges_words_are_on_the_first_tab(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    one.row.raw = '{"messages": [{"role": "user", "content": "How **much**?"}], "ref_answer": {"n": 42}}'
    one.row.save()
    page = text(client_of(bob).get(address(one)))
    for shown in ("How <strong>much</strong>?", "42", "alpha says 1.1", "Because. Score: [[7]]"):
        assert shown in page


def test_the_raw_tab_shows_the_text_exactly(project: Project, bob: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    one.response.raw = '{"content": "a  <b>\\n\\n  *c*"}'
    one.response.save()
    page = client_of(bob).get(address(one), {"tab": "raw"}).content.decode()
    assert '<pre id="answer-text">a  &lt;b&gt;\n\n  *c*</pre>' in page


def test_reasoning_is_folded_and_apart_from_the_reply(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7, reasoning="I compared them.")))
    page = text(client_of(bob).get(address(one), {"tab": "reply"}))
    assert '<details class="reasoning"><summary>Reasoning, 16 characters</summary>' in page
    assert "<pre>Because. Score: [[7]]</pre>" in page


def test_the_request_is_shown_as_it_was_sent(project: Project, bob: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    page = text(client_of(bob).get(address(one), {"tab": "request"}))
    assert "Judge this." in page
    assert "&quot;temperature&quot;: 0" in page


def test_every_call_is_listed_with_what_went_wrong(project: Project, bob: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project, lambda _: failed()))
    page = text(client_of(bob).get(address(one), {"tab": "reply"}))
    assert "429" in page
    assert "The server&#x27;s rate limit was still exceeded" in page
    assert "slow down" in page


def test_scripts_are_shown_with_what_they_returned_changed_and_printed(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    before = ScriptResult(result=1, changed={"data": {"extra": "seen"}}, printed="hello")
    after = ScriptResult(failure=Failure("script_exception", "KeyError (line 3)"), line=3)
    metric = a_metric(JUDGE_URL, preprocess="def preprocess(): ...", postprocess="def postprocess(): ...")
    run = a_judged_run(project, lambda _: said(7, preprocess=before, postprocess=after), metric=metric)
    page = text(client_of(bob).get(address(first_of(run)), {"tab": "script"}))
    for shown in (
        "&quot;extra&quot;: &quot;seen&quot;",
        "hello",
        "KeyError (line 3)",
        "def postprocess(): ...",
    ):
        assert shown in page


def test_a_planted_verdict_is_explained(project: Project, bob: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7, flags=("planted_verdict",))))
    assert "The answer holds a text that looks like a verdict." in text(client_of(bob).get(address(one)))


@pytest.mark.parametrize("tab", TABS)
def test_nothing_that_a_model_wrote_is_obeyed(
    project: Project, bob: User, client_of: ClientOf, tab: str
) -> None:
    evil = "<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1)) ![y](http://evil.example/p.png)"
    one = first_of(a_judged_run(project, lambda _: said(7, content=evil, reasoning=evil)))
    page = client_of(bob).get(address(one), {"tab": tab}).content.decode()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page


def test_previous_and_next_stay_in_the_filter(project: Project, bob: User, client_of: ClientOf) -> None:
    run = a_judged_run(project, lambda place: said(place))
    odd = [run.judgements.get(position=position) for position in (1, 3, 5)]
    context = client_of(bob).get(address(odd[1]), {"candidate": "beta", "tab": "reply"}).context
    assert context["previous_url"] == address(odd[0]) + "?candidate=beta&tab=reply"
    assert context["next_url"] == address(odd[2]) + "?candidate=beta&tab=reply"


def test_previous_and_next_follow_the_order_of_the_list(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda place: [said(5), failed(), said(9), said(1)][place], rows=2)
    by_score = [run.judgements.get(position=position) for position in (3, 0, 2, 1)]
    for before, here, after in zip(by_score, by_score[1:], by_score[2:], strict=False):
        context = client_of(bob).get(address(here), {"sort": "score"}).context
        assert context["previous_url"] == address(before) + "?sort=score"
        assert context["next_url"] == address(after) + "?sort=score"


def test_there_is_nothing_before_the_first_and_after_the_last(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, rows=1, models=("alpha",))
    context = client_of(bob).get(address(first_of(run))).context
    assert (context["previous_url"], context["next_url"]) == ("", "")


def test_earlier_attempts_and_other_runs_are_beside_it(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda _: failed())
    services.run_retry(run)
    judge(run, lambda _: said(4))
    other = judge(a_run(run.version, a_metric(JUDGE_URL)), lambda _: said(9))
    context = client_of(bob).get(address(first_of(run))).context
    assert [(one.attempt, shown) for one, shown in context["attempts"]] == [(2, "4"), (1, "")]
    assert [(one.run, shown) for one, shown in context["others"]] == [(other, "9")]


def test_a_judgement_of_another_run_is_not_under_this_one(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    runs = [a_judged_run(project, rows=1), a_judged_run(project, rows=1)]
    wrong = reverse("runs:judgement", args=("physics", runs[0].pk, first_of(runs[1]).pk))
    assert client_of(bob).get(wrong).status_code == 404


def test_the_number_of_queries_does_not_grow_with_the_run(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    counts = []
    for rows in (2, 40):
        one, browser = first_of(a_judged_run(project, rows=rows)), client_of(bob)
        with CaptureQueriesContext(connection) as queries:
            browser.get(address(one))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 20


def test_an_override_is_added_and_the_first_value_stays(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    answer = client_of(bob).post(
        address(one, "override"), {"value": "3", "reason": "It is wrong."}, follow=True
    )
    one.refresh_from_db()
    assert (one.value, one.score) == ("7", 7.0)
    assert Override.objects.values_list("value", "score", "reason", "by__username").get() == (
        "3",
        3.0,
        "It is wrong.",
        "bob",
    )
    assert "overridden; the judge said 7" in text(answer)


def test_the_newest_override_counts(project: Project, bob: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    for value in ("3", "4"):
        client_of(bob).post(address(one, "override"), {"value": value, "reason": "so"})
    assert [shown for _, shown in client_of(bob).get(address(one)).context["overrides"]] == ["4", "3"]


def test_an_override_is_news_for_whoever_keeps_figures(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project)
    client_of(bob).post(address(first_of(run), "override"), {"value": "3", "reason": "so"})
    assert Run.objects.get(pk=run.pk).revision == run.revision + 1


@pytest.mark.parametrize(
    ("first", "text_", "kept"),
    [
        (7, "7", ("7", 7.0)),
        (7, "７．５", ("7.5", 7.5)),
        (True, "false", ("false", 0.0)),
        ("坏", "好", ('"好"', None)),
    ],
)
def test_a_value_is_of_the_kind_that_the_judgement_has(
    project: Project, bob: User, client_of: ClientOf, first: Any, text_: str, kept: tuple[str, float | None]
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(first)))
    client_of(bob).post(address(one, "override"), {"value": text_, "reason": "so"})
    assert Override.objects.values_list("value", "score").get() == kept


@pytest.mark.parametrize("first", [7, True, None])
@pytest.mark.parametrize("text_", ["7,5", "seven", "nan", "1e999", "好"])
def test_a_category_in_place_of_a_number_is_refused_in_a_sentence(
    project: Project, bob: User, client_of: ClientOf, first: Any, text_: str
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(first)))
    answer = client_of(bob).post(address(one, "override"), {"value": text_, "reason": "so"})
    assert answer.status_code == 422
    assert "This is no number." in text(answer)
    assert not Override.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [{"value": "11", "reason": "so"}, {"value": "NaN", "reason": "so"}, {"value": "5", "reason": " "}],
)
def test_an_override_needs_a_value_on_the_scale_and_a_reason(
    project: Project, bob: User, client_of: ClientOf, wrong: dict[str, str]
) -> None:
    one = first_of(a_judged_run(project))
    assert client_of(bob).post(address(one, "override"), wrong).status_code == 422
    assert not Override.objects.exists()


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("rita", 403), ("charlie", 404), ("adam", 302)])
def test_who_may_override(
    project: Project, cast: dict[str, User], client_of: ClientOf, who: str, status: int
) -> None:
    one = first_of(a_judged_run(project))
    assert (
        client_of(cast[who]).post(address(one, "override"), {"value": "3", "reason": "so"}).status_code
        == status
    )
    assert Override.objects.exists() == (status == 302)


def test_an_analyst_sees_no_form_to_override(project: Project, alice: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project))
    assert address(one, "override") not in text(client_of(alice).get(address(one)))


def overridden_then_asked_again(project: Project, bob: User) -> Judgement:
    """The second attempt of a judgement whose first one was overridden."""
    run = a_judged_run(project, lambda _: failed())
    override_add(judgement=first_of(run), value=7.25, reason="It is right.", by=bob)
    services.run_retry(run)
    judge(Run.objects.get(pk=run.pk), lambda _: said(3))
    return run.judgements.select_related("row", "candidate").filter(current=True).order_by("position")[0]


def test_an_override_of_an_earlier_attempt_is_shown_with_the_new_one(
    project: Project, bob: User, alice: User, client_of: ClientOf
) -> None:
    again = overridden_then_asked_again(project, bob)
    page = text(client_of(alice).get(address(again)))
    for shown in ("an earlier attempt was overridden", "bob put 7.25", "It is right.", "does not count"):
        assert shown in page
    assert address(again, "override") not in page


def test_it_can_be_put_there_too(project: Project, bob: User, client_of: ClientOf) -> None:
    again = overridden_then_asked_again(project, bob)
    page = text(client_of(bob).get(address(again)))
    hidden = dict(re.findall(r'<input type="hidden" name="(value|reason)" value="([^"]*)">', page))
    assert client_of(bob).post(address(again, "override"), hidden).status_code == 302
    made = Override.objects.get(judgement=again)
    assert (made.value, made.reason) == ("7.25", "It is right.")


def test_the_first_attempt_says_nothing_of_later_ones(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    overridden_then_asked_again(project, bob)
    first = Override.objects.get().judgement
    assert "an earlier attempt was overridden" not in text(client_of(bob).get(address(first)))
