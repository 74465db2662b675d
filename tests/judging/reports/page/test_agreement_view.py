"""Judges, raters, comparisons and slices for display in a report: pure functions over a document's figures."""

from __future__ import annotations

from typing import Any

import pytest

from judging.core.values import scale_level
from judging.reports.labels import ValueFormat, kappa
from judging.reports.links import Links
from judging.reports.page.agreement_view import agreement_view, confusion_of
from judging.reports.page.judge_health import judges_table
from judging.reports.page.side_by_side_view import rating_points, side_views, steps_of, win_matrix
from judging.reports.page.slices_view import SliceLinks, ends_of, slices_of

NUMBERS = ValueFormat()
LINKS = Links("/list/", "/pair/", "/agreement/", "/verdicts/")
NOWHERE = SliceLinks(Links.none(), "m", "category")
SLICE_LINKS = SliceLinks(LINKS, "m", "category")


def a_judge(**changes: Any) -> dict[str, Any]:
    agreement = {"exact": 0.6, "kappa": 0.4, "kappa_weighted": 0.71, "kappa_low": 0.6, "kappa_high": 0.8}
    bias = {"spearman": 0.7, "bias": 0.31, "bias_low": 0.14, "bias_high": 0.48}
    table = {"labels": [1.0, 2.0], "confusion": [[3, 1], [0, 4]], "human": None}
    further = dict.fromkeys(("alpha", "kendall", "pearson", "mean_absolute_difference"))
    who = {"metric": "m", "judge": "gpt", "against": "people", "items": 8}
    return {**who, **agreement, **bias, **table, **further, **changes}


def judges(*found: dict[str, Any], **more: Any) -> Any:
    return agreement_view({"judges": list(found), **more}, "m", NUMBERS, {}, LINKS).judges


def test_without_judges_and_raters_there_is_nothing_to_say() -> None:
    assert not agreement_view({}, "m", NUMBERS, {}, LINKS)


def test_people_come_before_other_judges() -> None:
    found = judges(a_judge(against="other"), a_judge())
    assert [one.against for one in found] == ["people", "other"]


def test_the_human_figure_is_next_to_the_judges() -> None:
    (one,) = judges(a_judge(human={"kappa_weighted": 0.69, "exact": 0.61}))
    assert [(stat.value, stat.more) for stat in one.stats[:2]] == [
        ("0.71", "[0.60, 0.80] · people: 0.69"),
        ("60 %", "people: 61 %"),
    ]


def test_the_ceiling_compares_raters_and_the_judge_with_the_same_values() -> None:
    others = {
        "items": 30,
        "exact": 0.7,
        "kappa_weighted": 0.6,
        "judge_exact": 0.8,
        "judge_kappa_weighted": 0.65,
    }
    (judge,) = judges(a_judge(human={"kappa_weighted": 0.69, "exact": 0.61, "others": others}))
    assert judge.ceiling.rows == [["Each rater", "70 %", "0.60"], ["The judge", "80 %", "0.65"]]


def test_with_one_rater_an_item_there_is_no_ceiling() -> None:
    human = {"kappa_weighted": None, "exact": None, "others": None}
    assert [judge.ceiling for judge in judges(a_judge(human=human), a_judge())] == [None, None]


def test_without_a_human_figure_kappa_has_its_interval() -> None:
    (one,) = judges(a_judge())
    assert one.stats[0].more == "[0.60, 0.80]"


def test_order_flips_are_with_their_judge() -> None:
    (one,) = judges(
        a_judge(),
        order=[
            {
                "metric": "m",
                "judge": "gpt",
                "pairs": 150,
                "flips": 9,
                "share": 0.06,
                "first_side": {"first": 70, "second": 70, "ties": 10, "share": 0.5},
            }
        ],
    )
    address = "/verdicts/?kind=orders&amp;metric=m&amp;judge=gpt&amp;apart=yes"
    flips = ("6 %", f'<a href="{address}">9 of 150</a>')
    assert flips in [(stat.value, stat.more) for stat in one.stats]


def test_figures_that_do_not_exist_are_left_out() -> None:
    (one,) = judges(a_judge(kappa=None, kappa_weighted=None, spearman=None))
    assert len(one.stats) == 2


