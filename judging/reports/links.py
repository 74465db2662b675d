"""Links from the figures of a report to the judgements behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from datasets.versions.references import NAME as REFERENCE_NAME
from judging.core.statistics.frame import REFERENCE
from judging.runs.filters import Filters
from judging.runs.models import Run


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of the lists behind the figures of one run; none if a reader may not see them."""

    judgements: str
    pair: str
    agreement: str = ""
    verdicts: str = ""

    @classmethod
    def of(cls, run: Run) -> Links:
        place = (run.project.slug, run.pk)
        names = ("judgements", "report_pair", "report_agreement", "report_verdicts")
        return cls(*(reverse(f"runs:{name}", args=place) for name in names))

    @classmethod
    def none(cls) -> Links:
        return cls("", "")

    def to(self, candidate: str, metric: str, **more: Any) -> str:
        """The judgements of one metric on one candidate, further filtered as `Filters` says."""
        asked = Filters(candidate=_stored_name(candidate), metric=metric, **more)
        return self.judgements and self.judgements + asked.query()

    def to_slice(self, candidate: str, metric: str, field: str, value: str) -> str:
        """The scored judgements on the rows with this value of a field."""
        asked = Filters(candidate=_stored_name(candidate), metric=metric, state="scored")
        return self.judgements and self.judgements + asked.query(field=field, field_is=value)

    def to_bin(self, candidate: str, metric: str, bar: Mapping[str, Any], *, last: bool) -> str:
        """The scored judgements that a bar of the distribution counts."""
        if last or bar["low"] == bar["high"]:
            return self.to(candidate, metric, state="scored", least=bar["low"], most=bar["high"])
        return self.to(candidate, metric, state="scored", least=bar["low"], below=bar["high"])

    def to_pair(self, pair: Mapping[str, Any], outcome: str = "") -> str:
        """The items that two candidates share, or were compared on `by` an author (without `b`: with anyone); with
        `outcome` those that the first wins, ties or loses, or of one verdict."""
        asked = {name: pair.get(name, "") for name in ("metric", "a", "b", "by")}
        return _address(self.pair, **asked, outcome=outcome)

    def to_verdicts(self, kind: str, metric: str, judge: str = "", **more: str) -> str:
        """Answers and verdicts on them, by `verdict_items.KINDS`: of raters (`rater` and `other` spoke), of a judge, or
        of a `candidate` at `least` so many; with `apart` those that differ, flipped, or were won by the first side."""
        return _address(self.verdicts, kind=kind, metric=metric, judge=judge, **more)

    def to_agreement(
        self, metric: str, judge: str, said: str = "", people: str = "", field: str = "", value: str = "",
        candidate: str = "",
    ) -> str:  # fmt: skip
        """The answers that a judge and people both gave a value; with `said` and `people` those of these values
        (`paired.value_key`), with `field` those of the rows with this `value` of it, with `candidate` its own."""
        asked = {"metric": metric, "judge": judge, "judge_value": said, "people_value": people}
        asked |= {"field": field, "field_is": value} if value else {}
        return _address(self.agreement, **asked, candidate=candidate)


def _stored_name(candidate: str) -> str:
    """A candidate's own name: references have another in figures."""
    return REFERENCE_NAME if candidate == REFERENCE else candidate


def _address(page: str, **asked: str) -> str:
    """A page with what is asked of it; '' where readers don't see the page."""
    named = {name: value for name, value in asked.items() if value}
    return f"{page}?{urlencode(named)}" if page else ""


def linked(text: str, address: str) -> str:
    """The text as a link; the text where there is no address."""
    return format_html('<a href="{}">{}</a>', address, text) if address else text


def breakable(name: str) -> SafeString:
    """A name that may break after the marks that join its words, before it breaks within a word."""
    return mark_safe(re.sub(r"([_/.:-]+)(?=[^_/.:-])", r"\1<wbr>", escape(name)))  # noqa: S308 (escaped)
