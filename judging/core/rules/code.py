"""Python blocks, run in the sandbox as preprocess scripts are: many calls of one block go in one batch."""

from __future__ import annotations

from collections.abc import Sequence

from judging.core.rules.plan import Call
from judging.core.rules.program import Code
from judging.core.rules.scoring import BEST, WORST, Reason, Scored
from judging.core.sandbox.job import Failure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess

FAILED, NO_SCORE = "code.failed", "code.result"

# The block keeps its own names: it is run in a module of its own. These lines come after as many empty ones as the
# block has lines, so that the number of a line tells whose it is.
_AROUND = """\
import decimal
import fractions
import json
_own = {{"__name__": __name__, "__builtins__": __builtins__}}
exec(compile({source!r}, "<script>", "exec", dont_inherit=True), _own)
_score = _own[{function!r}]
def preprocess(data, resp):
    score = _score(**json.loads(data["arguments"]))
    if isinstance(score, bool):
        return "bool " + repr(score)
    if isinstance(score, (int, float, fractions.Fraction, decimal.Decimal)) and {low} <= score <= {high}:
        return int(score) if score == int(score) and not isinstance(score, float) else float(score)
    shown = repr(score).encode("utf-8", "replace").decode().replace(chr(0), "?")
    return f"{{type(score).__name__}} {{shown[:200]}}"
"""


def run_code(
    sandbox: Sandbox, code: Code, calls: Sequence[Call], *, each_alone: bool = False
) -> list[Scored | Reason]:
    """For each call of this block its score, or why there is none (`code.failed`, `code.result`), in order."""
    items = [({"arguments": call.arguments}, {"content": ""}) for call in calls]
    outcomes = run_preprocess(sandbox, script_for(code), items, each_alone=each_alone)
    return [_found(outcome, code) for outcome in outcomes]


def script_for(code: Code) -> str:
    """The script that calls the block's function by the names of its parameters."""
    around = _AROUND.format(source=code.source, function=code.function, low=WORST, high=BEST)
    return "\n" * _lines_in(code) + around


def _found(outcome: ScriptOutcome, code: Code) -> Scored | Reason:
    if outcome.failure is not None:
        return Reason(FAILED, _told(outcome.failure, code))
    score = outcome.result
    if isinstance(score, (int, float)) and not isinstance(score, bool) and WORST <= score <= BEST:
        return Scored(score, Reason("code_returned", {"label": code.label, "score": f"{score:g}"}))
    return Reason(NO_SCORE, {"label": code.label, "met": str(score)[:200]})


def _told(failure: Failure, code: Code) -> dict[str, str]:
    """What Python said, and the line of the program where it happened."""
    inside = failure.line if failure.line and failure.line <= _lines_in(code) else None
    place = str(code.first_line + inside - 1) if inside else ""
    return {"label": code.label, "why": failure.code, "detail": failure.message, "code_line": place}


def _lines_in(code: Code) -> int:
    return code.source.count("\n") + 1
