"""What else in a project a new metric can start from, besides built-in templates. Higher packages register it."""

from __future__ import annotations

from typing import Protocol

from evalsite.accounts.models import Project, User
from evalsite.hooks import HookTable
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric


class StartingPoint(Protocol):
    """A kind of thing to start from. A thing is named `<kind>:<id>` in the form's field `start`."""

    def definition(self, project: Project, pk: int) -> MetricDefinition | None:
        """The definition to start from; None if the project has no such thing."""
        ...

    def saved(self, project: Project, pk: int, metric: Metric, user: User) -> str:
        """A metric that started here was saved for the first time; called in the transaction that saves it. Returns a
        sentence for the user, or ''."""
        ...


starting_points: HookTable[StartingPoint] = HookTable(
    "judging.metrics.editor.starting_points.starting_points"
)
"""By kind."""


def definition_of(project: Project, start: str) -> MetricDefinition | None:
    """The definition of the starting point that `start` names, if any."""
    kind, pk = _parts(start)
    return starting_points[kind].definition(project, pk) if kind else None


def metric_saved(project: Project, start: str, metric: Metric, user: User) -> str:
    """Tell the starting point that `start` names, if any, that the metric was saved. Returns a sentence, or ''."""
    kind, pk = _parts(start)
    return starting_points[kind].saved(project, pk, metric, user) if kind else ""


def _parts(start: str) -> tuple[str, int]:
    """('', 0) if `start` names no starting point."""
    kind, _colon, number = start.partition(":")
    known = kind in starting_points and number.isascii() and number.isdecimal() and len(number) < 19
    return (kind, int(number)) if known else ("", 0)
