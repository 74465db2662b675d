"""A run's result in one or two sentences, with key figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from evalsite.templatetags.show import duration, number, percent
from judging.core.charts.series import mark
from judging.reports.labels import (
    ValueFormat,
    author_name,
    kappa,
    sentence_space,
    share_interval,
    without_variation,
)
from judging.reports.page.tables import comparisons_under, ranked_by_wins, under

NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Stat:
    """A figure next to the sentence, with a remark."""

    name: str
    value: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class ResultCard:
    """`lead`: the leader and its mean; `text`: significance, missing scores, agreement with people."""

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
    compared = comparisons_under(document, metric)
    if compared:
        lead, standing = compared_sentences(compared, series)
    else:
        lead, standing = (
            lead_sentence(cells, values, series),
            standing_sentence(cells, under(document, "pairs", metric)),
        )
    sentences = [standing, unscored_sentence(cells), agreement_sentence(document, metric)]
    text = sentence_space().join(one for one in sentences if one)
    return ResultCard(lead, text, stats_of(document, metric, cells))


def compared_sentences(compared: Mapping[str, Any], series: Mapping[str, int]) -> tuple[SafeString, str]:
    """The leader in comparisons, and who may be as good according to the confidence intervals of the ratings."""
    cells = ranked_by_wins(compared)
    if not cells:
        return format_html("{}", _("No comparisons yet")), ""
    leader, cell = next(iter(cells.items()))
    name = marked_name(series, leader)
    figure = format_html("<b>{}</b>", percent(cell["win_rate"]))
    interval = format_html('<span class="ci">{}</span>', share_interval(cell["ci_low"], cell["ci_high"]))
    lead = format_html(
        _("{name} wins {figure} {interval} of its comparisons, judged by {by}"),
        name=name,
        figure=figure,
        interval=interval,
        by=author_name(compared["by"]),
    )
    alike = [one for one in cells if one != leader and cells[one]["rank_low"] == 1]
    if cell["rank_low"] is None:
        return lead, ""
    if not alike:
        return lead, _("It is significantly ahead of all others.")
    return lead, _("It is not significantly ahead of %(names)s.") % {"names": names_of(alike)}


def marked_name(series: Mapping[str, int], name: str) -> SafeString:
    return format_html("{}<b>{}</b>", mark_safe(mark(series.get(name, 1))), name)  # noqa: S308 (paths of ours)


def lead_sentence(cells: Mapping[str, Any], values: ValueFormat, series: Mapping[str, int]) -> SafeString:
    """The leader with mean and interval; for a metric without means, the available counts."""
    leader, cell = next(iter(cells.items()))
    if cell["mean"] is None:
        return format_html("{}", _no_mean(cells))
    name = marked_name(series, leader)
    figure = format_html("<b>{}</b>", values.text(cell["mean"]))
    interval = format_html('<span class="ci">{}</span>', values.interval(cell["ci_low"], cell["ci_high"]))
    if sum(one["mean"] is not None for one in cells.values()) == 1:
        return format_html(
            _("{name} scores {figure} {interval}"), name=name, figure=figure, interval=interval
        )
    return format_html(
        _("{name} leads with {figure} {interval}"), name=name, figure=figure, interval=interval
    )


def _no_mean(cells: Mapping[str, Any]) -> str:
    if any(cell.get("categories") for cell in cells.values()):
        return _("This metric has categories: their shares are below.")
    return _("No scores yet")


def standing_sentence(cells: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> str:
    """The candidates that do not differ significantly from the leader, and whether it is ahead of the others."""
    known = [name for name, cell in cells.items() if cell["mean"] is not None]
    if len(known) < 2 or not pairs:
        return ""
    if all(pair["distinguishable"] is None for pair in pairs):
        return _("Too few shared items to compare the candidates.")
    if len(known) > 2 and not any(pair["distinguishable"] for pair in pairs):
        return _("No pair of candidates differs significantly.")
    leader, others = known[0], known[1:]
    ahead = [name for name in others if _ahead(leader, name, pairs)]
    alike = [name for name in others if name not in ahead]
    if not alike:
        if len(others) == 1:
            return _("It is significantly ahead of %(names)s.") % {"names": others[0]}
        return _("It is significantly ahead of all others.")
    if not ahead:
        return _("It is not significantly ahead of %(names)s.") % {"names": names_of(alike)}
    return _("It is not significantly ahead of %(names)s; it is ahead of all others.") % {
        "names": names_of(alike)
    }


def _ahead(leader: str, name: str, pairs: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        pair["distinguishable"] and (pair["difference"] > 0) == (pair["a"] == leader)
        for pair in pairs
        if {pair["a"], pair["b"]} == {leader, name}
    )


def names_of(names: Sequence[str]) -> str:
    """The names as a list in a sentence; of many, the first ones and the number of others."""
    comma = pgettext("between names", ", ")
    if len(names) > NAMES_SHOWN:
        rest = len(names) - NAMES_SHOWN + 1
        return _("%(names)s and %(n)s others") % {"names": comma.join(names[: NAMES_SHOWN - 1]), "n": rest}
    if len(names) == 1:
        return names[0]
    return _("%(names)s and %(last)s") % {"names": comma.join(names[:-1]), "last": names[-1]}


def unscored_sentence(cells: Mapping[str, Any]) -> str:
    """How many answers have no score; '' if all have one."""
    asked = sum(cell["asked"] for cell in cells.values())
    missing = asked - sum(cell["scored"] for cell in cells.values())
    if not missing:
        return ""
    text = ngettext(
        "%(n)s of %(total)s answers is unscored.", "%(n)s of %(total)s answers are unscored.", missing
    )
    return text % {"n": number(missing), "total": number(asked)}


def agreement_sentence(document: Mapping[str, Any], metric: str) -> str:
    """The judge's agreement with people, next to the agreement among people."""
    judges = [one for one in under(document, "judges", metric) if one["against"] == "people"]
    if len(judges) > 1:
        return _agreements_sentence(judges)
    if judges and (why := without_variation(judges[0])):
        return why
    if not judges or judges[0]["kappa_weighted"] is None:
        return ""
    found, human = judges[0], (judges[0].get("human") or {}).get("kappa_weighted")
    figures = {
        "kappa": kappa(found["kappa_weighted"]),
        "n": number(found["items"]),
        "human": kappa(human),
    }
    if human is None:
        return _("The judge agrees with people at κ %(kappa)s on %(n)s answers.") % figures
    return (
        _("The judge agrees with people at κ %(kappa)s; people agree with each other at %(human)s.") % figures
    )


