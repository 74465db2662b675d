"""Where each figure's judgements are: every number of a report leads to its items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from judging.runs.filters import Filters
from judging.runs.models import Run


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of the lists behind the figures of one run; none where a reader may not see them."""

    judgements: str
    pair: str
    agreement: str = ""

    @classmethod
    def of(cls, run: Run) -> Links:
        place = (run.project.slug, run.pk)
        names = ("judgements", "report_pair", "report_agreement")
        return cls(*(reverse(f"runs:{name}", args=place) for name in names))

    @classmethod
    def none(cls) -> Links:
        return cls("", "")

    def to(self, candidate: str, metric: str, **more: Any) -> str:
        """The judgements of one metric on one candidate, further filtered as `Filters` says."""
        return (
            self.judgements and self.judgements + Filters(candidate=candidate, metric=metric, **more).query()
        )

    def to_bin(self, candidate: str, metric: str, bar: Mapping[str, Any], *, last: bool) -> str:
        """The scored judgements that a bar of the distribution counts."""
        if last or bar["low"] == bar["high"]:
            return self.to(candidate, metric, state="scored", least=bar["low"], most=bar["high"])
        return self.to(candidate, metric, state="scored", least=bar["low"], below=bar["high"])

    def to_pair(self, pair: Mapping[str, Any], outcome: str = "") -> str:
        """The items that two candidates share; with `outcome` those that the first wins, ties or loses."""
        if not self.pair:
            return ""
        asked = {"metric": pair["metric"], "a": pair["a"], "b": pair["b"]}
        return f"{self.pair}?{urlencode(asked | ({'outcome': outcome} if outcome else {}))}"

    def to_agreement(self, metric: str, judge: str, said: str = "", people: str = "") -> str:
        """The answers that a judge and people both gave a value; with `said` and `people` those of these values
        (`paired.value_key`)."""
        asked = {"metric": metric, "judge": judge, "judge_value": said, "people_value": people}
        named = {name: value for name, value in asked.items() if value}
        return f"{self.agreement}?{urlencode(named)}" if self.agreement else ""


def linked(text: str, address: str) -> str:
    """The text as a link; the text where there is no address."""
    return format_html('<a href="{}">{}</a>', address, text) if address else text
