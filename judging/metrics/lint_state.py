"""How far a lint of what is being typed is, beside an editor: of a template as of a rule program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from datasets.models import Version
from evalsite.tasks import workers
from judging.messages import reason_sentence
from judging.metrics import linting
from judging.metrics.models import TemplateLint


@dataclass(frozen=True, slots=True)
class LintState:
    """Nothing found and not `waits`: nobody has asked to look yet. `found`: what was found, as it is kept."""

    version: Version
    found: str = ""
    waits: bool = False
    done: int = 0
    problem: str = ""
    worker_missing: str = ""  # see engine.obstacle

    @classmethod
    def of(cls, version: Version, lint: TemplateLint | None, **more: Any) -> Self:
        """`more`: what a kind of lint tells besides."""
        if lint is None:
            return cls(version, **more)
        waits = not lint.result and not lint.problem
        by_worker = waits and not linting.is_quick(version, linting.Kind(lint.kind))
        return cls(
            version,
            lint.result,
            waits,
            lint.subjects_done,
            reason_sentence(lint.problem) if lint.problem else "",
            workers.obstacle(workers.DATA) if by_worker else "",
            **more,
        )
