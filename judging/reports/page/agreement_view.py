"""Agreement of judges with people and each other, agreement among raters, and scores corrected by people's ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import NONE, duration, number, percent
from judging.core.statistics.drill_down import MOST_UNROUNDED, Paired, value_key
from judging.core.statistics.ranking import under
from judging.messages import pass_or_fail
from judging.reports.disagreements import ComparedAnswer
from judging.reports.labels import (
    ValueFormat,
    author_name,
    beside,
    interval,
    kappa,
    label_texts,
    level_name,
    refusal,
    share_interval,
    without_variation,
)
from judging.reports.links import Links, linked
from judging.reports.page.judge_health import PARTS as HEALTH_PARTS
from judging.reports.page.judge_health import JudgeHealth, flips_address, judge_health
from judging.reports.page.pairs import MatrixCell
from judging.reports.page.result_card import Stat
from judging.reports.page.tables import Series, Table, columns_of, marked
from judging.reports.verdict_items import JUDGES, RATINGS

SHADES = 5
MOST_POINTS = 100  # rows of the table next to a scatter chart


@dataclass(frozen=True, slots=True)
class Confusion:
    """`rows`: the judge's values, highest first, each with its counts under the other's values (`labels`)."""

    labels: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell]]]


@dataclass(frozen=True, slots=True)
class JudgeView:
    """One judge against people or another judge; `note`: why kappa is meaningless; `ceiling`: raters against the value
    of the others, and the judge against the same; `human_ratings`: the answers rated by both it and people."""

    judge: str
    against: str
    people: bool
    items: str
    stats: Sequence[Stat]
    further: Sequence[Stat]
    note: str
    ceiling: Table | None
    confusion: Confusion | None
    by_candidate: Table | None
    human_ratings: JudgeAndPeople | None


@dataclass(frozen=True, slots=True)
class JudgeAndPeople:
    """A judge's values next to people's. `number`: of the judge, from 1, in the chart's file name; `all`: URL of all
    answers, '' for readers who may not see items."""

    number: int
    paired: Paired
    strongest: Sequence[ComparedAnswer]
    chart: SafeString
    points: Table | None
    all: str


@dataclass(frozen=True, slots=True)
class RatersView:
    """All raters under one metric; `varies`: whether their verdicts differ at all."""

    stats: Sequence[Stat]
    each: Table
    pairs: Table | None
    varies: bool = True


@dataclass(frozen=True, slots=True)
class AgreementView:
    """A metric's judges and raters; parts without data are empty or None. `carried_over`: on what a correction by a
    licence's test rests, '' for one by the run's own ratings."""

    judges: Sequence[JudgeView]
    health: JudgeHealth
    raters: RatersView | None
    corrected: Table | None
    carried_over: str

    def __bool__(self) -> bool:
        return bool(self.judges or self.health or self.raters or self.corrected)


def agreement_view(
    document: Mapping[str, Any],
    metric: str,
    values: ValueFormat,
    series: Series,
    links: Links,
    human_ratings: Mapping[str, JudgeAndPeople] | None = None,
) -> AgreementView:
    """`human_ratings`: {judge: its values next to people's}."""
    mine = {
        part: under(document, part, metric)
        for part in ("judges", *HEALTH_PARTS, "planted", "raters", "corrected")
    }
    order = {entry["judge"]: entry for entry in mine["order"]}
    judges = sorted(mine["judges"], key=lambda agreement: agreement["against"] != "people")
    return AgreementView(
        judges=[
            _judge(
                agreement,
                order.get(agreement["judge"]),
                values,
                links,
                _human_ratings(agreement, human_ratings or {}),
            )
            for agreement in judges
        ],
        health=judge_health(mine, metric, values, series, links),
        raters=_raters(mine["raters"][0], links) if mine["raters"] else None,
        corrected=_corrected(mine["corrected"], values, series, links),
        carried_over=_carried_over(mine["corrected"], rates=values.rate),
    )


def _human_ratings(
    agreement: Mapping[str, Any], human_ratings: Mapping[str, JudgeAndPeople]
) -> JudgeAndPeople | None:
    return human_ratings.get(agreement["judge"]) if agreement["against"] == "people" else None


def points_table(paired: Paired, metric: str, judge: str, links: Links) -> Table:
    """The points of a scatter chart, most frequent values first."""
    points = paired.counts().most_common(MOST_POINTS)
    sides = [label_texts([values[side] for values, _count in points]) for side in (0, 1)]
    rows = [
        [
            *texts,
            linked(number(count), links.to_agreement(metric, judge, value_key(said), value_key(people))),
        ]
        for ((said, people), count), *texts in zip(points, *sides, strict=True)
    ]
    return Table(_("Judge and people"), columns_of([_("Judge")], [_("People"), _("Answers")]), rows)


def _judge(
    agreement: Mapping[str, Any],
    order: Mapping[str, Any] | None,
    values: ValueFormat,
    links: Links,
    human_ratings: JudgeAndPeople | None,
) -> JudgeView:
    human, note = agreement.get("human") or {}, without_variation(agreement)
    stats = [
        *([Stat(_("κ, quadratic"), _("n/a"), "")] if note else _kappa(agreement, human)),
        Stat(
            _("Exact agreement"),
            percent(agreement["exact"], 0),
            _of_people(percent(human.get("exact"), 0), human),
        ),
        Stat("Spearman ρ", kappa(agreement["spearman"])),
        Stat(
            _("Bias"),
            values.signed(agreement["bias"]),
            values.interval(agreement["bias_low"], agreement["bias_high"]),
        ),
        *_rates(agreement),
        *_flips(order, links),
    ]
    items = ngettext("%(n)s answer", "%(n)s answers", agreement["items"]) % {"n": number(agreement["items"])}
    return JudgeView(
        judge=author_name(agreement["judge"]),
        against=author_name(agreement["against"]),
        people=agreement["against"] == "people",
        items=items,
        stats=[stat for stat in stats if stat.value != NONE],
        further=_further(agreement, values),
        note=note,
        ceiling=_ceiling(human.get("others")),
        confusion=confusion_of(agreement, links, human_ratings.paired if human_ratings else None),
        by_candidate=_by_candidate(agreement, values, links),
        human_ratings=human_ratings,
    )


def _ceiling(others: Mapping[str, Any] | None) -> Table | None:
    """What a judge can reach: raters agree with the others no more than this."""
    if others is None:
        return None
    rows = [
        [name, percent(others[f"{key}exact"], 0), kappa(others[f"{key}kappa_weighted"])]
        for key, name in (("", _("Each rater")), ("judge_", _("The judge")))
    ]
    items = number(others["items"])
    caption = ngettext(
        "Against the value of the other raters, on %(n)s item that several rated",
        "Against the value of the other raters, on %(n)s items that several rated",
        others["items"],
    ) % {"n": items}
    return Table(caption, columns_of([_("Rater")], [_("Exact agreement"), _("κ, quadratic")]), rows)


def _by_candidate(agreement: Mapping[str, Any], values: ValueFormat, links: Links) -> Table | None:
    """A judge's bias by candidate, relative to people."""
    cells = agreement.get("by_candidate", ())
    rows = [
        [
            cell["candidate"],
            linked(
                number(cell["items"]),
                links.to_agreement(agreement["metric"], agreement["judge"], candidate=cell["candidate"]),
            ),
            beside(values.signed(cell["bias"]), values.interval(cell["bias_low"], cell["bias_high"])),
            beside(values.signed(cell["difference"]), values.interval(cell["ci_low"], cell["ci_high"])),
        ]
        for cell in cells
    ]
    columns = columns_of([_("Candidate")], [_("Answers"), _("Bias"), _("Compared with the others")])
    return Table(_("Bias by candidate"), columns, rows) if len(rows) > 1 else None


def _kappa(agreement: Mapping[str, Any], human: Mapping[str, Any]) -> list[Stat]:
    """Weighted kappa; for labels without an order Cohen's unweighted kappa; none of shares of 0…1."""
    if agreement["kappa_weighted"] is None:
        return [] if agreement["kappa"] is None else [Stat("κ", kappa(agreement["kappa"]))]
    weighted = kappa(agreement["kappa_weighted"])
    return [Stat(_("κ, quadratic"), weighted, _kappa_more(agreement, human))]


def _kappa_more(agreement: Mapping[str, Any], human: Mapping[str, Any]) -> str:
    own = interval(agreement["kappa_low"], agreement["kappa_high"], 2)
    people = _of_people(kappa(human.get("kappa_weighted")), human)
    return " · ".join(text for text in (own if own != NONE else "", people) if text)


def _of_people(text: str, human: Mapping[str, Any]) -> str:
    return _("people: %(value)s") % {"value": text} if human and text != NONE else ""


def _rates(agreement: Mapping[str, Any]) -> list[Stat]:
    names = {"positive": _("True positive rate"), "negative": _("True negative rate")}
    return [
        Stat(
            name,
            percent(agreement[f"true_{key}_rate"], 0),
            share_interval(agreement[f"true_{key}_low"], agreement[f"true_{key}_high"]),
        )
        for key, name in names.items()
        if agreement.get(f"true_{key}_rate") is not None
    ]


def _further(agreement: Mapping[str, Any], values: ValueFormat) -> list[Stat]:
    """Figures for the expandable section."""
    stats = [
        Stat(_("Cohen's κ"), kappa(agreement["kappa"])),
        Stat(_("Krippendorff's α"), kappa(agreement["alpha"])),
        Stat("Kendall τ-b", kappa(agreement["kendall"])),
        Stat("Pearson r", kappa(agreement["pearson"])),
        Stat(_("Mean absolute difference"), values.text(agreement["mean_absolute_difference"])),
    ]
    return [stat for stat in stats if stat.value != NONE]


def _flips(order: Mapping[str, Any] | None, links: Links) -> list[Stat]:
    if order is None or not order["pairs"]:
        return []
    counts = _("%(n)s of %(total)s") % {"n": number(order["flips"]), "total": number(order["pairs"])}
    return [Stat(_("Order flips"), percent(order["share"], 0), linked(counts, flips_address(order, links)))]


def confusion_of(
    agreement: Mapping[str, Any], links: Links, paired: Paired | None = None
) -> Confusion | None:
    """Confusion matrix of the judge's values against the other's, rounded if there are many; None if there are too
    many.

    Cells link to the `paired` answers, or else to those on which two judges gave these values.
    """
    labels, counts = agreement["labels"], agreement["confusion"]
    if not counts:
        return None
    rounded = len(labels) > MOST_UNROUNDED and not any(isinstance(label, str) for label in labels)
    if rounded:
        labels, counts = _in_whole_numbers(labels, counts)
    largest = max(max(row) for row in counts) or 1
    against = author_name(agreement["against"])

    def address(said: str | float, other: str | float) -> str:
        key, of_other = (
            value_key(value, rounded=paired.rounded if paired else rounded) for value in (said, other)
        )
        if paired is not None:
            return links.to_agreement(agreement["metric"], agreement["judge"], key, of_other)
        values = {"value": key, "other_value": of_other}
        return links.to_verdicts(
            JUDGES, agreement["metric"], rater=agreement["judge"], other=agreement["against"], **values
        )

    binary = all(isinstance(label, bool) for label in labels)
    texts = [pass_or_fail(label) for label in labels] if binary else label_texts(labels)
    rows = [
        (
            text,
            [
                _count_cell(count, largest, text, texts[place], against, address(label, labels[place]))
                for place, count in enumerate(row)
            ],
        )
        for text, label, row in reversed(list(zip(texts, labels, counts, strict=True)))
    ]
    return Confusion(texts, rows)


def _in_whole_numbers(
    labels: Sequence[float], counts: Sequence[Sequence[int]]
) -> tuple[list[float], list[list[int]]]:
    """The same counts by rounded values, halves up."""
    whole = [math.floor(label + 0.5) for label in labels]
    values = sorted(set(whole))
    together = {label: dict.fromkeys(values, 0) for label in values}
    for row, said in zip(counts, whole, strict=True):
        for count, other in zip(row, whole, strict=True):
            together[said][other] += count
    return [float(label) for label in values], [list(row.values()) for row in together.values()]


def _count_cell(count: int, largest: int, said: str, other: str, against: str, address: str) -> MatrixCell:
    tip = _("judge %(judge)s, %(against)s %(other)s: %(n)s") % {
        "judge": said,
        "against": against,
        "other": other,
        "n": number(count),
    }
    shade = 0 if not count else 1 + min(SHADES - 1, int(SHADES * count / (largest + 1)))
    return MatrixCell(number(count), f"heat{shade}", tip, address if count else "")


def _raters(raters: Mapping[str, Any], links: Links) -> RatersView:
    alpha = "" if raters["ci_low"] is None else f"[{kappa(raters['ci_low'])}, {kappa(raters['ci_high'])}]"
    both = linked(_rated_together(raters["items"]), links.to_verdicts(RATINGS, raters["metric"], apart="yes"))
    stats = [
        Stat(
            _("Krippendorff's α (%(level)s)") % {"level": level_name(raters["level"])},
            _agreement_text(raters["alpha"], raters["items"]),
            alpha,
        ),
        Stat(_("Same verdict"), percent(raters["percent"], 0), both),
        *_gwet(raters),
        Stat("Fleiss' κ", kappa(raters["fleiss"])),
    ]
    return RatersView(
        [stat for stat in stats if stat.value != NONE],
        _each_rater(raters, links),
        _rater_pairs(raters, links),
        varies=raters["alpha"] is not None or not raters["items"],
    )


def _gwet(raters: Mapping[str, Any]) -> list[Stat]:
    """AC1 with the number of labels that it counts, or AC2 of a scale."""
    if raters["ac2"] is not None:
        return [Stat("AC2", kappa(raters["ac2"]), _("quadratic weights"))]
    if raters["labels"] is None:
        return []
    offered = ngettext("%(n)s label to choose from", "%(n)s labels to choose from", raters["labels"])
    seen = ngettext("%(n)s label that occurs", "%(n)s labels that occur", raters["labels"])
    text = (offered if raters["labels_offered"] else seen) % {"n": number(raters["labels"])}
    return [Stat("AC1", _agreement_text(raters["ac1"], raters["items"]), text)]


def _rated_together(items: int) -> str:
    text = ngettext("on %(n)s item that several rated", "on %(n)s items that several rated", items)
    return text % {"n": number(items)}


def _agreement_text(value: float | None, items: int) -> str:
    """An agreement figure; "n/a" if people rated the same items but all verdicts are the same."""
    return _("n/a") if value is None and items else kappa(value)


def _each_rater(raters: Mapping[str, Any], links: Links) -> Table:
    gold = any(rater.get("gold") for rater in raters["each"].values())
    rows = [
        [
            name,
            linked(number(rater["items"]), links.to_verdicts(RATINGS, raters["metric"], rater=name)),
            percent(rater["agreement_with_others"], 0),
            duration(rater["seconds"]),
            *([_hits(rater.get("gold"))] if gold else []),
        ]
        for name, rater in raters["each"].items()
    ]
    heads = [_("Items, without gold and repeats"), _("Agreement with the others"), _("Time per item")]
    heads += [_("Known answers right")] if gold else []
    return Table(_("Raters"), columns_of([_("Rater")], heads), rows)


def _hits(gold: Mapping[str, int] | None) -> str:
    return f"{number(gold['right'])}/{number(gold['of'])}" if gold else NONE


def _rater_pairs(raters: Mapping[str, Any], links: Links) -> Table | None:
    rows = [
        [
            f"{pair['a']} · {pair['b']}",
            linked(
                number(pair["items"]),
                links.to_verdicts(RATINGS, raters["metric"], rater=pair["a"], other=pair["b"]),
            ),
            percent(pair["exact"], 0),
            kappa(pair["kappa_weighted"] if raters["level"] != "nominal" else pair["kappa"]),
        ]
        for pair in raters["pairs"]
    ]
    heads = (_("Items"), _("Exact agreement"), _("κ, quadratic") if raters["level"] != "nominal" else "κ")
    return Table(_("Pairs of raters"), columns_of([_("Pair")], heads), rows) if rows else None


def _corrected(
    entries: Sequence[Mapping[str, Any]], values: ValueFormat, series: Series, links: Links
) -> Table | None:
    """Both raw means next to the corrected mean."""
    rows = [
        [
            marked(series, entry["candidate"]),
            author_name(entry["judge"]),
            values.text(entry["people_mean"]),
            _labelled(entry, links),
            values.text(entry["judge_mean"]),
            number(entry["judged"]),
            _corrected_value(entry, values),
            values.interval(entry["ci_low"], entry["ci_high"]),
            number(entry["halve"]),
        ]
        for entry in entries
    ]
    heads = [_("People's mean, over answers"), _("Rated and judged"), _("Judge's mean, over answers")]
    heads += [_("Judge only"), _("Corrected")]
    heads += [_("95 % interval"), _("Ratings to halve the interval")]
    columns = columns_of([_("Candidate"), _("Judge")], heads)
    return Table(_("Corrected by people"), columns, rows) if rows else None


def _carried_over(entries: Sequence[Mapping[str, Any]], *, rates: bool) -> str:
    if not any(entry.get("source") == "licence" for entry in entries):
        return ""
    if rates:
        return _(
            "It holds if the judge errs on these passes and on these failures as often as on the test's; their mix may "
            "differ."
        )
    return _("It holds if the judge's mean error is the same here as on the test.")


def _labelled(entry: Mapping[str, Any], links: Links) -> str:
    """How many answers people rated too; those of a licence's test are not in this run."""
    if entry.get("source") == "licence":
        return beside(number(entry["labelled"]), _("in the licence's test"))
    address = links.to_agreement(entry["metric"], entry["judge"], candidate=entry["candidate"])
    return linked(number(entry["labelled"]), address)


def _corrected_value(entry: Mapping[str, Any], values: ValueFormat) -> str:
    if entry["refused"]:
        return refusal(entry["refused"])
    value = values.text(entry["value"])
    return beside(value, _("the test says little here")) if entry.get("outside") else value
