"""The shape of the document that `report --json` prints; None if a figure can't be had, never NaN."""

from typing import NotRequired, TypedDict

from .numeric import BinCount


class CategoryShare(TypedDict):
    """`count` responses; `share` (0…1) means the items' shares, with Wilson's interval."""

    count: int
    share: float | None
    ci_low: float | None
    ci_high: float | None


class OtherCategories(TypedDict):
    """The labels beyond the most frequent ones, together."""

    labels: int
    count: int


class VarianceShares(TypedDict):
    """Squared score units, and the share of the whole that is between items.

    `se_twice_items`, `se_twice_responses`: about what the mean's standard error would be with twice as many items, or
    with twice as many responses to each: which of the two is worth its calls."""

    between: float | None
    within: float | None
    share_between: float | None
    se_twice_items: float | None
    se_twice_responses: float | None


class Cell(TypedDict):
    """The figures of one metric on one candidate.

    `kind`: "number", "bool" or "category": what the metric's mean is over; None if nothing is scored.
    `kinds`: scored responses by kind. `mean`: over items, an item's responses first; a bool counts 1 or 0;
    None for categories. `ci_low`, `ci_high`: 95 %: t, for bools Wilson.
    `items`: items behind the main figure; `clusters`: independent units among them.
    `responses` = scored + no_score + unparsed + errors + not_run; `asked` = responses − no_score;
    `coverage` = scored / asked, None if nothing was asked.
    `low_bound`, `high_bound`: the mean if every unparsed, failed or not run response had got the
    lowest/highest score (of the scale or met, whichever is further out). `top_share`: share of scored
    responses at or above the scale's top, an item's share first. `off_scale`: scored responses outside the
    declared scale.
    `notes`: codes, see `NOTES`.
    """

    kind: str | None
    kinds: dict[str, int]
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    se: float | None
    items: int
    clusters: int
    responses: int
    asked: int
    scored: int
    no_score: int
    unparsed: int
    errors: int
    not_run: int
    coverage: float | None
    low_bound: float | None
    high_bound: float | None
    top_share: float | None
    off_scale: int
    distribution: list[BinCount]
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


class Pair(TypedDict):
    """Two candidates on the items that both have a mean for; `difference` is a − b.

    `p_holm` is corrected over all pairs of the same metric; `distinguishable` says whether it is below 1 −
    level.
    `smallest_difference`: what so many items show with the report's power; `items_needed`: for
    `wanted_difference`.
    """

    a: str
    b: str
    metric: str
    items: int
    clusters: int
    difference: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_holm: float | None
    distinguishable: bool | None
    wins: int
    ties: int
    losses: int
    smallest_difference: float | None
    wanted_difference: float | None
    items_needed: int | None


class SideCell(TypedDict):
    """One candidate's comparisons. `win_rate` counts a tie half, over items, with Wilson's interval on the effective
    size. `rating`: Bradley–Terry in natural log-odds, mean zero over the candidates; `se` and the interval by the
    sandwich, clustered by row; None if a candidate won or lost all, or if the candidates are not connected.
    `rank_low`…`rank_high`: places that the other candidates' intervals leave, 1 is best. `style_rating`: the rating of
    the model with the features of answers, looks held equal; None without one."""

    comparisons: int
    wins: int
    ties: int
    losses: int
    both_bad: int
    win_rate: float | None
    ci_low: float | None
    ci_high: float | None
    rating: float | None
    se: float | None
    rating_low: float | None
    rating_high: float | None
    rank_low: int | None
    rank_high: int | None
    style_rating: float | None


class SidePair(TypedDict):
    """How a compares with b; `ties` include `both_bad`."""

    a: str
    b: str
    wins: int
    ties: int
    losses: int
    both_bad: int
    win_rate: float | None
    ci_low: float | None
    ci_high: float | None


class FirstSide(TypedDict):
    """How often what was first won; `share` counts a tie half."""

    first: int
    second: int
    ties: int
    share: float | None
    ci_low: float | None
    ci_high: float | None


class Coefficient(TypedDict):
    """Natural log-odds for one standard deviation of the feature's difference between the two answers."""

    coefficient: float
    se: float


class SideBySide(TypedDict):
    """Comparisons under one metric by one author (a judge's name, `rules`, `script`, `combined` or `people`).

    `steps`: how often each verdict was given, from `a`'s view of `pairs`. `perfect`: candidates that won or lost all.
    `style`: a Bradley–Terry model with the features of answers next to the candidates; None without features."""

    metric: str
    by: str
    candidates: dict[str, SideCell]
    pairs: list[SidePair]
    steps: dict[str, int]
    connected: bool
    perfect: list[str]
    first_side: FirstSide
    style: dict[str, Coefficient] | None


class HumanCeiling(TypedDict):
    """How far people agree with each other on the same items: over pairs of raters."""

    items: int
    exact: float | None
    kappa_weighted: float | None
    alpha: float | None


