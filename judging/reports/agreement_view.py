"""How far judges agree with people and with each other, raters among themselves, and what people's ratings correct."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import NONE, duration, number, percent
from judging.core.statistics.paired import MOST_LABELS, Paired, value_key
from judging.reports.disagreements import Spoken
from judging.reports.judge_health import PARTS as HEALTH_PARTS
from judging.reports.judge_health import JudgeHealth, judge_health
from judging.reports.labels import (
    ValueFormat,
    author_name,
    kappa,
    label_text,
    level_name,
    refusal,
)
from judging.reports.leaderboard import Series, marked
from judging.reports.links import Links, linked
from judging.reports.pair_matrix import MatrixCell
from judging.reports.result_card import Stat
from judging.reports.tables import Column, Table, with_mark

SHADES = 5
MOST_POINTS = 100  # rows of the table beside a scatter chart


@dataclass(frozen=True, slots=True)
class Confusion:
    """`rows`: what the judge said, the highest first, and its counts under each of `labels` of the other."""

    labels: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell]]]


@dataclass(frozen=True, slots=True)
class JudgeView:
    """One judge against people or another judge; `beside`: the answers that it and people both gave a value."""

    judge: str
    against: str
    people: bool
    items: str
    stats: Sequence[Stat]
    confusion: Confusion | None
    beside: Beside | None


@dataclass(frozen=True, slots=True)
class Beside:
    """A judge's values beside people's. `number`: of the judge, from 1, in the chart's file name; `all`: where all
    answers are, '' for readers who see no items."""

    number: int
    paired: Paired
    strongest: Sequence[Spoken]
    chart: SafeString
    points: Table | None
    all: str


@dataclass(frozen=True, slots=True)
class RatersView:
    """Everyone who rated under one metric."""

    stats: Sequence[Stat]
    each: Table
    pairs: Table | None


@dataclass(frozen=True, slots=True)
class AgreementView:
    """What there is to say of a metric's judges and raters; empty or None where there is nothing."""

    judges: Sequence[JudgeView]
    health: JudgeHealth
    raters: RatersView | None
    corrected: Table | None

    def __bool__(self) -> bool:
        return bool(self.judges or self.health or self.raters or self.corrected)


def agreement_view(
    document: Mapping[str, Any],
    metric: str,
    values: ValueFormat,
    series: Series,
    links: Links,
    beside: Mapping[str, Beside] | None = None,
) -> AgreementView:
    """`beside`: by judge."""
    mine = {
        part: [one for one in document.get(part, ()) if one["metric"] == metric]
        for part in ("judges", *HEALTH_PARTS, "planted", "raters", "corrected")
    }
    order = {one["judge"]: one for one in mine["order"]}
    judges = sorted(mine["judges"], key=lambda one: one["against"] != "people")
    return AgreementView(
        judges=[
            _judge(one, order.get(one["judge"]), values, links, _beside(one, beside or {})) for one in judges
        ],
        health=judge_health(mine, metric, values, series, links),
        raters=_raters(mine["raters"][0]) if mine["raters"] else None,
        corrected=_corrected(mine["corrected"], values, series),
    )


def _beside(one: Mapping[str, Any], beside: Mapping[str, Beside]) -> Beside | None:
    return beside.get(one["judge"]) if one["against"] == "people" else None


def points_table(paired: Paired, metric: str, judge: str, links: Links) -> Table:
    """What a scatter chart draws, the most frequent values first."""
    rows = [
        [
            label_text(said),
            label_text(people),
            linked(number(count), links.to_agreement(metric, judge, value_key(said), value_key(people))),
        ]
        for (said, people), count in paired.counts().most_common(MOST_POINTS)
    ]
    return Table(
        _("Judge and people"),
        [Column(_("Judge"), num=False), Column(_("People")), Column(_("Answers"))],
        rows,
    )


def _judge(
    one: Mapping[str, Any],
    order: Mapping[str, Any] | None,
    values: ValueFormat,
    links: Links,
    beside: Beside | None,
) -> JudgeView:
    human = one.get("human") or {}
    stats = [
        Stat(_("κ, quadratic"), kappa(one["kappa_weighted"]), _kappa_more(one, human)),
        Stat(
            _("Exact agreement"), percent(one["exact"], 0), _of_people(percent(human.get("exact"), 0), human)
        ),
        Stat("Spearman ρ", kappa(one["spearman"])),
        Stat(_("Bias"), values.signed(one["bias"]), values.interval(one["bias_low"], one["bias_high"])),
        *_rates(one),
        *_flips(order),
    ]
    items = ngettext("%(n)s answer", "%(n)s answers", one["items"]) % {"n": number(one["items"])}
    return JudgeView(
        judge=author_name(one["judge"]),
        against=author_name(one["against"]),
        people=one["against"] == "people",
        items=items,
        stats=[stat for stat in stats if stat.value != NONE],
        confusion=confusion_of(one, links, beside.paired if beside else None),
        beside=beside,
    )


def _kappa_more(one: Mapping[str, Any], human: Mapping[str, Any]) -> str:
    if human.get("kappa_weighted") is not None:
        return _of_people(kappa(human["kappa_weighted"]), human)
    return "" if one["kappa_low"] is None else f"[{kappa(one['kappa_low'])}, {kappa(one['kappa_high'])}]"


def _of_people(text: str, human: Mapping[str, Any]) -> str:
    return _("people: %(value)s") % {"value": text} if human and text != NONE else ""


def _rates(one: Mapping[str, Any]) -> list[Stat]:
    names = {"true_positive_rate": _("True positive rate"), "true_negative_rate": _("True negative rate")}
    return [Stat(name, percent(one[key], 0)) for key, name in names.items() if one.get(key) is not None]


