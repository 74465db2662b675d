"""Earlier judge replies in runs. Runs import metrics, so they register the implementation at startup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from datasets.models import Response
from judging.core.replies import Parser
from judging.metrics.models import Metric


class ReplyHistory(Protocol):
    def newest_reply(self, metric_id: int, response: Response | None) -> str | None:
        """The newest reply about this response in a run of this metric."""
        ...

    def parsed_again(self, metric: Metric, judge: int, parser: Parser) -> Sequence[Any]:
        """Replies in the metric's newest runs, with the stored values and those that `parser` returns."""
        ...


_registered: list[ReplyHistory] = []


def register(history: ReplyHistory) -> None:
    """Called once, by AppConfig.ready."""
    _registered[:] = [history]


def reply_history() -> ReplyHistory:
    return _registered[0]
