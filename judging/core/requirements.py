"""Requirements on a report's figures, and whether they are met: for scripts that must pass or fail.

    CANDIDATE METRIC >= 7.5        a candidate's mean (for comparisons its win rate)
    CANDIDATE - OTHER METRIC <= 0  the difference of two candidates on their shared items
    judge METRIC FIGURE >= 0.6     the agreement of every judge of a metric with people
    licence                        every judge model of the run has a valid licence
    licence METRIC                 one metric's; further words: exploring, trends or gates, and here for
                                   a licence measured on the run's data set

Names with blanks, dashes or quotes must be in double quotes, with \\" for a quote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evalsite.rounding import significant
from judging.core.statistics.uses import USES

Standing = Literal["met", "not_met", "undecided"]
MET: Standing = "met"
NOT_MET: Standing = "not_met"
UNDECIDED: Standing = "undecided"
HERE = "here"
_FROM_BEST = (MET, UNDECIDED, NOT_MET)
EXIT = {MET: 0, NOT_MET: 3, UNDECIDED: 4}
JUDGE_FIGURES = {
    "kappa_weighted": ("kappa_low", "kappa_high"),
    "bias": ("bias_low", "bias_high"),
    "true_positive_rate": ("true_positive_low", "true_positive_high"),
    "true_negative_rate": ("true_negative_low", "true_negative_high"),
}
WHOLE = ("combined", "script")
"""The authors of a final score computed from single judges; those need not meet the requirement themselves then."""
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|(>=|<=)|([^\s"<>]+)|(.))')
_SHAPE = (
    'Write it as: CANDIDATE METRIC >= NUMBER, "A" - "B" METRIC >= NUMBER, judge METRIC FIGURE >= NUMBER, '
    "or licence METRIC trends."
)


class RequirementError(ValueError):
    """The requirement cannot be parsed, or names something that the report lacks; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A bound on a figure, or licences of judges. `kind`: a candidate's mean, a difference of candidates, a judge's
    figure, or licences.

    `names`: the candidate, the two candidates, the judge's figure, or what the licence is for. `metric`: "" for the
    licences of all metrics.
    """

    kind: Literal["candidate", "difference", "judge", "licence"]
    names: tuple[str, ...]
    metric: str
    operator: str = ""
    bound: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a requirement is met, with a sentence that explains it.

    `more_items`: how many more similar items would decide it; None if unknown.
    """

    verdict: Standing
    sentence: str
    more_items: int | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its 95 % interval over `items`.

    `shift_down`, `shift_up`: how far unscored judgements could move it, None if unknown.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    items: int
    shift_down: float | None = 0.0
    shift_up: float | None = 0.0


def parse_requirement(text: str) -> Requirement:
    """Parse a requirement. Raises RequirementError."""
    tokens = _tokens(text)
    if tokens[:1] == [("licence", "word")] and not any(kind == "operator" for _, kind in tokens):
        return _licence_requirement([name for name, _ in tokens[1:]], text)
    if len(tokens) < 4 or tokens[-2][1] != "operator":
        raise RequirementError(f"The requirement {text!r} is not complete. {_SHAPE}")
    *names, (operator, _), (number, _) = tokens
    bound = _number(number, text)
    texts = [name for name, _ in names]
    if len(names) == 3 and names[0] == ("judge", "word"):
        if texts[2] not in JUDGE_FIGURES:
            figures = ", ".join(JUDGE_FIGURES)
            raise RequirementError(
                f"{texts[2]} is no figure of a judge with an interval: choose one of {figures}."
            )
        return Requirement("judge", (texts[2],), texts[1], operator, bound)
    if len(names) == 4 and names[1] == ("-", "word"):
        return Requirement("difference", (texts[0], texts[2]), texts[3], operator, bound)
    if len(names) == 2:
        return Requirement("candidate", (texts[0],), texts[1], operator, bound)
    raise RequirementError(f"The requirement {text!r} has too many names: quote names with blanks. {_SHAPE}")


def _licence_requirement(names: Sequence[str], text: str) -> Requirement:
    uses = tuple(names[1:])
    wrong = [use for use in uses if use not in (*USES, HERE)]
    if wrong or len([use for use in uses if use in USES]) > 1:
        raise RequirementError(
            f"The requirement {text!r} can't be read: after a licence's metric write {', '.join(USES)} or {HERE}, "
            "and quote names with blanks."
        )
    return Requirement("licence", uses, names[0] if names else "")


