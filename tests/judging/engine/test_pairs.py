"""Judge models that compare candidates, from planning to the stored judgements."""

from __future__ import annotations

import random
import re

import pytest
from django.core.exceptions import ValidationError

from datasets.models import Response
from evalsite.accounts.models import Project
from judging.core.judges.scripted import Received, ScriptedJudge
from judging.engine import planning
from judging.filters.counts import counts_in_force
from judging.records.models import Judgement, Run
from judging.runs.selectors import MetricChoice, cost_of
from judging.runs.services import run_retry
from tests.judging.working import work, worked_by
from tests.make import a_candidate, a_comparison, a_metric, a_run, a_version

URL = "http://127.0.0.1:9/v1"


def planned(project: Project, rows: int = 2, models: str = "abc", answers: int = 1, **metric: object) -> Run:
    run = a_run(a_version(project, rows, tuple(models), answers), a_comparison(URL, **metric))
    planning.plan(run.pk)
    return Run.objects.get(pk=run.pk)


def pairs_of(run: Run) -> list[tuple[int, str, str]]:
    sides = run.judgements.order_by("position").values_list(
        "row__line", "response__candidate__name", "other_response__candidate__name"
    )
    return list(sides)


def attentive(request: Received) -> str:
    """The verdict for the model whose name comes first in the alphabet."""
    first, second = re.findall(r"^[AB]: (\w)", request.prompt, re.MULTILINE)
    return "[[A>B]]" if first < second else "[[B>A]]"


def test_every_pair_of_a_row_is_compared(project: Project) -> None:
    run = planned(project)
    assert pairs_of(run) == [(line, *pair) for line in (1, 2) for pair in ("ab", "ac", "bc")]
    assert (run.total, run.rows) == (6, 2)
    assert set(run.judgements.values_list("candidate__name", flat=True)) == {"a", "b"}


def test_each_candidate_is_compared_with_the_baseline(project: Project) -> None:
    assert pairs_of(planned(project, rows=1, compares="baseline", baseline="b")) == [(1, *"ab"), (1, *"cb")]


def test_of_several_answers_the_first_ones_meet(project: Project) -> None:
    numbers = planned(project, 1, "ab", answers=2).judgements.values_list(
        "response__number", "other_response__number"
    )
    assert list(numbers) == [(1, 1)]


def test_all_answers_meet_where_the_metric_says_so(project: Project) -> None:
    run = planned(project, 1, "ab", answers=2, all_answers=True)
    numbers = run.judgements.order_by("position").values_list("response__number", "other_response__number")
    assert list(numbers) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_a_pair_that_lacks_an_answer_is_not_planned(project: Project) -> None:
    version = a_version(project, 2, tuple("ab"))
    Response.objects.filter(row__line=2, candidate__name="b").delete()
    run = a_run(version, a_comparison(URL))
    planning.plan(run.pk)
    assert pairs_of(run) == [(1, "a", "b")]


def test_metrics_that_judge_answers_and_pairs_follow_each_other_row_by_row(project: Project) -> None:
    run = a_run(a_version(project, 2, tuple("ab")), a_metric(URL), a_comparison(URL, name="side by side"))
    planning.plan(run.pk)
    assert pairs_of(run) == [
        (line, *sides) for line in (1, 2) for sides in (("a", None), ("b", None), ("a", "b"))
    ]


def test_a_judge_of_one_order_sees_each_side_first_equally_often(project: Project) -> None:
    run = planned(project, 10, "abc", both_orders=False)
    for pair in ("ab", "ac", "bc"):
        sides = run.judgements.filter(
            response__candidate__name=pair[0], other_response__candidate__name=pair[1]
        ).values_list("shown_first", flat=True)
        assert sorted(sides) == [1] * 5 + [2] * 5


def test_the_seed_draws_the_sides(project: Project) -> None:
    version = a_version(project, 20, tuple("ab"))
    drawn = []
    for seed in (1, 1, 2):
        run = a_run(version, a_comparison(URL, both_orders=False), seed=seed)
        planning.plan(run.pk)
        drawn.append(list(run.judgements.order_by("position").values_list("shown_first", flat=True)))
    assert drawn[0] == drawn[1] != drawn[2]


def test_both_orders_have_no_first_side(project: Project) -> None:
    assert set(planned(project).judgements.values_list("shown_first", flat=True)) == {None}


def test_all_pairs_of_more_than_four_candidates_are_refused_with_their_number(project: Project) -> None:
    with pytest.raises(ValidationError, match="10 for each row with these 5 candidates"):
        planned(project, 1, "abcde")


def test_all_pairs_of_more_than_four_candidates_are_compared_if_allowed(project: Project) -> None:
    assert planned(project, 1, "abcde", any_pairs=True).total == 10


def test_a_baseline_that_is_not_in_the_run_is_refused(project: Project) -> None:
    with pytest.raises(ValidationError, match="“z”, which is not in this run"):
        planned(project, 1, "ab", compares="baseline", baseline="z")


def test_one_candidate_cannot_be_compared(project: Project) -> None:
    with pytest.raises(ValidationError, match="at least two"):
        planned(project, 1, "a")


