"""A run's result in one or two sentences, with key figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from evalsite.names import bracketed, join_sentences, with_names
from evalsite.rounding import significant
from evalsite.templatetags.show import duration, money, number, percent
from judging.core.statistics.headline import Headline, headline_of
from judging.core.statistics.ranking import comparisons_under, under
from judging.reports.headline import sentence_html
from judging.reports.labels import (
    ValueFormat,
    author_name,
    kappa,
    names_of,
    without_variation,
)


@dataclass(frozen=True, slots=True)
class Stat:
    """A figure next to the sentence, with a remark."""

    name: str
    value: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class ResultCard:
    """`lead`: the headline; `text`: what it leaves open, missing scores, agreement with people."""

    lead: SafeString
    text: str
    stats: Sequence[Stat]


def result_card(
    document: Mapping[str, Any],
    metric: str,
    cells: Mapping[str, Any],
    values: ValueFormat,
    series: Mapping[str, int],
) -> ResultCard:
    """The card of one metric; `cells`: its candidates' figures, best first."""
    headline = headline_of(document, metric)
    standing = standing_sentence(
        headline, under(document, "pairs", metric), comparisons_under(document, metric)
    )
    sentences = [standing, unscored_sentence(cells), agreement_sentence(document, metric)]
    return ResultCard(
        lead=sentence_html(headline, ValueFormat(rate=True) if headline.by else values, series),
        text=join_sentences(text for text in sentences if text),
        stats=stats_of(document, metric, cells),
    )


def standing_sentence(
    headline: Headline, pairs: Sequence[Mapping[str, Any]], compared: Mapping[str, Any] | None
) -> str:
    """What the headline leaves open: whether anything was compared, and who is significantly lower than the first."""
    if not headline.others and len(headline.candidates) < 2:
        return ""
    tests = compared.get("differences", ()) if compared else pairs
    if all(test["distinguishable"] is None for test in tests):
        return _("Too few shared items to compare the candidates.")
    if headline.standing == "leads":
        return (
            _("The difference to each of the others is significant.")
            if len(headline.others or ()) > 1
            else ""
        )
    if headline.others:
        return _("Significantly lower than the first: %(names)s.") % {"names": names_of(headline.others)}
    return _("No pair of candidates differs significantly.") if len(headline.candidates) > 2 else ""


def unscored_sentence(cells: Mapping[str, Any]) -> str:
    """How many answers have no score; '' if all have one."""
    total = sum(cell["asked"] for cell in cells.values())
    missing = total - sum(cell["scored"] for cell in cells.values())
    if not missing:
        return ""
    text = ngettext(
        "%(n)s of %(total)s answers is unscored.", "%(n)s of %(total)s answers are unscored.", missing
    )
    return text % {"n": number(missing), "total": number(total)}


def agreement_sentence(document: Mapping[str, Any], metric: str) -> str:
    """The judge's agreement with people, next to the agreement among people."""
    judges = [
        agreement for agreement in under(document, "judges", metric) if agreement["against"] == "people"
    ]
    if len(judges) > 1:
        return _agreements_sentence(judges)
    if judges and (why := without_variation(judges[0])):
        return why
    if not judges or judges[0]["kappa_weighted"] is None:
        return ""
    agreement, human = judges[0], (judges[0].get("human") or {}).get("kappa_weighted")
    figures = {
        "kappa": kappa(agreement["kappa_weighted"]),
        "n": number(agreement["items"]),
        "human": kappa(human),
    }
    if human is None:
        return _("The judge agrees with people at κ %(kappa)s on %(n)s answers.") % figures
    return (
        _("The judge agrees with people at κ %(kappa)s; people agree with each other at %(human)s.") % figures
    )


def _agreements_sentence(judges: Sequence[Mapping[str, Any]]) -> str:
    """The same for several judges, highest agreement first."""
    defined = sorted(
        (agreement for agreement in judges if agreement["kappa_weighted"] is not None),
        key=lambda agreement: -agreement["kappa_weighted"],
    )
    if not defined:
        return ""
    each = names_of(
        [f"{author_name(agreement['judge'])} {kappa(agreement['kappa_weighted'])}" for agreement in defined]
    )
    return _("Agreement with people (κ): %(judges)s.") % {"judges": each}


