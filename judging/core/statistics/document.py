"""The structure of the document printed by `report --json`; a figure that cannot be computed is None, never NaN."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from .numeric import BinCount

LAYOUT = 16
"""Of stored documents. Increase it for a new figure or another formula, so that they are computed again."""


class Interval(TypedDict):
    """The ends of a 95 % interval, in the unit of the figure beside them."""

    ci_low: float | None
    ci_high: float | None


class EstimatedDifference(Interval):
    """The difference of two means with its two-sided p, each None if it cannot be computed."""

    difference: float | None
    p: float | None


class Outcomes(Interval):
    """Comparisons of one candidate with another, or all others; `ties` include `both_bad`.

    `unsettled`: pairs on which a judge's two orders disagree, or its judges, counted apart from ties. `win_rate`: over
    items, with a tie or an unsettled pair as half a win; see `intervals.rate_interval`.
    """

    wins: int
    ties: int
    losses: int
    both_bad: int
    unsettled: int
    win_rate: float | None


class CategoryShare(Interval):
    """`count`: responses; `share` (0…1): the mean of the items' shares; see `intervals.rate_interval`."""

    count: int
    share: float | None


class OtherCategories(TypedDict):
    """The labels beyond the most frequent ones, summed up."""

    labels: int
    count: int


class CriterionCell(Interval):
    """A checklist's criterion: in how many rows it occurs (`items`), how many answers meet it, their rate, and on how
    many it is open (`unparsed`). `key`: its own id, or else its text, which rows may share."""

    key: str
    id: str
    criterion: str
    tags: list[str]
    items: int
    met: int
    rate: float | None
    unparsed: int


class TagCell(Interval):
    """The mean share of the points of a tag's criteria, over `items` rows, cut to 0…1."""

    mean: float | None
    items: int


class CriterionHealth(TypedDict):
    """A criterion that says little or is disputed. `answers`: with a verdict; `people_disagree`, `judge_disagrees`:
    answers on which raters differ, or the judge differs from most of them."""

    key: str
    id: str
    criterion: str
    answers: int
    always_met: bool
    never_met: bool
    people_disagree: int
    judge_disagrees: int


class CriterionAgreement(TypedDict):
    """How well raters agree on a criterion, over the `answers` on which at least two of them decided; "can't tell" and
    adjudications count as no rating. `percent`: share of pairs of raters; `alpha`: Krippendorff's, nominal; `ac1`:
    Gwet's, which stays stable where nearly all say the same."""

    key: str
    id: str
    criterion: str
    answers: int
    percent: float | None
    alpha: float | None
    ac1: float | None


class VarianceShares(TypedDict):
    """Variance components in squared score units, and the share of the total that is between items.

    `se_twice_items`, `se_twice_responses`: the approximate standard error of the mean with twice as many items, or
    twice as many responses per item; they show which of the two is the better use of calls.
    """

    between: float | None
    within: float | None
    share_between: float | None
    se_twice_items: float | None
    se_twice_responses: float | None


class Cell(Interval):
    """The figures of one metric for one candidate.

    `kind`: "number", "bool" or "category", the kind of values that the mean is over; None if nothing is scored.
    `kinds`: number of scored responses by kind. `mean`: over items, averaging each item's responses first; a bool
    counts as 1 or 0; None for categories. `ci_low`, `ci_high`: see `intervals`, for bools as a rate. `items`: items
    behind the main figure; `clusters`: independent units among them. `responses` = scored + no_score + unparsed +
    unsettled + errors + not_run; `asked` = responses − no_score; `coverage` = (scored + unsettled) / asked, None if
    `asked` is 0. `unsettled`: comparisons of candidates whose orders, or judges, disagree. `low_bound`,
    `high_bound`: the mean if every unparsed, failed or not run response had got the lowest/highest score (of the scale
    or observed, whichever is further out). `top_share`: share of scored responses at or above the scale's top, averaged
    per item first. `off_scale`: scored responses outside the declared scale. `distribution`: of numbers
    bins; of bools and labels the number of responses. `notes`: codes, see `NOTES`.
    """

    kind: str | None
    kinds: dict[str, int]
    mean: float | None
    se: float | None
    items: int
    clusters: int
    responses: int
    asked: int
    scored: int
    no_score: int
    unparsed: int
    unsettled: int
    errors: int
    not_run: int
    coverage: float | None
    low_bound: float | None
    high_bound: float | None
    top_share: float | None
    off_scale: int
    distribution: list[BinCount] | dict[str, int]
    notes: list[str]
    rate: NotRequired[float | None]
    rate_ci_low: NotRequired[float | None]
    rate_ci_high: NotRequired[float | None]
    categories: NotRequired[dict[str, CategoryShare]]
    other_categories: NotRequired[OtherCategories]
    best_at_k: NotRequired[dict[str, float | None]]
    worst_at_k: NotRequired[dict[str, float | None]]
    pass_at_k: NotRequired[dict[str, float | None]]
    all_pass_at_k: NotRequired[dict[str, float | None]]
    at_k_items: NotRequired[dict[str, int]]
    pass_threshold: NotRequired[float]
    variance: NotRequired[VarianceShares]
    criteria: NotRequired[list[CriterionCell]]
    tags: NotRequired[dict[str, TagCell]]