def _agreements_sentence(judges: Sequence[Mapping[str, Any]]) -> str:
    """The same for several judges, highest agreement first."""
    known = sorted(
        (one for one in judges if one["kappa_weighted"] is not None), key=lambda one: -one["kappa_weighted"]
    )
    if not known:
        return ""
    each = names_of([f"{author_name(one['judge'])} {kappa(one['kappa_weighted'])}" for one in known])
    return _("Agreement with people (κ): %(judges)s.") % {"judges": each}


def stats_of(document: Mapping[str, Any], metric: str, cells: Mapping[str, Any]) -> list[Stat]:
    """Candidates, items, scored, rated by people, cost: those that are available."""
    asked = sum(cell["asked"] for cell in cells.values())
    scored = sum(cell["scored"] for cell in cells.values())
    return [
        Stat(_("Candidates"), number(len(cells))),
        Stat(_("Items"), number(document["rows"])),
        Stat(_("Scored"), percent(scored / asked if asked else None), _why_unscored(cells)),
        *_people_stat(document, metric),
        *_cost_stat(document["cost"]),
    ]


def _why_unscored(cells: Mapping[str, Any]) -> str:
    counts = {
        _("unparsed"): sum(cell["unparsed"] for cell in cells.values()),
        _("errors"): sum(cell["errors"] for cell in cells.values()),
        _("not run"): sum(cell["not_run"] for cell in cells.values()),
    }
    return ", ".join(f"{number(count)} {name}" for name, count in counts.items() if count)


def _people_stat(document: Mapping[str, Any], metric: str) -> list[Stat]:
    rated = next(iter(under(document, "raters", metric)), None)
    if rated is None or not rated["items"]:
        return []
    raters = ngettext("%(n)s rater", "%(n)s raters", rated["raters"]) % {"n": number(rated["raters"])}
    return [Stat(_("Rated by people"), number(rated["items"]), raters)]


def _cost_stat(cost: Mapping[str, Any]) -> list[Stat]:
    if not cost["requests"]:
        return []
    tokens = cost["prompt_tokens"] + cost["completion_tokens"]
    text = _("%(n)s tokens") % {"n": short_number(tokens)}
    if cost.get("currency"):
        return [Stat(_("Cost"), f"{cost['money']:,.2f} {cost['currency']}", text)]
    requests = ngettext("%(n)s request", "%(n)s requests", cost["requests"]) % {"n": number(cost["requests"])}
    return [
        Stat(_("Duration"), duration(cost["wall_seconds"]), f"{requests} · {text}" if tokens else requests)
    ]


def short_number(count: int) -> str:
    """12345 → 12.3 k."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)
