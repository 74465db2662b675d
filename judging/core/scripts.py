"""Runs preprocess and postprocess scripts in the sandbox, and has common ones to start from.

What scripts may do is specified in the scripts spec.
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

from judging.core.results import Failure, ScriptResult
from judging.core.sandbox.job import Job, SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.sandbox.session import Int64, ReportedFailure, failure_of

Result = bool | int | float | str | None
ScriptKind = Literal["preprocess", "postprocess"]
KINDS: tuple[ScriptKind, ...] = ("preprocess", "postprocess")


class ScriptOutcome(msgspec.Struct, frozen=True):
    """The outcome of one call.

    ``changed``: fields added or changed, ``{"data": {…}, "response": {…}}``, with ``other_response`` in a comparison of
    candidates; None for a removed field; empty after a failure. ``printed``: printed output, truncated at a limit
    (``printed_was_cut``). ``seconds``: processor time.
    """

    result: Result
    changed: dict[str, dict[str, Any]]
    printed: str
    printed_was_cut: bool
    failure: SandboxFailure | None
    seconds: float


class _Reply(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    result: bool | Int64 | float | str | None
    changed: dict[Literal["data", "response", "other_response"], dict[str, Any]] | None
    printed: str
    printed_was_cut: bool
    failure: ReportedFailure | None


def run_script(
    sandbox: Sandbox,
    kind: ScriptKind,
    source: str,
    items: list[dict[str, Any]],
    *,
    each_alone: bool = False,
) -> list[ScriptOutcome]:
    """Call the script's function with the arguments of each item, which are not modified: ``data``, ``resp`` and, as
    far as there are any, ``other_resp``, ``judge_reqs``, ``judge_resps``, ``judge_models`` and ``results``.

    One outcome per item, in order. A script that does not load is the same failure for every item.
    """
    outcomes = sandbox.run(_job(sandbox, kind, source, each_alone), items)
    return [_outcome(outcome.value, outcome.failure, outcome.seconds) for outcome in outcomes]


def run_preprocess(
    sandbox: Sandbox,
    source: str,
    items: list[tuple[dict[str, Any], dict[str, Any]]],
    *,
    each_alone: bool = False,
) -> list[ScriptOutcome]:
    """The same for a ``preprocess`` before any judge, for pairs of data and response."""
    calls = [{"data": data, "resp": resp} for data, resp in items]
    return run_script(sandbox, "preprocess", source, calls, each_alone=each_alone)


def script_result(kind: ScriptKind, outcome: ScriptOutcome) -> ScriptResult:
    """The outcome as it is stored with a judgement."""
    why, failure = outcome.failure, None
    if why:
        failure = Failure(f"script_{why.code}", failure_detail(kind, why))
    line = why.line if why else None
    return ScriptResult(outcome.result, outcome.changed, outcome.printed, failure, line, outcome.seconds)


def load_failure(sandbox: Sandbox, kind: ScriptKind, source: str) -> SandboxFailure | None:
    """Why the script cannot be loaded (its syntax, an import, its function), or None. No function is called."""
    failure = sandbox.load_failure(_job(sandbox, kind, source))
    if failure is not None and failure.code == "exception":  # raised by the top level, not for an item
        return SandboxFailure("load", failure.message, failure.line)
    return failure


def failure_detail(kind: ScriptKind, failure: SandboxFailure) -> str:
    """The failure's message, with the line of the script if known."""
    return f"line {failure.line} of the {kind} script: {failure.message}" if failure.line else failure.message


def _job(sandbox: Sandbox, kind: ScriptKind, source: str, each_alone: bool = False) -> Job[_Reply]:
    options = {"most": sandbox.limits.output_characters, "printed": sandbox.limits.printed_characters}
    return Job(kind, source, _Reply, options, each_alone)


def _outcome(reply: _Reply | None, failure: SandboxFailure | None, seconds: float) -> ScriptOutcome:
    if reply is None:
        return ScriptOutcome(None, {}, "", False, failure, seconds)
    own = failure_of(reply.failure)
    result = None if own else reply.result
    changed = cast(dict[str, dict[str, Any]], reply.changed or {})
    return ScriptOutcome(result, changed, reply.printed, reply.printed_was_cut, own, seconds)


_STRIP_THINK = r"""
import re


def preprocess(data, resp, **kwargs):
    text = re.sub(r"<think>.*?(</think>|\Z)", "", resp.content, flags=re.DOTALL | re.IGNORECASE)
    resp.content = re.split(r"</think>", text, flags=re.IGNORECASE)[-1].strip()
"""
_JSON_FIELD = r"""
import json

FIELD = "answer"


def preprocess(data, resp, **kwargs):
    text = resp.content.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    try:
        value = json.loads(text)[FIELD]
    except (ValueError, KeyError, TypeError) as error:
        print(f"{FIELD} not found: {error}")
        return
    resp.content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
"""
_LENGTH = """
def preprocess(data, resp, **kwargs):
    return len(resp.content.strip())
"""
_COMPARISON = r"""
import re

SCORES = {"A>>B": 1, "A>B": 2, "A=B": 3, "B>A": 4, "B>>A": 5}
VERDICT = re.compile(r"\[\[\s*(A>>B|A>B|A=B|B>A|B>>A)\s*\]\]")


def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    found = VERDICT.findall(judge_resps[-1].content or "")
    return SCORES[found[-1]] if found else None
"""
_SCORES = r"""
import re

SCORE = re.compile(r"\[\[\s*(-?\d+(?:\.\d+)?)\s*\]\]")


def scores_of(judge_resps):
    found = [SCORE.findall(reply.content or "") for reply in judge_resps]
    return [float(numbers[-1]) for numbers in found if numbers]
"""
_MEAN = """

def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    scores = scores_of(judge_resps)
    return round(sum(scores) / len(scores), 2) if scores else None
"""
_MAJORITY = """

def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs):
    votes = Counter(scores_of(judge_resps)).most_common(2)
    if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
        return None
    return votes[0][0]
"""


@dataclass(frozen=True, slots=True)
class Recommended:
    """A common script to start from; its label is in judging.metrics.editor.scripts."""

    name: str
    kind: ScriptKind
    source: str


def _recommended(kind: ScriptKind, **sources: str) -> dict[str, Recommended]:
    return {name: Recommended(name, kind, source.lstrip()) for name, source in sources.items()}


RECOMMENDED = {
    **_recommended("preprocess", strip_think=_STRIP_THINK, json_field=_JSON_FIELD, length=_LENGTH),
    **_recommended(
        "postprocess",
        comparison=_COMPARISON,
        mean=_SCORES + _MEAN,
        majority="from collections import Counter" + _SCORES + _MAJORITY,
    ),
}
