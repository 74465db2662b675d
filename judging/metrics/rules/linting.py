"""The program held against the reference of every row."""

from __future__ import annotations

from dataclasses import dataclass, field

from datasets import selectors
from datasets.models import Row, Version
from judging.core.rules.lint import BREAKS_RULE, check_reference
from judging.core.rules.plan import reference_of
from judging.core.rules.program import Program
from judging.core.rules.scoring import Reason
from judging.rule_messages import reason_sentence

MOST_ROWS = 5000  # in one answer to a click
_NAMED = 12  # rows named for each complaint


@dataclass(slots=True)
class Complaint:
    """What a line of the program minds, on how many rows, and the first of these."""

    line: int
    name: str
    code: str
    reason: Reason
    rows: int = 0
    first: list[int] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """Of the first row."""
        return reason_sentence(self.reason)

    @property
    def breaks_itself(self) -> bool:
        return self.code == BREAKS_RULE


@dataclass(frozen=True, slots=True)
class RuleLint:
    """`looked_at` of `rows` rows were read; `minded`: rows with any complaint."""

    rows: int
    looked_at: int
    minded: int
    complaints: list[Complaint]


def lint_references(version: Version, program: Program, most: int = MOST_ROWS) -> RuleLint:
    """Complaints by line of the program, the most frequent of each line first."""
    found: dict[tuple[int, str, str], Complaint] = {}
    looked_at = minded = 0
    for row in Row.objects.filter(version=version, valid=True).order_by("line")[:most].iterator(500):
        row.version = version
        complaints = check_reference(program, reference_of(selectors.row_values(row)))
        looked_at, minded = looked_at + 1, minded + bool(complaints)
        for one in complaints:
            key = (one.line, one.name, one.code)
            kept = found.setdefault(key, Complaint(one.line, one.name, one.code, one.reason))
            kept.rows += 1
            if len(kept.first) < _NAMED:
                kept.first.append(row.line)
    ordered = sorted(found.values(), key=lambda one: (one.line, -one.rows))
    return RuleLint(version.valid_rows, looked_at, minded, ordered)
