"""Earlier replies of judge models in runs. Runs import metrics, so they register this function at startup."""

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
        """Replies to the metric's newest runs, with what was read from them and what `parser` reads."""
        ...


_registered: list[ReplyHistory] = []


def register(history: ReplyHistory) -> None:
    """Called once, by AppConfig.ready."""
    _registered[:] = [history]


def reply_history() -> ReplyHistory:
    return _registered[0]
