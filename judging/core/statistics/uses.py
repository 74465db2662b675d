"""What a judge may be used for, and what that asks of its licence. Without NumPy: models need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Use = Literal["exploring", "trends", "gates"]
USES: tuple[Use, ...] = ("exploring", "trends", "gates")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The least lower bounds of both rates, or of kappa, for each use beyond exploring."""

    trends_rate: float = 0.6
    trends_kappa: float = 0.5
    gates_rate: float = 0.8
    gates_kappa: float = 0.7

    def rate(self, use: Use) -> float:
        return {"exploring": 0.0, "trends": self.trends_rate, "gates": self.gates_rate}[use]

    def kappa(self, use: Use) -> float:
        return {"exploring": -1.0, "trends": self.trends_kappa, "gates": self.gates_kappa}[use]
