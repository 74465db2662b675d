"""The shape of the document that `report --json` prints; None where a figure can't be had, never NaN."""

from typing import Any, NotRequired, TypedDict

from .distribution import BinCount


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
    """Squared score units, and the share of the whole that lies between items."""

    between: float | None
    within: float | None
    share_between: float | None


class Cell(TypedDict):
    """The figures of one metric on one candidate.

    `kind`: "number", "bool" or "category": what the metric's mean is over; None where nothing is scored.
    `kinds`: scored responses by kind. `mean`: over items, an item's responses first; a bool counts 1 or 0;
    None for categories. `ci_low`, `ci_high`: 95 % (or the level asked for): t, for bools Wilson.
    `items`: items behind the main figure; `clusters`: independent units among them.
    `responses` = scored + no_score + unparsed + errors + not_run; `asked` = responses − no_score;
    `coverage` = scored / asked, None where nothing was asked.
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


class Report(TypedDict):
    """The whole document; `rows` counts the rows that the run covers."""

    run: str
    dataset: str
    rows: int
    level: float
    power: float
    candidates: dict[str, dict[str, Cell]]
    pairs: list[Pair]
    cost: dict[str, Any]


NOTES = (
    "nothing_scored",
    "one_unit",
    "few_items",
    "few_clusters",
    "no_variation",
    "mixed_kinds",
    "off_scale",
)