class CandidateBias(TypedDict):
    """A judge's bias (judge − people) on one candidate's answers, and its difference from that on the others': where
    judge and candidate are of one model family a difference above 0 is self-preference."""

    candidate: str
    items: int
    bias: float | None
    bias_low: float | None
    bias_high: float | None
    difference: float | None
    ci_low: float | None
    ci_high: float | None


class JudgeAgreement(TypedDict):
    """A judge against people's value of an answer, or against another judge, on the items that both have.

    `kappa` is Cohen's, `kappa_weighted` quadratic, with its bootstrap interval by rows, which is None if one side
    never varies: both are 0 then, and None if neither varies. `bias`: judge − other.
    `confusion[i][j]`: how often the judge said `labels[i]` where the other said `labels[j]`; empty if there are too
    many different values. `true_positive_rate`, `true_negative_rate` where both are two-valued: of what the other
    calls true (false), how much the judge does, with Wilson's interval."""

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
    """One judge asked the same several times: the share of pairs of repeats that agree, and alpha."""

    metric: str
    judge: str
    items: int
    exact: float | None
    alpha: float | None


class OrderEffect(TypedDict):
    """One judge's comparisons seen in both orders: `flips` of `pairs`, and how often the side shown first won."""

    metric: str
    judge: str
    pairs: int
    flips: int
    share: float | None
    ci_low: float | None
    ci_high: float | None
    first_side: FirstSide


class LengthEffect(TypedDict):
    """Rank correlation of a judge's scores with the answers' lengths in characters, within rows, and the score units
    that a doubled length goes with; `items` rows, drawn by the document's seed where there are many."""

    metric: str
    judge: str
    items: int
    spearman: float | None
    ci_low: float | None
    ci_high: float | None
    slope_per_doubling: float | None
    slope_low: float | None
    slope_high: float | None


class ScaleEnds(TypedDict):
    """How a judge uses its scale: the shares of its `scores` that are the lowest and the highest there is."""

    metric: str
    judge: str
    scores: int
    lowest: float
    highest: float


class Planted(TypedDict):
    """A candidate's `answers` that hold a text like a verdict: their mean score and that of its other answers."""

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
    """Of the criteria of gold items that a rater rated, how many got the known answer."""

    right: int
    of: int


class RaterFigures(TypedDict):
    """One rater: items, the share of the others' verdicts on them that are the same, mean seconds an item; `gold` where
    known answers were asked for."""

    items: int
    agreement_with_others: float | None
    seconds: float | None
    gold: NotRequired[GoldHits]


class Raters(TypedDict):
    """How far people agree under one metric, over `items` that two or more rated; `level` is alpha's."""

    metric: str
    level: str
    items: int
    raters: int
    alpha: float | None
    ci_low: float | None
    ci_high: float | None
    percent: float | None
    ac1: float | None
    fleiss: float | None
    pairs: list[RaterPair]
    each: dict[str, RaterFigures]


_Corrected = TypedDict("_Corrected", {"lambda": float | None})  # a keyword can't be an attribute


class Corrected(_Corrected):
    """A candidate's mean from people's labels on a random sample and a judge's scores of the rest (PPI++).

    `labelled` items have both, `judged` the judge's score only. `halve`: how many more ratings would halve the
    interval. `lambda`: the weight of the judge's scores. `refused`: why there is no figure, a code of `REFUSED`."""

    metric: str
    candidate: str
    judge: str
    labelled: int
    judged: int
    people_mean: float | None
    judge_mean: float | None
    value: float | None
    se: float | None
    ci_low: float | None
    ci_high: float | None
    halve: int | None
    refused: str | None


class Deviation(TypedDict):
    """A candidate's mean on the rows of one value minus its mean on the rest; `p_bh` over the whole breakdown."""

    value: str
    candidate: str
    metric: str
    items: int
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_bh: float | None


class ValueAgreement(JudgeAgreement):
    """A judge against people on the rows of one value."""

    value: str


class Breakdown(TypedDict):
    """The cells again, by the values of one field of the rows, and each judge against people; `left_out`: values beyond
    the most frequent."""

    field: str
    values: dict[str, dict[str, dict[str, Cell]]]
    comparisons: list[Deviation]
    judges: list[ValueAgreement]
    left_out: int


class Report(TypedDict):
    """The whole document; `rows` counts the rows that the run covers. `seed`: of every random draw in it.

    `candidates`: values of judges and rules, combined; people's under metrics on which only people spoke.
    `people_candidates`: people's, under every metric on which they spoke."""

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


REFUSED = ("not_random", "too_few")
NOTES = (
    "nothing_scored",
    "one_unit",
    "few_items",
    "few_clusters",
    "no_variation",
    "mixed_kinds",
    "off_scale",
)
