"""What the figures are computed from: one entry a judgement, in columns, brought into one order."""

from dataclasses import dataclass
from enum import IntEnum

from .arrays import Floats, Ints


class State(IntEnum):
    """How a judgement ended; the names in lower case are the words of `core.values`."""

    SCORED = 0
    NO_SCORE = 1
    UNPARSED = 2
    ERROR = 3
    NOT_RUN = 4


class Kind(IntEnum):
    """What a scored judgement's value is; NONE for one that isn't scored."""

    NONE = 0
    NUMBER = 1
    BOOL = 2
    CATEGORY = 3


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's name and scale; `low` and `high` are None where its scores have no declared scale.

    `pass_threshold`: from which score a response passes (pass@k); None means the top of the scale, true for
    bools.
    `wanted_difference`: the difference between candidates that one wants to be able to see, in score units.
    """

    name: str
    low: float | None = None
    high: float | None = None
    pass_threshold: float | None = None
    wanted_difference: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The latest judgement of every response under every metric; all arrays have shape (judgements,).

    `metric`, `candidate` and `category` are places in `metrics`, `candidates` and `categories` (-1: no
    category); `row` is the row's number in its data set (equal numbers in two runs make equal figures),
    `response` counts within row and candidate, `state` and `kind` hold the codes above, `score` is the
    number, 0 or 1 for a bool, else NaN; `cluster` names the conversation or declared group that a row
    belongs to, -1 for none.
    """

    metrics: tuple[Metric, ...]
    candidates: tuple[str, ...]
    categories: tuple[str, ...]
    metric: Ints
    candidate: Ints
    row: Ints
    response: Ints
    state: Ints
    kind: Ints
    score: Floats
    category: Ints
    cluster: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns sorted by metric, candidate, row, response, so that sums don't depend on the order of arrival.

    `item` (judgements,) numbers the rows 0… in their order; `clusters` (items,) is each item's cluster,
    None where every item is its own; `edges` (metrics × candidates + 1,) are where the cells start and the
    last one ends.
    """

    columns: Columns
    item: Ints
    items: int
    clusters: Ints | None
    edges: Ints

    def cell(self, metric: int, candidate: int) -> slice:
        """Where the judgements of one metric on one candidate lie."""
        place = metric * len(self.columns.candidates) + candidate
        return slice(int(self.edges[place]), int(self.edges[place + 1]))