def test_labels_without_order_have_cohen_s_kappa() -> None:
    (one,) = judges(a_judge(kappa_weighted=None))
    assert (one.stats[0].name, one.stats[0].value) == ("κ", "0.40")


@pytest.mark.parametrize(
    ("confusion", "kappa_of_it", "side"),
    [
        ([[3, 0], [4, 0]], 0.0, "People"),
        ([[3, 4], [0, 0]], 0.0, "The judge"),
        ([[7, 0], [0, 0]], None, "Neither"),
    ],
)
def test_kappa_says_nothing_where_a_side_never_varies(
    confusion: list[list[int]], kappa_of_it: float | None, side: str
) -> None:
    (one,) = judges(a_judge(confusion=confusion, kappa=kappa_of_it, kappa_weighted=kappa_of_it))
    assert (one.stats[0].value, one.note.startswith(side)) == ("n/a", True)


def test_the_confusion_table_has_the_judges_highest_value_on_top() -> None:
    confusion = confusion_of(a_judge(), LINKS)
    assert confusion is not None
    assert [(label, [cell.text for cell in cells]) for label, cells in confusion.rows] == [
        ("2", ["0", "4"]),
        ("1", ["3", "1"]),
    ]


def test_pass_and_fail_are_words_along_the_sides_of_the_table() -> None:
    table = {"labels": [False, True], "confusion": [[11, 1], [4, 22]], "true_positive_rate": 0.96}
    confusion = confusion_of(a_judge(**table), LINKS)
    assert confusion is not None
    assert (confusion.labels, [label for label, _cells in confusion.rows]) == (
        ["Fail", "Pass"],
        ["Pass", "Fail"],
    )
    assert confusion.rows[0][1][0].tip == "judge Pass, people Fail: 4"


def test_its_cells_lead_to_what_two_judges_said() -> None:
    confusion = confusion_of(a_judge(against="glm"), LINKS)
    assert confusion is not None
    addresses = [cell.address for cell in confusion.rows[0][1]]
    assert addresses == ["", "/verdicts/?kind=judges&metric=m&rater=gpt&other=glm&value=2&other_value=2"]


def test_many_values_are_rounded_to_whole_numbers() -> None:
    labels = [step / 2 for step in range(2, 25)]
    counts = [[int(row == column) for column in range(len(labels))] for row in range(len(labels))]
    confusion = confusion_of(a_judge(labels=labels, confusion=counts), LINKS)
    assert confusion is not None
    assert confusion.labels[:3] == ["1", "2", "3"]
    assert [cell.text for cell in confusion.rows[-2][1]][:3] == ["0", "2", "0"]
    assert "&value=~2&other_value=~2" in confusion.rows[-2][1][1].address


def test_too_many_values_make_no_confusion_table() -> None:
    assert confusion_of(a_judge(confusion=[], labels=[]), LINKS) is None


def test_columns_of_judge_health_without_figures_are_left_out() -> None:
    table = judges_table(
        {"repeats": [{"metric": "m", "judge": "gpt", "exact": 0.8, "items": 3}]}, NUMBERS, LINKS
    )
    assert table is not None
    assert [column.name for column in table.columns] == ["Judge", "Repeats that agree"]


def test_raters_have_alpha_and_its_interval() -> None:
    each = {"R1": {"items": 4, "agreement_with_others": 0.5, "seconds": 12.0}}
    figures = {"alpha": 0.71, "ci_low": 0.5, "ci_high": 0.9, "percent": 0.6, "ac1": 0.5, "fleiss": None}
    raters = {
        "metric": "m",
        "level": "ordinal",
        "ac2": None,
        "labels": 3,
        "labels_offered": True,
        "items": 4,
        "raters": 2,
        "pairs": [],
        "each": each,
        **figures,
    }
    view = agreement_view({"raters": [raters]}, "m", NUMBERS, {}, LINKS).raters
    assert view is not None
    assert (view.stats[0].name, view.stats[0].value) == ("Krippendorff's α (ordinal)", "0.71")
    linked = '<a href="/verdicts/?kind=ratings&amp;metric=m&amp;rater=R1">4</a>'
    assert view.each.rows == [["R1", linked, "50 %", "12 s"]]


