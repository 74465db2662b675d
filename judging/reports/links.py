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
from judging.filters.judgement_filter import Filters
from judging.records.models import Run


@dataclass(frozen=True, slots=True)
class Links:
    """URLs of the lists behind one run's figures; empty if the reader may not see them."""

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
        """Judgements of one metric on one candidate; `more`: further fields of `Filters`."""
        filters = Filters(candidate=_stored_name(candidate), metric=metric, **more)
        return self.judgements and self.judgements + filters.query()

    def to_form(self, metric: str, form: str) -> str:
        """Judgements of one metric with a verdict that was read in this form."""
        return self.judgements and self.judgements + Filters(metric=metric, form=form).query()

    def to_slice(self, candidate: str, metric: str, field: str, value: str) -> str:
        """Scored judgements on rows with this value of a field."""
        filters = Filters(candidate=_stored_name(candidate), metric=metric, state="scored")
        return self.judgements and self.judgements + filters.query(field=field, field_is=value)

    def to_bin(self, candidate: str, metric: str, bar: Mapping[str, Any], *, last: bool) -> str:
        """Scored judgements counted in a bar of the distribution."""
        if last or bar["low"] == bar["high"]:
            return self.to(candidate, metric, state="scored", least=bar["low"], most=bar["high"])
        return self.to(candidate, metric, state="scored", least=bar["low"], below=bar["high"])

    def to_pair(self, pair: Mapping[str, Any], outcome: str = "") -> str:
        """Items that two candidates share, or in which an author (`by`) compared them (without `b`: with any other).
        `outcome`: only wins, ties or losses of the first, or one verdict."""
        query = {name: pair.get(name, "") for name in ("metric", "a", "b", "by")}
        return _address(self.pair, **query, outcome=outcome)

    def to_verdicts(self, kind: str, metric: str, judge: str = "", **more: str) -> str:
        """Answers with their verdicts, of a kind in `verdict_items.KINDS`: of raters (`rater` and `other` both
        rated), of a judge, or of a `candidate` with `least` answers. `apart`: only verdicts that differ, flipped, or
        were won by the first side."""
        return _address(self.verdicts, kind=kind, metric=metric, judge=judge, **more)

    def to_agreement(
        self, metric: str, judge: str, said: str = "", people: str = "", field: str = "", value: str = "",
        candidate: str = "",
    ) -> str:  # fmt: skip
        """Answers rated by both a judge and people. `said`, `people`: only with these values (`paired.value_key`);
        `field`, `value`: only of rows with this value; `candidate`: only its answers."""
        query = {"metric": metric, "judge": judge, "judge_value": said, "people_value": people}
        query |= {"field": field, "field_is": value} if value else {}
        return _address(self.agreement, **query, candidate=candidate)


def _stored_name(candidate: str) -> str:
    """A candidate's stored name: references have another one in figures."""
    return REFERENCE_NAME if candidate == REFERENCE else candidate


def _address(page: str, **query: str) -> str:
    """A page with its query; '' if readers may not see the page."""
    named = {name: value for name, value in query.items() if value}
    return f"{page}?{urlencode(named)}" if page else ""


def linked(text: str, address: str) -> str:
    """The text as a link, or unchanged if the address is empty."""
    return format_html('<a href="{}">{}</a>', address, text) if address else text


def breakable(name: str) -> SafeString:
    """A name with line break opportunities after punctuation, so that it does not break within words."""
    return mark_safe(re.sub(r"([_/.:-]+)(?=[^_/.:-])", r"\1<wbr>", escape(name)))  # noqa: S308 (escaped)
