"""Decode what is stored of a judgement (rows, replies, verdicts, scripts, rule lines) for pages and exports."""

from __future__ import annotations

from typing import Any, cast

from datasets.core.formats import Format
from datasets.core.kinds import BOTH_BAD, COMPARISON_CODES
from datasets.core.variables import row_data
from judging.core.metric_definition import MetricDefinition
from judging.core.values import SCORED, UNSETTLED
from judging.records import json_text
from judging.records.models import Judgement, JudgeReply

Place = tuple[int, int, str, int]  # judge, repeat, order ("first", "swapped", or "both" combined), criterion


def data_of(raw: str, form: str) -> dict[str, Any]:
    """A row as templates see it; `form` is its version's format."""
    return row_data(raw, cast(Format, form))


def judge_name(judgement: Judgement, reply: JudgeReply, metric: MetricDefinition) -> str:
    """The name of a reply's judge model, or the source of an imported verdict."""
    return judgement.source.name if judgement.source else metric.judges[reply.judge].name


def place_of(reply: JudgeReply) -> Place:
    return reply.judge, reply.repeat, "swapped" if reply.swapped else "first", reply.criterion


def verdicts_by_place(text: str) -> dict[Place, dict[str, Any]]:
    """Parse a judgement's `verdicts`. Older ones have no order: it was "first"."""
    return {
        (
            verdict["judge"],
            verdict["repeat"],
            verdict.get("order", "first"),
            verdict.get("criterion", 0),
        ): verdict
        for verdict in json_text.loads(text) or []
    }


def verdict_in_order(state: str, value: str | None, detail: str) -> tuple[str, str | None]:
    """The state and value of an imported judgement by itself. One of a pair that is unsettled keeps its verdict, in one
    order, as `detail`."""
    if state == UNSETTLED and detail in (*COMPARISON_CODES, BOTH_BAD):
        return SCORED, json_text.as_json(detail)
    return state, value


def why(code: str, detail: str) -> str | None:
    """A code with its detail; None without a code."""
    return f"{code}: {detail}" if code and detail else code or None


def script_records(text: str) -> list[dict[str, Any]]:
    """The records of the scripts that ran, in order, from a judgement's `scripts`."""
    return [script_record(stored) for stored in json_text.loads(text) or []]


def script_record(stored: dict[str, Any]) -> dict[str, Any]:
    """A script's record; that of {} is one without a result. `seconds` are None for judgements of old releases."""
    failure = stored.get("failure") or {"code": "", "detail": ""}
    return {
        "result": stored.get("result"),
        "changed": {"data": {}, "response": {}, **(stored.get("changed") or {})},
        "printed": stored.get("printed") or "",
        "error": why(failure["code"], failure["detail"]),
        "seconds": stored.get("seconds"),
    }


def rule_lines(text: str) -> list[dict[str, Any]]:
    """The lines in a judgement's `rules`; empty without a rule program, or if the answer's format is invalid."""
    lines: list[dict[str, Any]] = (json_text.loads(text) or {}).get("lines", [])
    return lines


def reply_record(reply: JudgeReply) -> dict[str, Any] | None:
    """The reply: content, reasoning_content and other fields; None if there was none."""
    extra = json_text.loads(reply.extra) or {}
    if reply.content is None and reply.reasoning is None and not extra:
        return None
    return {"content": reply.content, "reasoning_content": reply.reasoning, **extra}
