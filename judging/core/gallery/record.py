"""What was measured of a gallery metric with one judge model: its verdicts beside those of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

EXAMPLES = "examples"
"""The `data` of a record that was measured on the gallery's own examples."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of record.json; all keys are absent where nothing was measured.

    `judge`: the model; `date`: ISO; `language`: of the prompt; `data`: `examples`, or the name of the labelled data;
    `n`: labelled answers (of checklists: criteria) on which the judge gave a verdict, `unread` those on which it gave
    none; `equal`: how often both say the same. Rates are in 0…1 with 95 % intervals, null below 40 answers and where
    they don't apply: TPR and TNR only of pass or fail and of criteria, where positive is PASS. `kappa`: Cohen's,
    quadratic for scores and comparisons. `drill`: the share of planted mistakes that were noticed, null where no drill
    was run.
    """

    judge: str = ""
    date: str = ""
    language: str = ""
    data: str = ""
    n: int = 0
    unread: int = 0
    equal: int = 0
    agreement: float | None = None
    agreement_low: float | None = None
    agreement_high: float | None = None
    tpr: float | None = None
    tpr_low: float | None = None
    tpr_high: float | None = None
    tnr: float | None = None
    tnr_low: float | None = None
    tnr_high: float | None = None
    kappa: float | None = None
    drill: float | None = None
    calls: int = 0
    tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.date)

    @property
    def is_self_check(self) -> bool:
        """Whether it tells only how the judge fares on the gallery's own examples."""
        return self.data == EXAMPLES

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


_decode = msgspec.json.Decoder(Record).decode


def read_record(stored: Mapping[str, Any]) -> Record:
    """A stored record; an empty one if it is of another release's form."""
    try:
        return _decode(msgspec.json.encode(stored))
    except msgspec.ValidationError:
        return Record()
