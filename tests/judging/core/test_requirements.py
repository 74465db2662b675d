"""Requirements on a report."""

from functools import cache
from typing import Any

import pytest

from judging.core.requirements import (
    MET,
    NOT_MET,
    RequirementError,
    decide,
    exit_status,
    parse_requirement,
)
from judging.core.statistics.frame import ScaledMetric
from tests.judging.core.statistics.cast import compared, document, person, said

SCORES = [5, 6, 7, 6, 5, 6, 7, 6, 6, 6] * 4  # mean 6, a narrow interval


def scores(values=SCORES, candidate="alpha", **more):
    return [said(value, candidate=candidate, row=row, **more) for row, value in enumerate(values)]


@cache
def report_of_two():
    return document([*scores(), *scores([value - 2 for value in SCORES], "beta")])


def decided(text, report=None, **options):
    return decide(parse_requirement(text), report or report_of_two(), **options)


@pytest.mark.parametrize(
    ("text", "kind", "names", "metric", "operator", "bound"),
    [
        ("qwen3 quality >= 7.5", "candidate", ("qwen3",), "quality", ">=", 7.5),
        ("gpt-4 quality<=-0.5", "candidate", ("gpt-4",), "quality", "<=", -0.5),
        ('"my model" "my metric" >= 7', "candidate", ("my model",), "my metric", ">=", 7),
        ('"a" - "b" quality >= 0', "difference", ("a", "b"), "quality", ">=", 0),
        ("gpt-4 - gpt-3 quality >= 0", "difference", ("gpt-4", "gpt-3"), "quality", ">=", 0),
        ("judge quality kappa_weighted >= 0.6", "judge", ("kappa_weighted",), "quality", ">=", 0.6),
        ("judge quality >= 7", "candidate", ("judge",), "quality", ">=", 7),
        (r'"a \"b\"" quality >= 7', "candidate", ('a "b"',), "quality", ">=", 7),
        ("模型甲 质量 >= 7", "candidate", ("模型甲",), "质量", ">=", 7),
    ],
)
def test_requirements_are_read(text, kind, names, metric, operator, bound):
    got = parse_requirement(text)
    assert (got.kind, got.names, got.metric, got.operator, got.bound) == (
        kind,
        names,
        metric,
        operator,
        bound,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not complete"),
        ("quality >= 7", "is not complete"),
        ("my model quality >= 7", "too many names"),
        ("qwen3 quality > 7", "character 15, '>'"),
        ("qwen3 quality >= high", "must end with a number, not 'high'"),
        ("qwen3 quality >= nan", "must end with a number"),
        ('"qwen3 quality >= 7', "character 1"),
        ("judge quality spearman >= 0.6", "spearman is no figure of a judge with an interval"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(text, says):
    with pytest.raises(RequirementError, match=says):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("alpha m >= 5", "met"),
        ("alpha m >= 6.1", "undecided"),
        ("alpha m >= 7", "not_met"),
        ("alpha m <= 7", "met"),
        ("alpha m <= 5", "not_met"),
        ("alpha - beta m >= -1", "met"),
        ("beta - alpha m >= -5", "met"),
        ("beta - alpha m >= 1", "not_met"),
        ("beta - alpha m <= 1", "met"),
    ],
)
def test_the_interval_decides(text, verdict):
    assert decided(text).verdict == verdict


def test_the_sentence_has_figure_interval_and_items():
    assert decided("alpha m >= 7").sentence == (
        "Not met: alpha m >= 7: 6, 95 % interval 5.692 to 6.303, 40 items."
    )


def test_an_undecided_one_says_how_many_more_items_would_decide_it():
    got = decided("alpha m >= 6.1")
    assert got.more_items == pytest.approx(40 * (0.3034 / 0.1) ** 2 - 40, abs=3)
    assert got.sentence.endswith(f"about {got.more_items} more items would decide it.")