def test_a_refused_correction_says_why() -> None:
    one = {
        "metric": "m",
        "candidate": "a",
        "judge": "gpt",
        "people_mean": 3.0,
        "labelled": 4,
        "judge_mean": 4.0,
    }
    refused = {
        "judged": 9,
        "value": None,
        "ci_low": None,
        "ci_high": None,
        "halve": None,
        "refused": "not_random",
    }
    table = agreement_view({"corrected": [one | refused]}, "m", NUMBERS, {}, LINKS).corrected
    assert table is not None
    assert "the rated items are not a random sample" in table.rows[0]


def test_a_correction_by_a_licence_leads_to_no_answers_of_this_run() -> None:
    figures = {"people_mean": None, "labelled": 240, "judge_mean": 0.7, "judged": 400, "value": 0.65}
    ends = {"ci_low": 0.6, "ci_high": 0.7, "halve": None, "refused": None}
    licence = {"metric": "m", "candidate": "a", "judge": "gpt", "source": "licence", "outside": True}
    table = agreement_view({"corrected": [licence | figures | ends]}, "m", NUMBERS, {}, LINKS).corrected
    assert table is not None
    assert table.rows[0][3] == "240 in the licence's test"
    assert table.rows[0][6] == "0.65 the test says little here"


@pytest.mark.parametrize(("value", "text"), [(0.714, "0.71"), (-0.2, "−0.20"), (None, "–")])
def test_kappa_has_two_decimals(value: float | None, text: str) -> None:
    assert kappa(value) == text


@pytest.mark.parametrize(("rating", "points"), [(0.0, "1000"), (2.302585, "1400"), (None, "–")])
def test_a_rating_is_shown_on_the_scale_of_chess(rating: float | None, points: str) -> None:
    assert rating_points(rating) == points


def a_side_pair(a: str, b: str, **changes: Any) -> dict[str, Any]:
    counts = {
        "wins": 6,
        "ties": 2,
        "losses": 2,
        "both_bad": 0,
        "unsettled": 0,
        "win_rate": 0.7,
        "ci_low": 0.55,
        "ci_high": 0.8,
    }
    return {"a": a, "b": b, **counts, **changes}


def test_wins_are_shown_from_both_sides() -> None:
    matrix = win_matrix(["a", "b", "c"], [a_side_pair("a", "b"), a_side_pair("b", "c", ci_low=0.4)])
    assert matrix is not None
    shown = [[cell and (cell.text, cell.tone) for cell in row] for _name, row in matrix.rows]
    assert shown == [
        [None, ("70 %", "up2"), None],
        [("30 %", "down2"), None, ("70 %", "tie")],
        [None, ("30 %", "tie"), None],
    ]


def test_the_steps_of_a_pair_fill_one_bar() -> None:
    steps = steps_of({"A>>B": 1, "A>B": 1, "A=B": 2}, a_side_pair("a", "b"))
    assert [(step.name, step.x, step.width) for step in steps[:3]] == [
        ("a much better", "0.00", "25.00"),
        ("a better", "25.00", "25.00"),
        ("tie", "50.00", "50.00"),
    ]


def test_comparisons_that_are_not_connected_are_said_to_be_so() -> None:
    cell = dict.fromkeys(("rank_low", "rank_high", "rating", "rating_low", "win_rate", "ci_low", "ci_high"))
    counts = dict.fromkeys(("wins", "ties", "losses", "both_bad", "unsettled", "comparisons"), 0)
    one = {"metric": "m", "by": "people", "candidates": {"a": cell | counts}, "pairs": [], "steps": {}}
    (view,) = side_views(
        {"side_by_side": [one | {"connected": False, "one_order": False, "first_side": {"share": None}}]},
        "m",
        {},
    )
    assert view.warnings == ["The comparisons do not connect all candidates, so there is no common rating."]


def a_breakdown(p: float | None = 0.01) -> dict[str, Any]:
    cell = {"mean": 8.0, "ci_low": 7.0, "ci_high": 9.0, "items": 10}
    deviation = {"value": "math", "candidate": "a", "metric": "m", "difference": -1.5, "p": p, "p_bh": p}
    return {
        "field": "category",
        "values": {"math": {"a": {"m": cell}}},
        "comparisons": [deviation],
        "left_out": 0,
    }


