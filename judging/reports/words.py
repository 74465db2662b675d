"""Figures as texts, and the codes of a report as sentences in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import NONE, number

SMALL_P = 0.001


def decimal(value: float | None) -> str:
    """To three decimals, all of them, so that a column aligns; very large and very small ones by four digits."""
    if value is None:
        return NONE
    size = abs(value)
    text = f"{value:.4g}" if size >= 1e6 or 0 < size < 0.0005 else f"{value:.3f}"
    return text.replace("-", "−")


def signed(value: float | None) -> str:
    """A difference: with its sign."""
    return f"+{decimal(value)}" if value is not None and value > 0 else decimal(value)


def interval(low: float | None, high: float | None) -> str:
    """Both ends, or a dash where there is none."""
    return NONE if low is None or high is None else f"[{decimal(low)}, {decimal(high)}]"


def probability(p: float | None) -> str:
    """A p value; what rounds to nothing is said to be small."""
    return f"< {SMALL_P}" if p is not None and p < SMALL_P else decimal(p)


def kind_name(kind: str | None) -> str:
    """What a metric's values are."""
    return {"number": _("numbers"), "bool": _("true or false"), "category": _("categories")}.get(
        kind or "", ""
    )


def note_sentences(cells: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a reader must know before trusting the figures of a metric: a sentence a code, with whom it concerns."""
    concerned: dict[str, list[str]] = {}
    for candidate, cell in cells.items():
        for code in cell["notes"]:
            concerned.setdefault(code, []).append(candidate)
    return [
        _("%(names)s: %(sentence)s") % {"names": ", ".join(names), "sentence": _note(code, names, cells)}
        for code, names in concerned.items()
    ]


def _note(code: str, names: list[str], cells: Mapping[str, Mapping[str, Any]]) -> str:
    if code == "off_scale":
        count = sum(cells[name]["off_scale"] for name in names)
        return ngettext(
            "%(n)s score lies outside the metric's scale. It counts as it is.",
            "%(n)s scores lie outside the metric's scale. They count as they are.",
            count,
        ) % {"n": number(count)}
    if code == "mixed_kinds":
        kind = kind_name(cells[names[0]]["kind"])
        return _("values of several kinds; the figures are over one kind only: %(kind)s.") % {"kind": kind}
    return {
        "nothing_scored": _("nothing is scored, so there is no figure."),
        "one_unit": _("a single item shows no spread, so nothing is known about how sure the figure is."),
        "few_items": _(
            "fewer than 30 items; the interval holds only if the scores are spread about normally."
        ),
        "few_clusters": _(
            "fewer than 30 independent groups of items; the interval holds only if their scores are spread about "
            "normally."
        ),
        "no_variation": _(
            "all items have the same score, so no spread is seen. That is no proof that there is none."
        ),
    }[code]


def verdict(pair: Mapping[str, Any]) -> str:
    """Whether the two can be told apart, in words."""
    if pair["distinguishable"] is None:
        return _("too few shared items")
    if not pair["distinguishable"]:
        return _("not distinguishable")
    return _("%(name)s is higher") % {"name": pair["a"] if pair["difference"] > 0 else pair["b"]}


def pair_summary(pairs: list[dict[str, Any]]) -> str:
    """Of a metric's pairs, how many cannot be told apart."""
    alike = sum(pair["distinguishable"] is False for pair in pairs)
    if not alike:
        return ""
    return ngettext(
        "Of %(total)s pair %(n)s is not distinguishable.",
        "Of %(total)s pairs %(n)s are not distinguishable.",
        len(pairs),
    ) % {"n": number(alike), "total": number(len(pairs))}


def left_out_sentences(left_out: Mapping[str, Any]) -> list[str]:
    """Which rows of the data set the run does not cover, and why."""
    sentences = []
    if count := left_out["bad_rows"]:
        text = ngettext("%(n)s row with errors.", "%(n)s rows with errors.", count)
        sentences.append(text % {"n": number(count)})
    if left_out["not_read_to_its_end"]:
        sentences.append(_("The rest of the file, which was not read to its end."))
    if count := left_out["rows_not_drawn"]:
        text = ngettext(
            "%(n)s row that was not drawn (random sample, seed %(seed)s).",
            "%(n)s rows that were not drawn (random sample, seed %(seed)s).",
            count,
        )
        sentences.append(text % {"n": number(count), "seed": left_out["seed"]})
    if count := left_out["rows_without_answers"]:
        text = ngettext(
            "%(n)s row without an answer of these candidates.",
            "%(n)s rows without an answer of these candidates.",
            count,
        )
        sentences.append(text % {"n": number(count)})
    return sentences


def overridden(document: Mapping[str, Any]) -> int:
    """How many values are a reviewer's."""
    return sum(cell["overridden"] for metrics in document["candidates"].values() for cell in metrics.values())


def overridden_sentence(document: Mapping[str, Any]) -> str:
    """How many values are a reviewer's, and that they count; '' for none."""
    count = overridden(document)
    if not count:
        return ""
    return ngettext(
        "%(n)s judgement was overridden by a reviewer. All figures and lists use the reviewer's value.",
        "%(n)s judgements were overridden by reviewers. All figures and lists use the reviewers' values.",
        count,
    ) % {"n": number(count)}
