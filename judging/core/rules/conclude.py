"""An evaluation and what others said of its open lines → the score, or the error. Never a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from judging.core.rules.aggregate import aggregate
from judging.core.rules.plan import Evaluation, Line
from judging.core.rules.scoring import WORST, Reason, Scored
from judging.core.values import Outcome

_IN_THE_LINE = ("json_met", "json_wanted")  # the line's own sentence says these
NOT_ASKED, NO_JUDGE = "not_asked", "judge.missing"


@dataclass(frozen=True, slots=True)
class LineError:
    """The first line without a score, `line` being its line in the program."""

    code: str
    line: int
    params: dict[str, str] = field(default_factory=dict)


class Result(msgspec.Struct, frozen=True):
    """`score` exactly if there is no `error`. `failure` says why the answer lacks the format (score 1, no lines)."""

    score: int | float | None
    lines: tuple[Line, ...]
    failure: Reason | None = None
    error: LineError | None = None

    @property
    def format_ok(self) -> bool:
        return self.failure is None

    def outcome(self) -> Outcome:
        """The judgement's: a rule program has no state `unparsed`. The detail begins with the program's line."""
        if self.error is None:
            return Outcome("scored", self.score)
        told = "; ".join(one for name, one in self.error.params.items() if one and name not in _IN_THE_LINE)
        return Outcome.error(self.error.code, f"{self.error.line}: {told}")


def needs_answers(evaluation: Evaluation) -> bool:
    """Whether its requests are worth asking: not where a line without a score already decides."""
    return all(line.score is not None or line.reason.code == "pending" for line in evaluation.lines)


def conclude(evaluation: Evaluation, found: Mapping[int, Scored | Reason]) -> Result:
    """`found`: by index of the line what was found for it, a score or the reason why there is none."""
    if evaluation.failure is not None:
        return Result(WORST, (), evaluation.failure)
    lines = evaluation.lines
    if evaluation.questions or evaluation.calls:
        lines = tuple(_told(line, found.get(index)) for index, line in enumerate(lines))
    scores = [line.score for line in lines if line.score is not None]
    if len(scores) < len(lines):
        failed = [line for line in lines if line.score is None]
        first = next((line for line in failed if line.reason.code != NOT_ASKED), failed[0])
        return Result(None, lines, error=_error_of(first))
    return Result(aggregate(evaluation.program.aggregate, scores), lines)


def _told(line: Line, found: Scored | Reason | None) -> Line:
    if line.reason.code != "pending":
        return line
    if isinstance(found, Scored):
        return msgspec.structs.replace(line, score=found.score, reason=found.reason)
    return msgspec.structs.replace(line, reason=found or Reason(NOT_ASKED))


def _error_of(line: Line) -> LineError:
    return LineError(line.reason.code, line.rule.place.line, {"name": line.name, **line.reason.params})
