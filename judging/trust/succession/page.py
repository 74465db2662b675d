"""What the page of a succession says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import number
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.succession import APART, TOGETHER
from judging.messages import stored_verdict_text
from judging.records.models import RunMetric
from judging.reports.labels import ValueFormat
from judging.trust.succession.models import Succession
from judging.trust.succession.verdicts import matched, measure_of, width_of


def decision_sentence(document: Mapping[str, Any]) -> str:
    """Whether old and new may stand in one table; '' until it is computed."""
    if not document:
        return ""
    if document["decision"] == TOGETHER:
        return _(
            "Old and new verdicts may stand in one table: every candidate's value moves by less than the margin."
        )
    if document["decision"] == APART:
        if document["reversed"]:
            pair = document["reversed"][0]
            text = _("Old and new verdicts must not stand in one table: %(a)s and %(b)s changed their order.")
            return text % {"a": pair["a"], "b": pair["b"]}
        return _(
            "Old and new verdicts must not stand in one table: a candidate's value moves by more than the margin."
        )
    if document["margin"] is None:
        return _(
            "The metric declares no scale, so no margin can decide whether old and new may stand in one table."
        )
    if document["more"] is None:
        return _("These answers can't decide whether old and new verdicts may stand in one table.")
    text = ngettext(
        "Not decided yet. About %(n)s more answer of each candidate would tell whether they may stand in one table.",
        "Not decided yet. About %(n)s more answers of each candidate would tell whether they may stand in one table.",
        document["more"],
    )
    return text % {"n": number(document["more"])}


@dataclass(frozen=True, slots=True)
class CandidateLine:
    """A candidate's figures as texts. `old` and `new` are '' for categories, whose `shift` is the share that turned."""

    name: str
    items: int
    old: str
    new: str
    shift: str
    interval: str
    rank_old: int | None
    rank_new: int | None
    turned: int
    decision: str
    more: int | None


def candidate_lines(definition: MetricDefinition, document: Mapping[str, Any]) -> list[CandidateLine]:
    """A line for each candidate, by rank under the new judge."""
    values = _format_of(definition)
    lines = [_line(name, entry, values) for name, entry in document.get("candidates", {}).items()]
    return sorted(lines, key=lambda line: (line.rank_new or 0, line.name))


def _format_of(definition: MetricDefinition) -> ValueFormat:
    measure, width = measure_of(definition), width_of(definition)
    if measure != "score":
        return ValueFormat(rate=True)
    if definition.scale_declared:
        return ValueFormat.of("score", definition.min_score, definition.max_score)
    return ValueFormat.of("score", 0.0 if width else None, width)


def _line(name: str, entry: Mapping[str, Any], values: ValueFormat) -> CandidateLine:
    label = entry["old"] is None  # of labels a share turns, which is no difference
    ends = "" if entry["ci_low"] is None else values.interval(entry["ci_low"], entry["ci_high"])
    if ends and not label:
        ends = f"[{values.difference(entry['ci_low'])}, {values.difference(entry['ci_high'])}]"
    return CandidateLine(
        name,
        entry["items"],
        "" if entry["old"] is None else values.text(entry["old"]),
        "" if entry["new"] is None else values.text(entry["new"]),
        values.text(entry["shift"]) if label else values.signed(entry["shift"]),
        ends,
        entry["rank_old"],
        entry["rank_new"],
        entry["turned"],
        entry["decision"],
        entry["more"],
    )


@dataclass(frozen=True, slots=True)
class TurnedItem:
    """An answer whose verdict is another, with the address where both replies stand side by side."""

    line: int
    candidates: str
    old: str
    new: str
    url: str


def turned_items(
    succession: Succession, old: RunMetric, new: RunMetric, candidate: str = ""
) -> Iterator[TurnedItem]:
    """The answers whose verdict turned, only a candidate's if one is named; the furthest moves first."""
    pairs = [pair for pair in matched(old, new) if pair[0].value != pair[1].value]
    if candidate:
        pairs = [pair for pair in pairs if candidate in (pair[0].candidate, pair[0].other)]
    pairs.sort(key=lambda pair: -abs((pair[1].score or 0) - (pair[0].score or 0)))
    for before, after in pairs:
        address = (succession.project.slug, new.run_id, old.run_id, before.judgement, after.judgement)
        names = " · ".join(name for name in (before.candidate, before.other) if name)
        old_text, new_text = (
            stored_verdict_text(verdict.value) or _("unsettled") for verdict in (before, after)
        )
        yield TurnedItem(before.line, names, old_text, new_text, reverse("runs:compare_item", args=address))