def stats_of(document: Mapping[str, Any], metric: str, cells: Mapping[str, Any]) -> list[Stat]:
    """Candidates, items, scored under all metrics, rated by people, cost: those that are available."""
    return [
        Stat(_("Candidates"), number(len(cells))),
        Stat(_("Items"), number(document["rows"])),
        _scored_stat(document),
        *_people_stat(document, metric),
        *_cost_stat(document["cost"]),
    ]


def _scored_stat(document: Mapping[str, Any]) -> Stat:
    """The share of all answers under all metrics that are scored, and which metrics lack how many, and why."""
    by_metric: dict[str, Counter[str]] = {}
    for metrics in document["candidates"].values():
        for name, cell in metrics.items():
            states = ("asked", "scored", "unparsed", "unsettled", "errors", "not_run")
            counts = {state: cell[state] for state in states}
            by_metric.setdefault(name, Counter()).update(counts)
    whole = sum(by_metric.values(), Counter())
    names = {
        "unparsed": _("unparsed"),
        "unsettled": _("unsettled"),
        "errors": _("errors"),
        "not_run": _("not run"),
    }
    parts = [_missing(by_metric, state, name) for state, name in names.items() if whole[state]]
    share = whole["scored"] / whole["asked"] if whole["asked"] else None
    return Stat(_("Scored"), percent(share), ", ".join(parts))


def _missing(by_metric: Mapping[str, Counter[str]], state: str, name: str) -> str:
    concerned = [metric for metric, counts in by_metric.items() if counts[state]]
    count = number(sum(by_metric[metric][state] for metric in concerned))
    text = _("%(n)s %(state)s") % {"n": count, "state": name}
    return bracketed(text, names_of(concerned)) if len(by_metric) > 1 else text


def _people_stat(document: Mapping[str, Any], metric: str) -> list[Stat]:
    """How many answers, or comparisons, people rated, each once; without gold items and repeats."""
    raters = next(iter(under(document, "raters", metric)), None)
    if raters is None:
        return []
    cells = [of[metric] for of in document["people_candidates"].values() if metric in of]
    rated = sum(cell["responses"] - cell["not_run"] for cell in cells)
    if not rated:
        return []
    if any(entry["by"] == "people" for entry in under(document, "side_by_side", metric)):
        text = ngettext("comparisons, by %(n)s rater", "comparisons, by %(n)s raters", raters["raters"])
    else:
        text = ngettext("answers, by %(n)s rater", "answers, by %(n)s raters", raters["raters"])
    return [Stat(_("Rated by people"), number(rated), text % {"n": number(raters["raters"])})]


def _cost_stat(cost: Mapping[str, Any]) -> list[Stat]:
    if not cost["requests"]:
        return []
    tokens = cost["prompt_tokens"] + cost["completion_tokens"]
    text = with_names(_("%(n)s tokens"), {"n": short_number(tokens)})
    if cost.get("currency"):
        return [Stat(_("Cost"), f"{money(cost['money'])} {cost['currency']}", text)]
    requests = ngettext("%(n)s request", "%(n)s requests", cost["requests"]) % {"n": number(cost["requests"])}
    return [
        Stat(_("Duration"), duration(cost["wall_seconds"]), f"{requests} · {text}" if tokens else requests)
    ]


_COUNT_UNITS = {
    "en": ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")),
    "zh-hans": ((100_000_000, "亿"), (10_000, "万")),
}
"""Units of large counts, largest first, by language."""


def short_number(count: int) -> str:
    """12345 → 12.3 k, in Chinese 1.23 万."""
    for size, unit in _COUNT_UNITS.get(get_language() or "", _COUNT_UNITS["en"]):
        if count >= size:
            return f"{significant(count / size, 3)} {unit}"
    return number(count)