@pytest.mark.parametrize(("p", "text"), [(0.01, "8.00 *"), (0.5, "8.00"), (None, "8.00")])
def test_a_value_that_differs_from_the_rest_is_marked(p: float | None, text: str) -> None:
    slices = slices_of(a_breakdown(p), "m", ["a", "b"], NUMBERS, (1, 10), NOWHERE)
    assert slices is not None
    assert [cell.text for cell in slices.rows[0][1]] == [text, "–"]


@pytest.mark.parametrize(
    ("items", "ends", "text", "tone"),
    [
        (1, (None, None), "8.00 †", "scale4 few"),
        (2, (None, None), "8.00 †", "scale4 few"),
        (4, (7.0, 9.0), "8.00", "scale4 few"),
        (5, (7.0, 9.0), "8.00", "scale4"),
    ],
)
def test_small_groups_are_marked(
    items: int, ends: tuple[float | None, float | None], text: str, tone: str
) -> None:
    breakdown = a_breakdown(None)
    breakdown["values"]["math"]["a"]["m"] |= {"items": items, "ci_low": ends[0], "ci_high": ends[1]}
    slices = slices_of(breakdown, "m", ["a"], NUMBERS, (1, 10), NOWHERE)
    assert slices is not None
    (cell,) = slices.rows[0][1]
    assert (cell.text, cell.tone) == (text, tone)
    assert slices.without_interval == ("†" in text)


def test_no_breakdown_is_no_table() -> None:
    assert slices_of(None, "m", ["a"], NUMBERS, (1, 10), NOWHERE) is None
    assert slices_of(a_breakdown(), "other", ["a"], NUMBERS, (1, 10), NOWHERE) is None


@pytest.mark.parametrize(("mean", "level"), [(1, 1), (5.4, 3), (10, 5)])
def test_shades_run_over_the_scale(mean: float, level: int) -> None:
    assert scale_level(mean, 1, 10) == level


def test_means_beyond_the_scale_shade_by_themselves() -> None:
    assert ends_of([3.0, 12.0], (1, 10), rate=False) == (3.0, 12.0)


def test_the_cells_of_slices_lead_to_their_items() -> None:
    slices = slices_of(a_breakdown(), "m", ["a"], NUMBERS, (1, 10), SLICE_LINKS)
    assert slices is not None
    address = slices.rows[0][1][0].address
    assert address == "/list/?candidate=a&metric=m&state=scored&field=category&field_is=math"


@pytest.mark.parametrize("value", ["", '["math"]'])
def test_what_a_list_cannot_be_filtered_by_is_no_link(value: str) -> None:
    assert SLICE_LINKS.to_cell("a", value) == ""


def test_judges_and_people_are_shown_next_to_each_other_value_by_value() -> None:
    breakdown = a_breakdown() | {"values": {}, "judges": [a_judge(value="math")]}
    slices = slices_of(breakdown, "m", ["a"], NUMBERS, (1, 10), SLICE_LINKS)
    assert slices is not None
    assert slices.agreement is not None
    (row,) = slices.agreement.rows
    assert (row[0], row[2], row[3]) == ("math", "60 %", "0.71")
    assert "field=category&amp;field_is=math" in row[1]


def test_a_judge_s_bias_on_each_candidate_is_next_to_that_on_the_others() -> None:
    ends = {"bias_low": 0.5, "bias_high": 1.5, "ci_low": 0.2, "ci_high": 1.4}
    cells = [
        {"candidate": name, "items": 9, "bias": bias, "difference": 0.8, **ends}
        for name, bias in (("a", 1), ("b", 0.2))
    ]
    (one,) = judges(a_judge(by_candidate=cells))
    assert one.by_candidate is not None
    items = '<a href="/agreement/?metric=m&amp;judge=gpt&amp;candidate=a">9</a>'
    assert list(one.by_candidate.rows[0]) == ["a", items, "+1.00 [0.50, 1.50]", "+0.80 [0.20, 1.40]"]
    (alone,) = judges(a_judge(by_candidate=cells[:1]))
    assert alone.by_candidate is None