class Pair(EstimatedDifference):
    """Two candidates compared on the items for which both have a mean; `difference` is a − b.

    `p_holm` is corrected over all pairs of the same metric; `distinguishable`: whether it is below 1 − level.
    `smallest_difference`: the difference detectable with this many items at the report's power; `items_needed`: to
    detect `wanted_difference`.
    """

    a: str
    b: str
    metric: str
    items: int
    clusters: int
    se: float | None
    p_holm: float | None
    distinguishable: bool | None
    wins: int
    ties: int
    losses: int
    smallest_difference: float | None
    wanted_difference: float | None
    items_needed: int | None


class SideCell(Outcomes):
    """One candidate's comparisons.

    `settled_rate`: the win rate of the settled ones; `low_bound`, `high_bound`: if all unsettled ones had been lost, or
    won.

    `rating`: Bradley–Terry in natural log-odds, mean zero over the candidates, with `se` and interval from the sandwich
    estimator clustered by row; None if a candidate won or lost all, or if the candidates are not connected.
    `rank_low`…`rank_high`: possible ranks given the intervals, 1 is best. `style_rating`: the rating adjusted for the
    answers' style features; None without them.
    """

    comparisons: int
    settled_rate: float | None
    low_bound: float | None
    high_bound: float | None
    rating: float | None
    se: float | None
    rating_low: float | None
    rating_high: float | None
    rank_low: int | None
    rank_high: int | None
    style_rating: float | None


class SidePair(Outcomes):
    """The comparisons of a with b."""

    a: str
    b: str


class SideDifference(TypedDict):
    """Two candidates' strengths: `difference` of their ratings (a − b, log-odds), or None without ratings, where the
    test is about the comparisons of the two alone. `higher`: who is better; None if neither.

    `p_holm` is corrected over all pairs; `distinguishable`: whether it is below 1 − level.
    """

    a: str
    b: str
    difference: float | None
    higher: str | None
    p: float | None
    p_holm: float | None
    distinguishable: bool | None


class FirstSide(Interval):
    """How often the answer shown first won; `share` counts a tie as half a win."""

    first: int
    second: int
    ties: int
    share: float | None


class Coefficient(TypedDict):
    """Natural log-odds per standard deviation of the feature's difference between the two answers."""

    coefficient: float
    se: float


class SideBySide(TypedDict):
    """Comparisons under one metric by one author (a judge's name, `rules`, `script`, `combined` or `people`).

    `steps`: how often each verdict was given, from the point of view of `a` in `pairs`. `one_order`: a judge saw pairs
    of candidates in one known order only. `perfect`: candidates that won or lost all. `style`: coefficients of a
    Bradley–Terry model with candidates and style features; None without features.
    """

    metric: str
    by: str
    candidates: dict[str, SideCell]
    pairs: list[SidePair]
    differences: list[SideDifference]
    steps: dict[str, int]
    connected: bool
    perfect: list[str]
    one_order: bool
    first_side: FirstSide
    style: dict[str, Coefficient] | None


class AgainstOthers(TypedDict):
    """Each rater compared with the value of the item's other raters, and the judge with the same values.

    `items`: rated by at least two people; each counts once for every rater.
    """

    items: int
    exact: float | None
    kappa_weighted: float | None
    judge_exact: float | None
    judge_kappa_weighted: float | None


class HumanCeiling(TypedDict):
    """How well people agree with each other on the same items, over pairs of raters.

    `others`: a comparison that is fair to the judge; None with one rater an item.
    """

    items: int
    exact: float | None
    kappa_weighted: float | None
    alpha: float | None
    others: AgainstOthers | None


class CandidateBias(Interval):
    """A judge's bias (judge − people) on one candidate's answers, and its difference from the bias on the others'.

    If judge and candidate belong to the same model family, a difference above 0 indicates self-preference.
    """

    candidate: str
    items: int
    bias: float | None
    bias_low: float | None
    bias_high: float | None
    difference: float | None