def _flips(order: Mapping[str, Any] | None) -> list[Stat]:
    if order is None or not order["pairs"]:
        return []
    counts = {"n": number(order["flips"]), "total": number(order["pairs"])}
    return [Stat(_("Order flips"), percent(order["share"], 0), _("%(n)s of %(total)s") % counts)]


def confusion_of(one: Mapping[str, Any], links: Links, paired: Paired | None = None) -> Confusion | None:
    """The judge's values against the other's, many of them rounded; None where there are too many different ones.

    Its cells lead to the answers that are `paired`, or else to all to which the judge gave the row's value."""
    labels, counts = one["labels"], one["confusion"]
    if not counts:
        return None
    rounded = len(labels) > MOST_LABELS and not any(isinstance(label, str) for label in labels)
    if rounded:
        labels, counts = _in_whole_numbers(labels, counts)
    largest = max(max(row) for row in counts) or 1
    against = author_name(one["against"])

    def address(said: str | float, other: str | float) -> str:
        if paired is None:
            return _address(said, one["metric"], links, rounded)
        keys = (value_key(value, rounded=paired.rounded) for value in (said, other))
        return links.to_agreement(one["metric"], one["judge"], *keys)

    rows = [
        (
            label_text(label),
            [
                _count_cell(count, largest, label, labels[place], against, address(label, labels[place]))
                for place, count in enumerate(row)
            ],
        )
        for label, row in reversed(list(zip(labels, counts, strict=True)))
    ]
    return Confusion([label_text(label) for label in labels], rows)


def _in_whole_numbers(
    labels: Sequence[float], counts: Sequence[Sequence[int]]
) -> tuple[list[float], list[list[int]]]:
    """The same counts by the values rounded, halves up."""
    whole = [math.floor(label + 0.5) for label in labels]
    found = sorted(set(whole))
    together = {label: dict.fromkeys(found, 0) for label in found}
    for row, said in zip(counts, whole, strict=True):
        for count, other in zip(row, whole, strict=True):
            together[said][other] += count
    return [float(label) for label in found], [list(row.values()) for row in together.values()]


def _count_cell(
    count: int, largest: int, said: str | float, other: str | float, against: str, address: str
) -> MatrixCell:
    tip = _("judge %(judge)s, %(against)s %(other)s: %(n)s") % {
        "judge": label_text(said),
        "against": against,
        "other": label_text(other),
        "n": number(count),
    }
    shade = 0 if not count else 1 + min(SHADES - 1, int(SHADES * count / (largest + 1)))
    return MatrixCell(number(count), f"heat{shade}", tip, address if count else "")


def _address(label: str | float, metric: str, links: Links, rounded: bool) -> str:
    if isinstance(label, str):
        return links.to("", metric, state="scored", value=label)
    if rounded:
        return links.to("", metric, state="scored", least=label - 0.5, below=label + 0.5)
    return links.to("", metric, state="scored", least=label, most=label)


def _raters(one: Mapping[str, Any]) -> RatersView:
    alpha = "" if one["ci_low"] is None else f"[{kappa(one['ci_low'])}, {kappa(one['ci_high'])}]"
    stats = [
        Stat(
            _("Krippendorff's α (%(level)s)") % {"level": level_name(one["level"])},
            kappa(one["alpha"]),
            alpha,
        ),
        Stat(_("Same verdict"), percent(one["percent"], 0)),
        Stat("AC1", kappa(one["ac1"])),
        Stat("Fleiss' κ", kappa(one["fleiss"])),
    ]
    return RatersView(
        [stat for stat in stats if stat.value != NONE], _each_rater(one["each"]), _rater_pairs(one)
    )


def _each_rater(each: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        [name, number(one["items"]), percent(one["agreement_with_others"], 0), duration(one["seconds"])]
        for name, one in each.items()
    ]
    columns = [Column(_("Rater"), num=False), Column(_("Items"))]
    columns += [Column(_("Agreement with the others")), Column(_("Time per item"))]
    return Table(_("Raters"), columns, rows)


def _rater_pairs(one: Mapping[str, Any]) -> Table | None:
    rows = [
        [
            f"{pair['a']} · {pair['b']}",
            number(pair["items"]),
            percent(pair["exact"], 0),
            kappa(pair["kappa_weighted"]),
        ]
        for pair in one["pairs"]
    ]
    columns = [Column(_("Pair"), num=False), Column(_("Items")), Column(_("Exact agreement"))]
    return Table(_("Pairs of raters"), [*columns, Column(_("κ, quadratic"))], rows) if rows else None


def _corrected(found: Sequence[Mapping[str, Any]], values: ValueFormat, series: Series) -> Table | None:
    """Both raw means beside what they come to together."""
    rows = [
        [
            with_mark(marked(series, one["candidate"]), one["candidate"]),
            author_name(one["judge"]),
            values.text(one["people_mean"]),
            number(one["labelled"]),
            values.text(one["judge_mean"]),
            number(one["judged"]),
            refusal(one["refused"]) if one["refused"] else values.text(one["value"]),
            values.interval(one["ci_low"], one["ci_high"]),
            number(one["halve"]),
        ]
        for one in found
    ]
    columns = [Column(_("Candidate"), num=False), Column(_("Judge"), num=False), Column(_("People's mean"))]
    columns += [
        Column(_("Rated")),
        Column(_("Judge's mean")),
        Column(_("Judge only")),
        Column(_("Corrected")),
    ]
    columns += [Column(_("95 % interval")), Column(_("Ratings to halve it"))]
    return Table(_("Corrected by people"), columns, rows) if rows else None
