"""The page of one judgement: question, answer, verdict, and what a reviewer can do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evalsite.accounts.models import Project, User
from judging.core.results import Failure, JudgeCall, JudgementResult, ScriptResult, Verdict
from judging.core.values import Outcome
from judging.filters.judgement_filter import ANYTHING
from judging.people import assignments
from judging.records.models import Judgement, Override, Run
from judging.records.overrides import override_add
from judging.runs import services
from judging.runs.rerun.rejudge import run_rejudge
from judging.runs.rerun.selection import Selection
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, a_judged_run, failed, first_of, judge, said
from tests.judging.people.make import give, make_evaluation
from tests.judging.review.pages import judgement_address as address
from tests.judging.review.pages import text
from tests.make import a_metric, a_run

pytestmark = pytest.mark.django_db
TABS = ("rendered", "raw", "request", "reply", "script", "history")


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize(
    "result", [said(7, reasoning="hm"), said(None), failed()], ids=["scored", "unparsed", "error"]
)
def test_every_tab_shows_every_kind_of_judgement(
    project: Project, bob: User, client_of: ClientOf, tab: str, result: Any
) -> None:
    one = first_of(a_judged_run(project, lambda _: result))
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


def test_the_page_reads_question_answer_verdict_and_its_actions_are_one_column(
    project: Project, adam: User, client_of: ClientOf
) -> None:
    judgement = first_of(a_judged_run(project, lambda _: said(7)))
    page = text(client_of(adam).get(address(judgement)))
    order = (
        'class="turn"',
        "alpha says 1.1",
        'id="verdict"',
        "<aside",
        "Re-judge…",
        "Override score",
        'id="teamwork"',
        "Flag",
        "Add tag",
        "Assign",
        "Exclude from figures",
        'class="stack tight comments"',
        "</aside>",
    )
    places = [page.index(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("tab", TABS)
def test_the_verdict_is_named_above_every_tab(
    project: Project, bob: User, client_of: ClientOf, tab: str
) -> None:
    judgement = first_of(a_judged_run(project, lambda _: said(7)))
    page = text(client_of(bob).get(address(judgement), {"tab": tab}))
    assert page.index('aria-label="Verdict: 7"') < page.index('class="tabs"')


@pytest.mark.parametrize(("replies", "folded"), [(2, 0), (3, 3)])
def test_more_than_two_replies_are_folded_below_their_values(
    project: Project, bob: User, client_of: ClientOf, replies: int, folded: int
) -> None:
    asked = tuple(JudgeCall(0, n, {}, {"content": f"I say {n + 1}."}, None, []) for n in range(replies))
    verdicts = tuple(Verdict(0, n, n + 1) for n in range(replies))
    result = JudgementResult(Outcome("scored", 2), asked, verdicts)
    metric = a_metric(JUDGE_URL, repeats=replies)
    page = text(client_of(bob).get(address(first_of(a_judged_run(project, lambda _: result, metric=metric)))))
    verdict = page[page.index('class="card verdict"') :].partition("</section>")[0]
    assert (verdict.count("<details"), verdict.count("I say ")) == (folded, replies)
    assert "#2" in verdict


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
    assert "Rate limit still exceeded" in page
    assert "slow down" in page


def test_scripts_are_shown_with_what_they_returned_changed_and_printed(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    before = ScriptResult(result=1, changed={"data": {"extra": "seen"}}, printed="hello")
    after = ScriptResult(failure=Failure("script_exception", "KeyError (line 3)"), line=3)
    metric = a_metric(JUDGE_URL, preprocess="def preprocess(): ...", postprocess="def postprocess(): ...")
    run = a_judged_run(project, lambda _: said(7, scripts=(before, after)), metric=metric)
    page = text(client_of(bob).get(address(first_of(run)), {"tab": "script"}))
    for shown in (
        "&quot;extra&quot;: &quot;seen&quot;",
        "hello",
        "KeyError (line 3)",
        "def postprocess(): ...",
    ):
        assert shown in page


def test_an_injected_verdict_is_explained(project: Project, bob: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7, flags=("planted_verdict",))))
    assert "The answer contains text that looks like a verdict." in text(client_of(bob).get(address(one)))


@pytest.mark.parametrize("tab", TABS)
def test_nothing_that_a_model_wrote_is_interpreted(
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


def test_other_runs_are_beside_it_with_the_number_of_attempts(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda _: failed())
    services.run_retry(run)
    judge(run, lambda _: said(4))
    other = judge(a_run(run.version, a_metric(JUDGE_URL)), lambda _: said(9))
    context = client_of(bob).get(address(first_of(run))).context
    assert context["attempts"] == 2
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
    assert counts[0] == counts[1] <= 22


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
    assert "without override: 7" in text(answer)


def test_the_newest_override_counts(project: Project, bob: User, client_of: ClientOf) -> None:
    one = first_of(a_judged_run(project, lambda _: said(7)))
    for value in ("3", "4"):
        client_of(bob).post(address(one, "override"), {"value": value, "reason": "so"})
    assert client_of(bob).get(address(one)).context["in_force"] == "4"


def test_an_override_reaches_those_who_keep_figures(project: Project, bob: User, client_of: ClientOf) -> None:
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


@pytest.mark.parametrize("first", [7, None])
@pytest.mark.parametrize("text_", ["7,5", "seven", "nan", "1e999", "好"])
def test_a_category_in_place_of_a_number_is_refused_in_a_sentence(
    project: Project, bob: User, client_of: ClientOf, first: Any, text_: str
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(first)))
    answer = client_of(bob).post(address(one, "override"), {"value": text_, "reason": "so"})
    assert answer.status_code == 422
    assert "This is not a number." in text(answer)
    assert not Override.objects.exists()


@pytest.mark.parametrize(
    ("others", "text_", "kept"),
    [(True, "false", "false"), ("good", "bad", '"bad"'), ("4", "5", '"5"'), (3, "5", "5")],
)
def test_what_has_no_value_is_overridden_by_one_of_the_metric_s_kind(
    project: Project, bob: User, client_of: ClientOf, others: Any, text_: str, kept: str
) -> None:
    one = first_of(a_judged_run(project, lambda place: said(others if place else None)))
    client_of(bob).post(address(one, "override"), {"value": text_, "reason": "so"})
    assert Override.objects.get().value == kept


@pytest.mark.parametrize("text_", ["0.5", "1", "yes"])
def test_true_and_false_are_not_overridden_by_a_number(
    project: Project, bob: User, client_of: ClientOf, text_: str
) -> None:
    one = first_of(a_judged_run(project, lambda _: said(True)))
    answer = client_of(bob).post(address(one, "override"), {"value": text_, "reason": "so"})
    assert (answer.status_code, Override.objects.count()) == (422, 0)
    assert "Enter one of the listed values." in text(answer)


@pytest.mark.parametrize(("text_", "status"), [("A>B", 302), ("both_bad", 302), ("better", 422), ("5", 422)])
def test_a_rating_is_overridden_by_a_value_of_its_scale(
    project: Project, rita: User, bob: User, client_of: ClientOf, text_: str, status: int
) -> None:
    evaluation = make_evaluation(project, [rita], rows=1)
    give(assignments.claim(evaluation=evaluation, user=rita)[0], "B>>A")
    one = evaluation.run.judgements.get(state="scored")
    answer = client_of(bob).post(address(one, "override"), {"value": text_, "reason": "so"})
    assert (answer.status_code, Override.objects.count()) == (status, int(status == 302))


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


def overridden_then_asked_again(project: Project, bob: User) -> tuple[Judgement, Judgement]:
    """Both attempts of a judgement; the first one was overridden."""
    run = a_judged_run(project, lambda _: said(5))
    override_add(judgement=first_of(run), value=7.25, reason="It is right.", by=bob)
    run_rejudge(run=run, selection=Selection(ANYTHING), user=None)
    judge(Run.objects.get(pk=run.pk), lambda _: said(3))
    found = run.judgements.select_related("row", "candidate", "run", "run_metric")
    return first_of(run), found.filter(current=True).order_by("position")[0]


@pytest.mark.parametrize("place", [0, 1])
def test_an_override_is_shown_with_every_attempt(
    project: Project, bob: User, alice: User, client_of: ClientOf, place: int
) -> None:
    attempts = overridden_then_asked_again(project, bob)
    page = text(client_of(alice).get(address(attempts[place])))
    own = f"without override: {(5, 3)[place]}"
    for shown in ('<span class="score">7.25</span>', own, "Overridden by bob", "It is right."):
        assert shown in page
    assert address(attempts[place], "withdraw") not in page


def test_an_override_is_withdrawn_with_a_reason(project: Project, bob: User, client_of: ClientOf) -> None:
    _, again = overridden_then_asked_again(project, bob)
    assert client_of(bob).post(address(again, "withdraw"), {"reason": ""}).status_code == 422
    page = client_of(bob).post(address(again, "withdraw"), {"reason": "I misread it."}, follow=True)
    assert '<span class="score">3</span>' in text(page)
    history = text(client_of(bob).get(address(again), {"tab": "history"}))
    for shown in ("Override withdrawn", "I misread it."):
        assert shown in history
    assert address(again, "withdraw") not in text(page)


@pytest.mark.parametrize("name", ["override", "withdraw"])
def test_a_reviewer_who_is_late_is_warned_and_loses_nothing(
    project: Project, bob: User, adam: User, client_of: ClientOf, name: str
) -> None:
    one = first_of(a_judged_run(project))
    seen = override_add(judgement=one, value=3, reason="so", by=bob)
    override_add(judgement=one, value=4, reason="rather", by=adam)
    sent = {"value": "6", "reason": "as I typed it", "seen": seen.pk}
    late = client_of(bob).post(address(one, name), sent)
    assert (late.status_code, Override.objects.count()) == (409, 2)
    for shown in ("Someone else changed this override", "Overridden by adam", "rather", "as I typed it"):
        assert shown in text(late)
    newest = Override.objects.latest("pk").pk
    assert f'name="seen" value="{newest}"' in text(late)
    assert client_of(bob).post(address(one, name), sent | {"seen": newest}).status_code == 302


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("rita", 403), ("charlie", 404), ("adam", 302)])
def test_who_may_withdraw(
    project: Project, bob: User, cast: dict[str, User], client_of: ClientOf, who: str, status: int
) -> None:
    one = first_of(a_judged_run(project))
    override_add(judgement=one, value=3, reason="so", by=bob)
    assert client_of(cast[who]).post(address(one, "withdraw"), {"reason": "no"}).status_code == status


def test_the_list_shows_the_value_in_force_and_the_first_one(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda place: said(None if place == 0 else 5))
    override_add(judgement=first_of(run), value=7.25, reason="so", by=bob)
    page = text(
        client_of(bob).get(reverse("runs:judgements", args=("physics", run.pk)), {"overridden": "yes"})
    )
    for shown in ("<strong>7.25</strong>", "without override: unparsed", "overridden", 'data-state="scored"'):
        assert shown in page
    assert "<strong>5</strong>" not in page


def test_the_counts_of_a_run_s_page_are_those_of_its_lists(
    project: Project, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project, lambda place: said(None if place < 2 else 5))
    override_add(judgement=first_of(run), value=7, reason="so", by=bob)
    page = text(client_of(bob).get(reverse("runs:detail", args=("physics", run.pk))))
    assert re.search(r'id="to-unparsed"[^>]*>1<', page)
    assert re.search(r'id="to-scored"[^>]*>5<', page)


def test_judging_again_says_how_many_overrides_stay_in_force(
    project: Project, alice: User, bob: User, client_of: ClientOf
) -> None:
    run = a_judged_run(project)
    again = reverse("runs:judge_again", args=("physics", run.pk))
    assert "in force" not in text(client_of(alice).get(again))
    override_add(judgement=first_of(run), value=7, reason="so", by=bob)
    assert "1 override still applies." in text(client_of(alice).get(again))