class JudgeAgreement(TypedDict):
    """A judge compared with people's value of an answer, or with another judge, on the items that both rated.

    `kappa` is Cohen's, `kappa_weighted` quadratic, with its bootstrap interval by rows. If one side is constant, both
    are 0 without an interval; if both are, they are None. `bias`: judge − other. `confusion[i][j]`: how often the judge
    gave `labels[i]` when the other gave `labels[j]`; empty if there are too many different values.
    `true_positive_rate`, `true_negative_rate`, if both are binary: the share of what the other calls true (false) for
    which the judge agrees; see `intervals.rate_interval`.
    """

    metric: str
    judge: str
    against: str
    items: int
    exact: float | None
    kappa: float | None
    kappa_weighted: float | None
    kappa_low: float | None
    kappa_high: float | None
    spearman: float | None
    pearson: float | None
    kendall: float | None
    alpha: float | None
    mean_absolute_difference: float | None
    bias: float | None
    bias_low: float | None
    bias_high: float | None
    confusion: list[list[int]]
    labels: list[str | float]
    human: HumanCeiling | None
    by_candidate: NotRequired[list[CandidateBias]]
    true_positive_rate: NotRequired[float | None]
    true_positive_low: NotRequired[float | None]
    true_positive_high: NotRequired[float | None]
    true_negative_rate: NotRequired[float | None]
    true_negative_low: NotRequired[float | None]
    true_negative_high: NotRequired[float | None]


class Repeats(TypedDict):
    """One judge's repeats of the same question: the share of pairs of repeats that agree, and alpha."""

    metric: str
    judge: str
    items: int
    exact: float | None
    alpha: float | None


class OrderEffect(Interval):
    """One judge's comparisons seen in both orders: `flips` out of `pairs`, and how often the side shown first won."""

    metric: str
    judge: str
    pairs: int
    flips: int
    share: float | None
    first_side: FirstSide


class LengthEffect(Interval):
    """How a judge's scores relate to answer length in characters, within rows.

    Rank correlation, and the change in score units per doubling of the length. `items`: rows, sampled with the
    document's seed if there are many.
    """

    metric: str
    judge: str
    items: int
    spearman: float | None
    slope_per_doubling: float | None
    slope_low: float | None
    slope_high: float | None


class ScaleEnds(TypedDict):
    """How a judge uses its scale: the shares of its `scores` that are the scale's lowest and highest."""

    metric: str
    judge: str
    scores: int
    lowest: float
    highest: float


class InjectedVerdicts(TypedDict):
    """A candidate's `answers` that contain verdict-like text: their mean score, and that of its other answers."""

    metric: str
    candidate: str
    answers: int
    mean: float | None
    others_mean: float | None


class RaterPair(TypedDict):
    """Two raters on the items that both rated."""

    a: str
    b: str
    items: int
    exact: float | None
    kappa: float | None
    kappa_weighted: float | None


class GoldHits(TypedDict):
    """How many of a rater's criteria on gold items match the known answer."""

    right: int
    of: int


class RaterFigures(TypedDict):
    """One rater: items, the share of other raters' matching verdicts on them, mean seconds per item.

    `gold` is present if the rater had items with known answers.
    """

    items: int
    agreement_with_others: float | None
    seconds: float | None
    gold: NotRequired[GoldHits]


class ChanceCorrected(TypedDict):
    """Gwet's agreement, which is stable if one label dominates.

    `ac1`: of labels, bools and the three directions of comparisons, over `labels` that raters could choose from
    (`labels_offered`), or that occur where the verdicts came from elsewhere. `ac2`: of a scale of whole numbers, with
    quadratic weights.
    """

    ac1: float | None
    ac2: float | None
    labels: int | None
    labels_offered: bool | None


class Raters(Interval, ChanceCorrected):
    """How well people agree under one metric, over `items` rated by at least two; `level` is the one used for alpha.

    Gold items and hidden repeats are in none of the figures.
    """

    metric: str
    level: str
    items: int
    raters: int
    alpha: float | None
    percent: float | None
    fleiss: float | None
    pairs: list[RaterPair]
    each: dict[str, RaterFigures]


_Corrected = TypedDict("_Corrected", {"lambda": float | None})  # a keyword cannot be a class attribute


