"""What a run has cost: requests, tokens, money and time, and which part of it went into answers."""

from __future__ import annotations

from typing import Any

from judging.reports import selectors
from judging.runs.budget import MILLION
from judging.runs.candidates import AskedCandidate, asked_of
from judging.runs.models import Run


def cost_of(run: Run, retries: int) -> dict[str, Any]:
    """Requests and tokens of all attempts; wall time from start to end, pauses included; judgements a second.

    `money` and `currency` where prices are set. Of a run that asked candidates for answers: `answers`, a part for each
    of them by name, and `judges`, the rest.
    """
    seconds = selectors.wall_seconds(run)
    asked = asked_of(run)
    cost = {
        "requests": run.calls,
        "retries": retries,
        "failed_requests": run.calls_failed,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        **_money(run, run.spent / MILLION),
        "wall_seconds": seconds,
        "judgements_per_second": run.done / seconds if seconds else None,
    }
    return cost | ({"answers": _answers(run, asked), "judges": _judges(run, asked)} if asked else {})


def _answers(run: Run, asked: list[AskedCandidate]) -> dict[str, dict[str, Any]]:
    return {
        one.model.name: {
            "requests": one.counts.calls,
            "prompt_tokens": one.counts.prompt_tokens,
            "completion_tokens": one.counts.completion_tokens,
            **_money(run, one.money or 0.0),
        }
        for one in asked
    }


def _judges(run: Run, asked: list[AskedCandidate]) -> dict[str, Any]:
    """All but the answers; with it what was asked for answers that came to nothing because their worker was killed."""
    counts = [one.counts for one in asked]
    return {
        "requests": max(0, run.calls - sum(one.calls for one in counts)),
        "prompt_tokens": max(0, run.prompt_tokens - sum(one.prompt_tokens for one in counts)),
        "completion_tokens": max(0, run.completion_tokens - sum(one.completion_tokens for one in counts)),
        **_money(run, max(0.0, run.spent / MILLION - sum(one.money or 0.0 for one in asked))),
    }


def _money(run: Run, money: float) -> dict[str, Any]:
    return {"money": round(money, 6), "currency": run.currency} if run.currency else {}