def _tokens(text: str) -> list[tuple[str, str]]:
    """Each token with its type: quoted, operator or word."""
    tokens = []
    for match in _TOKEN.finditer(text.rstrip()):
        quoted, operator, word, odd = match.groups()
        if odd is not None:
            place = match.start(4) + 1
            raise RequirementError(
                f"The requirement {text!r} can't be read at character {place}, {odd!r}. {_SHAPE}"
            )
        if quoted is not None:
            tokens.append((re.sub(r"\\(.)", r"\1", quoted), "quoted"))
        else:
            tokens.append((operator, "operator") if operator else (word, "word"))
    return tokens


def _number(text: str, whole: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise RequirementError(f"The requirement {whole!r} must end with a number, not {text!r}.")
    return number


def decide(requirement: Requirement, report: Mapping[str, Any], *, strict: bool = False) -> Decision:
    """Met if the whole 95 % interval is on the required side, not met if it is on the other, otherwise undecided.

    `report`: the document. `strict`: unscored judgements count as the worst score of the scale. A requirement on a
    judge must be met by every judge of the metric, or by their combined score if there is one. Raises RequirementError
    for names that the report lacks.
    """
    if requirement.kind == "licence":
        return _licences_decision(requirement, report)
    figures = _FIGURES[requirement.kind](requirement, report)
    decisions = [_decision(requirement, figure, strict=strict) for figure in figures]
    return max(decisions, key=lambda decision: _FROM_BEST.index(decision.verdict))


def exit_status(decisions: Sequence[Decision]) -> int:
    """3 if any requirement is not met, otherwise 4 if any is undecided, otherwise 0."""
    return EXIT[max((decision.verdict for decision in decisions), key=_FROM_BEST.index, default=MET)]


def _decision(requirement: Requirement, figure: Figure, *, strict: bool) -> Decision:
    wanted = f"{figure.name} {requirement.operator} {significant(requirement.bound, 6)}"
    shift: float | None = 0.0
    if strict:
        shift = figure.shift_down if requirement.operator == ">=" else figure.shift_up
    if figure.value is None or figure.low is None or figure.high is None:
        return Decision(UNDECIDED, f"Undecided: {wanted}: there is no interval.")
    if shift is None:
        sentence = f"Undecided: {wanted}: the scale has no ends that unscored judgements could count as."
        return Decision(UNDECIDED, sentence)
    value, low, high = (number + shift for number in (figure.value, figure.low, figure.high))
    above, below = low >= requirement.bound, high < requirement.bound
    if requirement.operator == "<=":
        above, below = high <= requirement.bound, low > requirement.bound
    shown = (
        f"{wanted}: {significant(value, 4)}, 95 % interval {significant(low, 4)} to {significant(high, 4)}, "
        f"{figure.items} items"
    )
    if above or below:
        return Decision(MET, f"Met: {shown}.") if above else Decision(NOT_MET, f"Not met: {shown}.")
    more = items_to_decide(figure.items, value, low, high, requirement.bound)
    hint = "the figure lies on the bound" if more is None else f"about {more} more items would decide it"
    return Decision(UNDECIDED, f"Undecided: {shown}; {hint}.", more)


def _licences_decision(requirement: Requirement, report: Mapping[str, Any]) -> Decision:
    """Met if the licence of each metric with judge models is valid and allows the use; scripts and rules need none."""
    metrics = {name for cells in report["candidates"].values() for name in cells}
    if requirement.metric and requirement.metric not in metrics:
        raise RequirementError(
            f"The report has no metric called {requirement.metric!r}; it has: {', '.join(sorted(metrics))}."
        )
    wanted = [entry for entry in report["licences"] if requirement.metric in ("", entry["metric"])]
    name = " ".join(filter(None, ("licence", requirement.metric, *requirement.names)))
    lacking = [f"{entry['metric']}: {why}" for entry in wanted if (why := _lacks(entry, requirement.names))]
    if lacking:
        return Decision(NOT_MET, f"Not met: {name}: {'; '.join(lacking)}.")
    held = [f"{entry['judge']} for {entry['use']} on {entry['dataset']}" for entry in wanted]
    return Decision(MET, f"Met: {name}: {'; '.join(held) or 'no judge model, so no licence is needed'}.")


def _lacks(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    """Why a licence does not do; '' if it does."""
    if entry["state"] == "none":
        return f"{entry['judge']} has no licence in this project"
    if entry["state"] != "valid":
        return f"the licence of {entry['judge']} is {entry['state']}"
    least = next((name for name in names if name in USES), "exploring")
    if entry["use"] not in USES[USES.index(least) :]:
        return f"the licence of {entry['judge']} allows {entry['use'] or 'no use'}"
    if HERE in names and not entry["here"]:
        return f"the licence of {entry['judge']} was measured on other data ({entry['dataset']})"
    return ""


def items_to_decide(items: int, value: float, low: float, high: float, bound: float) -> int | None:
    """How many more items would move the interval's end to the bound, if the figure and the spread stay the same.

    The interval's half on the bound's side shrinks as `1 / sqrt(items)`; as `1 / items` where the figure is at the end
    of its scale, which is then also an end of the interval. None if the figure equals the bound.
    """
    reach = value - low if bound < value else high - value
    distance = abs(value - bound)
    if distance <= 1e-12 * max(1.0, abs(bound)) or items <= 0:
        return None
    power = 1 if value in (low, high) else 2
    return max(1, math.ceil(items * (reach / distance) ** power) - items)


def _of_candidate(requirement: Requirement, report: Mapping[str, Any]) -> list[Figure]:
    (candidate,) = requirement.names
    cell = _cell(report, candidate, requirement.metric)
    name = f"{candidate} {requirement.metric}"
    if cell["kind"] == "category":
        return _of_comparisons(name, candidate, requirement.metric, report)
    value, low, high = cell["mean"], cell["low_bound"], cell["high_bound"]
    down = None if value is None or low is None else low - value
    up = None if value is None or high is None else high - value
    return [Figure(name, value, cell["ci_low"], cell["ci_high"], cell["items"], down, up)]


def _of_comparisons(name: str, candidate: str, metric: str, report: Mapping[str, Any]) -> list[Figure]:
    """The win rates according to every author of comparisons."""
    entries = [
        entry
        for entry in report["side_by_side"]
        if entry["metric"] == metric and candidate in entry["candidates"]
    ]
    if not entries:
        raise RequirementError(f"{metric} has categories, which have no mean that could be required.")
    rates = [(entry["by"], entry["candidates"][candidate]) for entry in entries]
    return [
        Figure(
            f"{name} win rate by {by}", rate["win_rate"], rate["ci_low"], rate["ci_high"], rate["comparisons"]
        )
        for by, rate in rates
    ]


def _of_difference(requirement: Requirement, report: Mapping[str, Any]) -> list[Figure]:
    a, b = requirement.names
    cells = [_cell(report, name, requirement.metric) for name in (a, b)]
    name = f"{a} − {b} {requirement.metric}"
    for pair in report["pairs"]:
        if pair["metric"] == requirement.metric and {pair["a"], pair["b"]} == {a, b}:
            ends = "difference", "ci_low", "ci_high"
            if pair["a"] == a:
                value, low, high = (pair[end] for end in ends)
            else:
                value, high, low = (None if pair[end] is None else -pair[end] for end in ends)
            return [Figure(name, value, low, high, pair["items"], *_shifts(*cells))]
    raise RequirementError(f"The report does not compare {a} with {b} under {requirement.metric}.")


def _shifts(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """How far a − b could fall and rise, depending on the unscored judgements."""
    if any(cell[end] is None for cell in (a, b) for end in ("mean", "low_bound", "high_bound")):
        return None, None
    down = a["low_bound"] - a["mean"] - (b["high_bound"] - b["mean"])
    return down, a["high_bound"] - a["mean"] - (b["low_bound"] - b["mean"])


def _of_judge(requirement: Requirement, report: Mapping[str, Any]) -> list[Figure]:
    (figure,) = requirement.names
    low, high = JUDGE_FIGURES[figure]
    agreements = [
        agreement
        for agreement in report["judges"]
        if agreement["metric"] == requirement.metric and agreement["against"] == "people"
    ]
    if not agreements:
        raise RequirementError(
            f"The report has no verdicts of people and of a judge under {requirement.metric}."
        )
    agreements = [agreement for agreement in agreements if agreement["judge"] in WHOLE] or agreements
    what = f"{requirement.metric} {figure}"
    return [
        Figure(
            f"{agreement['judge']} {what}",
            agreement.get(figure),
            agreement.get(low),
            agreement.get(high),
            agreement["items"],
        )
        for agreement in agreements
    ]


def _cell(report: Mapping[str, Any], candidate: str, metric: str) -> Mapping[str, Any]:
    candidates = report["candidates"]
    if candidate not in candidates:
        names = ", ".join(candidates)
        raise RequirementError(f"The report has no candidate called {candidate!r}; it has: {names}.")
    cells: Mapping[str, Mapping[str, Any]] = candidates[candidate]
    if metric not in cells:
        raise RequirementError(f"The report has no metric called {metric!r}; it has: {', '.join(cells)}.")
    return cells[metric]


_FIGURES: Mapping[str, Callable[[Requirement, Mapping[str, Any]], list[Figure]]] = {
    "candidate": _of_candidate,
    "difference": _of_difference,
    "judge": _of_judge,
}