class Corrected(_Corrected, Interval):
    """A candidate's mean, from people's labels on a random sample and a judge's scores of the rest (PPI++).

    `labelled` answers have both, `judged` only the judge's score; `people_mean` is over the former, `judge_mean` over
    all of them. `halve`: how many more ratings would halve the interval, None where ratings of all answers would not.
    `lambda`: the weight of the judge's scores. `draw`: "even", "strata" or "own" probabilities, see `correction`, or
    "several" draws, see `several_draws`.
    `source`: "own", the run's own ratings, or "licence", the opened test of the judge's licence, see `carried_over`;
    `outside`: the run lies where that test says little. `refused`: why there is no figure, a code of `REFUSED`.
    """

    metric: str
    candidate: str
    judge: str
    labelled: int
    judged: int
    people_mean: float | None
    judge_mean: float | None
    value: float | None
    se: float | None
    halve: int | None
    draw: str | None
    source: str
    refused: str | None
    outside: NotRequired[bool]


class CorrectedPair(_Corrected, EstimatedDifference):
    """Two candidates' corrected scores by one judge; `difference` is a − b, corrected as one quantity over the `items`
    rows on which both are labelled, or the difference of the two corrected scores (`lambda` is None then).

    `p_holm` is corrected over all pairs of the same metric and judge; `distinguishable`: whether it is below 1 − level.
    """

    metric: str
    judge: str
    a: str
    b: str
    items: int
    se: float | None
    p_holm: float | None
    distinguishable: bool | None


class Deviation(EstimatedDifference):
    """A candidate's mean on the rows with one value minus its mean on the rest.

    `p`: of the permutation test, see `permutation`; `p_bh` is over all tested cells of the breakdown. The interval is
    `means.apart`.
    """

    value: str
    candidate: str
    metric: str
    items: int
    p_bh: float | None


class ValueAgreement(JudgeAgreement):
    """A judge compared with people on the rows with one value."""

    value: str


class Breakdown(TypedDict):
    """Cells by the values of one field of the rows, and each judge compared with people.

    `left_out`: number of values beyond the most frequent ones.
    """

    field: str
    values: dict[str, dict[str, dict[str, Cell]]]
    comparisons: list[Deviation]
    judges: list[ValueAgreement]
    left_out: int


class ChecklistHealth(TypedDict):
    """The criteria of one metric that say little or are disputed, and how well raters agree on each."""

    metric: str
    health: list[CriterionHealth]
    agreement: list[CriterionAgreement]


class Rank(TypedDict):
    """The ranks (1 is best) that significant differences leave open."""

    low: int
    high: int


class RankedPair(TypedDict):
    """The share of resamplings in which a stands above b, a tie as half."""

    a: str
    b: str
    share: float


class SingleOrder(TypedDict):
    """The candidates, best first, by a judge (`by`: its name) or one of its repeats (`name #2`)."""

    by: str
    names: list[str]


class Ranking(TypedDict):
    """How sure the order under a metric is, in `draws` resamplings of the rows; 0 if there are too few.

    `by`: the author of the values, as in `side_by_side`; `value`: which of them are resampled, the same as in the
    headline. `first`: the share of draws in which a candidate is first, shared where several are. `pairs`: in the
    report's order. See `resampling`.
    """

    metric: str
    by: str
    value: Literal["raw", "corrected"]
    draws: int
    seed: int
    first: dict[str, float]
    pairs: list[RankedPair]
    ranks: dict[str, Rank]
    orders: list[SingleOrder]


class Report(TypedDict):
    """The whole document; `rows` counts the rows that the run covers, `seed` is used for every random draw in it.

    `candidates`: combined values of judges and rules, or people's for metrics that only people rated.
    `people_candidates`: people's values, for every metric that they rated.
    """

    rows: int
    level: float
    power: float
    seed: int
    candidates: dict[str, dict[str, Cell]]
    people_candidates: dict[str, dict[str, Cell]]
    pairs: list[Pair]
    side_by_side: list[SideBySide]
    judges: list[JudgeAgreement]
    repeats: list[Repeats]
    order: list[OrderEffect]
    length: list[LengthEffect]
    scale_ends: list[ScaleEnds]
    raters: list[Raters]
    corrected: list[Corrected]
    corrected_pairs: list[CorrectedPair]
    checklists: list[ChecklistHealth]


REFUSED = (
    "not_random",
    "too_few",
    "unrated_stratum",
    "few_passes",
    "few_failures",
    "few_rows",
    "uninformed",
    "lapsed",
    "suspended",
)
NOTES = (
    "nothing_scored",
    "one_unit",
    "two_units",
    "few_items",
    "few_clusters",
    "no_variation",
    "mixed_kinds",
    "off_scale",
)


def bins_of(cell: Mapping[str, Any]) -> list[Any]:
    """The bins of a cell's numbers; none for other kinds."""
    distribution = cell["distribution"]
    return distribution if isinstance(distribution, list) else []