def test_the_estimate_counts_pairs_orders_and_repeats(project: Project) -> None:
    version = a_version(project, 5, tuple("abc"))
    version.candidates.update(responses=5)
    choices = [
        MetricChoice(None, definition, [])
        for definition in (a_comparison(URL, repeats=3), a_metric(URL, name="score"))
    ]
    cost = cost_of(version, list(version.candidates.all()), choices, None)
    assert (cost.of_metrics, cost.calls, cost.about) == ((15, 15), 15 * 2 * 3 + 15, False)


def test_an_attentive_judge_settles_every_pair(project: Project, transactional_db: None) -> None:
    with ScriptedJudge(reply=attentive) as judge:
        run = work(a_run(a_version(project, 3, tuple("abc")), a_comparison(judge.url)))
    assert counts_in_force(run)["scored"] == run.total == 9
    assert set(run.judgements.values_list("value", flat=True)) == {'"A>B"'}
    assert len(judge.requests) == 18


def test_a_judge_that_names_the_first_side_settles_none(project: Project, transactional_db: None) -> None:
    with ScriptedJudge(reply="[[A>>B]]") as judge:
        run = work(a_run(a_version(project, 3, tuple("ab")), a_comparison(judge.url)))
    assert counts_in_force(run)["unsettled"] == run.unsettled == run.total == 3
    assert set(run.judgements.values_list("state", "value", "reason")) == {
        ("unsettled", None, "orders_disagree")
    }
    assert {flags for (flags,) in run.judgements.values_list("flags")} == {"order_flip"}


def test_a_moody_judge_leaves_as_many_unsettled_as_it_contradicts_itself(
    project: Project, transactional_db: None
) -> None:
    def moody(request: Received) -> str:
        return random.Random(request.prompt).choice(["[[A>B]]", "[[B>A]]"])

    with ScriptedJudge(reply=moody) as judge:
        run = work(a_run(a_version(project, 40, tuple("ab")), a_comparison(judge.url)))
    said = {request.prompt: moody(request) for request in judge.requests}
    prompts = [
        [f"Q: question {line}\nA: {a} says {line}.1\nB: {b} says {line}.1" for a, b in ("ab", "ba")]
        for line in range(1, 41)
    ]
    same = sum(said[first] == said[second] for first, second in prompts)
    assert run.unsettled == same
    assert 0 < same < 40


def test_a_retried_comparison_keeps_its_sides(project: Project, transactional_db: None) -> None:
    with ScriptedJudge(reply="hm") as judge:
        run = work(a_run(a_version(project, 4, tuple("ab")), a_comparison(judge.url, both_orders=False)))
        run_retry(run, ("unparsed",))
    sides = [
        list(
            run.judgements.filter(attempt=attempt)
            .order_by("row")
            .values_list("other_response", "shown_first")
        )
        for attempt in (1, 2)
    ]
    assert sides[0] == sides[1]


def test_scripts_get_both_answers_once_a_pair(project: Project, transactional_db: None) -> None:
    script = (
        "def preprocess(data, resp, **kwargs):\n"
        "    resp.seen = 'A'\n"
        "    kwargs['other_resp'].seen = 'B'\n"
        "    return resp.content + kwargs['other_resp'].content\n"
    )
    template = "{{ preprocess_result }} {{ a.seen }}{{ b.seen }}"
    with ScriptedJudge(reply="[[A=B]]") as judge:
        run = work(
            a_run(
                a_version(project, 1, tuple("ab")),
                a_comparison(judge.url, preprocess=script, template=template),
            )
        )
    assert run.scored == 1
    assert {request.prompt for request in judge.requests} == {
        "a says 1.1b says 1.1 AB",
        "a says 1.1b says 1.1 BA",
    }


def test_postprocess_gets_both_orders(project: Project, transactional_db: None) -> None:
    script = (
        "def postprocess(judge_reqs, judge_resps, judge_models, data, resp, other_resp, **kwargs):\n"
        "    orders = [[r.swapped for r in seen] for seen in (judge_reqs, judge_resps)]\n"
        "    assert (orders, other_resp.content) == ([[False, True]] * 2, 'b says 1.1')\n"
        "    return 'B>A'\n"
    )
    with ScriptedJudge(reply="[[A=B]]") as judge:
        run = work(a_run(a_version(project, 1, tuple("ab")), a_comparison(judge.url, postprocess=script)))
    assert run.judgements.get().value == '"B>A"'


def test_answers_that_the_run_generates_are_compared(project: Project, transactional_db: None) -> None:
    def reply(request: Received) -> str:
        return attentive(request) if request.prompt.startswith("Q:") else "x answer"

    with ScriptedJudge(reply=reply) as judge:
        version = a_version(project, 4, ("y",))
        candidates = [a_candidate(judge.url, name) for name in ("x", "z")]
        run = a_run(version, a_comparison(judge.url), candidate_models=candidates)
        run = worked_by(run, 2)
        asked = sum(not request.prompt.startswith("Q:") for request in judge.requests)
    assert (run.total, run.done, asked) == (12, 12, 8)
    assert Judgement.objects.filter(run=run, state="error").count() == 0
