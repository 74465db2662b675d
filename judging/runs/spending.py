"""What a run has spent and may spend, for people to read."""

from __future__ import annotations

from dataclasses import dataclass

from judging.runs.budget import MILLION
from judging.runs.models import Run


@dataclass(frozen=True, slots=True)
class Money:
    """In whole units of a currency; `budget` None: as much as it takes."""

    spent: float
    budget: float | None
    currency: str


def money_shown(run: Run) -> Money | None:
    """None where no endpoint of the run has a price."""
    if not run.currency:
        return None
    budget = None if run.budget_money is None else run.budget_money / MILLION
    return Money(run.spent / MILLION, budget, run.currency)