def test_with_those_items_it_is_decided():
    more = decided("alpha m >= 5.85").more_items
    grown = document(scores((SCORES * 10)[: 50 + more // 10 * 10]))
    assert decided("alpha m >= 5.85", grown).verdict == "met"


@pytest.mark.parametrize(
    ("items", "verdict"), [(2, "undecided"), (5, "undecided"), (10, "undecided"), (20, "met")]
)
def test_a_flawless_candidate_is_decided_by_its_number_of_items(items, verdict):
    got = decided("alpha m >= 8", document(scores([10] * items)))
    assert got.verdict == verdict
    if items == 10:
        grown = document(scores([10] * (items + got.more_items)))
        assert decided("alpha m >= 8", grown).verdict == "met"


def test_candidates_that_always_differ_alike_are_decided_by_their_number_of_items():
    few, many = (document([*scores([9] * size), *scores([4] * size, "beta")]) for size in (3, 40))
    assert decided("alpha - beta m >= 2", few).verdict == "undecided"
    assert decided("alpha - beta m >= 2", many).verdict == "met"


def test_a_figure_on_the_bound_is_not_decided_by_more_items():
    assert decided("alpha m >= 6").more_items is None


def test_one_item_decides_nothing():
    got = decided("alpha m >= 5", document([said(9)]))
    assert (got.verdict, got.sentence) == ("undecided", "Undecided: alpha m >= 5: there is no interval.")


def test_unscored_ones_count_against_it_only_where_strict():
    report = document(scores([*SCORES, *"??????????"]))
    assert decided("alpha m >= 5.5", report).verdict == "met"
    assert decided("alpha m >= 5.5", report, strict=True).verdict == "not_met"
    assert decided("alpha m <= 6.5", report).verdict == "met"
    assert decided("alpha m <= 6.5", report, strict=True).verdict != "met"


def test_a_scale_without_ends_leaves_a_strict_requirement_undecided():
    report = document(scores([*SCORES, "?"]), ScaledMetric("m"))
    assert decided("alpha m >= 5", report).verdict == "met"
    assert decided("alpha m >= 5", report, strict=True).verdict == "undecided"


def test_a_judge_must_agree_with_people_and_every_judge_must():
    people = [person(value, row=row) for row, value in enumerate(SCORES)]
    good, bad = scores(), scores(SCORES[::-1], by="glm")
    assert decided("judge m kappa_weighted >= 0.6", document([*good, *people])).verdict == "met"
    assert decided("judge m kappa_weighted >= 0.6", document([*good, *bad, *people])).verdict == "not_met"
    assert decided("judge m bias <= 3", document([*good, *people])).verdict == "met"


def test_of_combined_judges_only_what_they_come_to_must_agree():
    people = [person(value, row=row) for row, value in enumerate(SCORES)]
    behind = scores(SCORES[::-1], by="glm", main=False)
    report = document([*scores(by="combined", source="combined"), *behind, *people])
    assert decided("judge m kappa_weighted >= 0.6", report).verdict == "met"


def test_comparisons_are_required_by_their_win_rate():
    report = document(
        [compared("A>B" if row % 10 else "B>A", row=row) for row in range(60)], ScaledMetric("m")
    )
    assert decided("alpha m >= 0.6", report).verdict == "met"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gamme m >= 5", "no candidate called 'gamme'; it has: alpha"),
        ("alpha n >= 5", "no metric called 'n'; it has: m"),
        ("judge m kappa_weighted >= 0.5", "no verdicts of people and of a judge"),
        ("alpha - alpha m >= 0", "does not compare alpha with alpha"),
    ],
)
def test_names_that_the_report_does_not_have_are_said(text, says):
    with pytest.raises(RequirementError, match=says):
        decided(text)


def test_categories_have_nothing_to_require():
    with pytest.raises(RequirementError, match="categories"):
        decided("alpha m >= 1", document([said("good")], ScaledMetric("m")))


@pytest.mark.parametrize(
    ("texts", "status"),
    [
        ([], 0),
        (["alpha m >= 5"], 0),
        (["alpha m >= 5", "alpha m >= 6.1"], 4),
        (["alpha m >= 6.1", "alpha m >= 7", "alpha m >= 5"], 3),
    ],
)
def test_the_worst_of_several_gives_the_status(texts, status):
    assert exit_status([decided(text) for text in texts]) == status


def with_licences(*entries: dict[str, Any]) -> dict[str, Any]:
    usual = {"judge": "gpt", "state": "valid", "use": "trends", "dataset": "exam", "here": True}
    cells = {"alpha": {name: {} for name in ("m", "n", "licence", "rules")}}
    return {"candidates": cells, "licences": [usual | entry for entry in entries]}


@pytest.mark.parametrize(
    ("text", "entry", "verdict"),
    [
        ("licence m", {}, MET),
        ("licence", {}, MET),
        ("licence m exploring here", {}, MET),
        ("licence m trends", {"use": "gates"}, MET),
        ("licence m gates", {}, NOT_MET),
        ("licence m", {"use": None}, NOT_MET),
        ("licence m here", {"here": False}, NOT_MET),
        ("licence m", {"state": "none", "use": None}, NOT_MET),
        ("licence m", {"state": "lapsed", "use": None}, NOT_MET),
        ("licence m", {"state": "suspended", "use": None}, NOT_MET),
        ("licence", {"state": "none", "use": None}, NOT_MET),
        ("licence rules", {"state": "none", "use": None}, MET),
        ('licence "licence" trends', {"metric": "licence", "use": "exploring"}, NOT_MET),
        ('licence "licence"', {"metric": "licence"}, MET),
    ],
)
def test_a_licence_is_required_of_every_judge_model(text: str, entry: dict[str, Any], verdict: str) -> None:
    report = with_licences({"metric": "m", **entry})
    assert decide(parse_requirement(text), report).verdict == verdict


def test_every_metrics_judge_needs_its_own_licence() -> None:
    report = with_licences({"metric": "m"}, {"metric": "n", "state": "lapsed", "use": None})
    decision = decide(parse_requirement("licence"), report)
    assert decision.sentence == "Not met: licence: n: the licence of gpt is lapsed."
    assert exit_status([decision]) == 3


@pytest.mark.parametrize("text", ["licence m often", "licence m trends gates", "licence two words"])
def test_a_licence_requirement_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(RequirementError, match="after a licence's metric"):
        parse_requirement(text)


def test_a_candidate_may_be_called_licence() -> None:
    assert parse_requirement("licence m >= 3").kind == "candidate"


def test_a_licence_for_an_unknown_metric_is_refused() -> None:
    with pytest.raises(RequirementError, match="no metric called 'x'"):
        decide(parse_requirement("licence x"), with_licences())
