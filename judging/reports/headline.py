"""The headline of a metric as a sentence: for pages, lists, commands and the document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from evalsite.names import fitted, sentence_space
from evalsite.templatetags.show import number
from judging.core.charts.series import mark
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.headline import Gap, Headline, headline_of
from judging.reports.labels import ValueFormat, author_name, names_of

MEANS: Mapping[str, Mapping[str, Promise]] = {
    "raw": {
        "leads": gettext_lazy("{name} leads with {figure}"),
        "nothing": gettext_lazy("{name} scores {figure}"),
        "equal": gettext_lazy("{names} are equal with {figure}"),
        "tied": gettext_lazy("{names} can't be told apart; the highest value is {figure}"),
    },
    "corrected": {
        "leads": gettext_lazy("{name} leads with {figure}, corrected by people's ratings"),
        "nothing": gettext_lazy("{name} scores {figure}, corrected by people's ratings"),
        "equal": gettext_lazy("{names} are equal with {figure}, corrected by people's ratings"),
        "tied": gettext_lazy(
            "{names} can't be told apart; the highest value, corrected by people's ratings, is {figure}"
        ),
    },
    "licence": {
        "leads": gettext_lazy("{name} leads with {figure}, corrected with the test of the judge's licence"),
        "nothing": gettext_lazy("{name} scores {figure}, corrected with the test of the judge's licence"),
        "equal": gettext_lazy(
            "{names} are equal with {figure}, corrected with the test of the judge's licence"
        ),
        "tied": gettext_lazy(
            "{names} can't be told apart; the highest value is {figure}, corrected with the test of the judge's licence"
        ),
    },
}
"""What is said of means, by `_value` and `standing` of the headline."""

AGAINST_PEOPLE: Mapping[str, Mapping[str, Promise]] = {
    "raw": {
        "leads": gettext_lazy("By the judge alone, {name} is first with {figure}"),
        "nothing": gettext_lazy("By the judge alone, {name} scores {figure}"),
        "equal": gettext_lazy("By the judge alone, {names} are equal with {figure}"),
        "tied": gettext_lazy(
            "By the judge alone, {names} can't be told apart; the highest value is {figure}"
        ),
    },
    "corrected": {
        "leads": gettext_lazy("Corrected by their ratings, {name} is first with {figure}"),
        "nothing": gettext_lazy("Corrected by their ratings, {name} scores {figure}"),
        "equal": gettext_lazy("Corrected by their ratings, {names} are equal with {figure}"),
        "tied": gettext_lazy(
            "Corrected by their ratings, {names} can't be told apart; the highest value is {figure}"
        ),
    },
    "licence": {
        "leads": gettext_lazy("Corrected with the test of its licence, {name} is first with {figure}"),
        "nothing": gettext_lazy("Corrected with the test of its licence, {name} scores {figure}"),
        "equal": gettext_lazy("Corrected with the test of its licence, {names} are equal with {figure}"),
        "tied": gettext_lazy(
            "Corrected with the test of its licence, {names} can't be told apart; the highest value is {figure}"
        ),
    },
}
"""The same after the sentence that people contradict the judge: nobody leads by values that people contradict."""

COMPARISONS: Mapping[str, Promise] = {
    "leads": gettext_lazy(
        "{name} leads: it wins {figure} of its comparisons with all others, judged by {by}"
    ),
    "equal": gettext_lazy("{names} are equal: each wins {figure} of its comparisons, judged by {by}"),
    "tied": gettext_lazy(
        "{names} can't be told apart: {name} wins {figure} of its comparisons with all others, judged by {by}"
    ),
}
COMPARISONS_OF_TWO: Mapping[str, Promise] = {
    "leads": gettext_lazy("{name} leads: it wins {figure} of its comparisons with {other}, judged by {by}"),
    "equal": COMPARISONS["equal"],
    "tied": gettext_lazy(
        "{names} can't be told apart: {name} wins {figure} of its comparisons with {other}, judged by {by}"
    ),
}
COMPARISONS_AGAINST_PEOPLE: Mapping[str, Promise] = {
    "leads": gettext_lazy("By {by} alone, {name} is first: it wins {figure} of its comparisons"),
    "equal": gettext_lazy("By {by} alone, {names} are equal"),
    "tied": gettext_lazy("By {by} alone, {names} can't be told apart"),
}


@dataclass(frozen=True, slots=True)
class Style:
    """How a sentence is written: `fill` puts the parts into a template; the others mark up a part."""

    fill: Callable[..., str]
    figure: Callable[[str], str]
    interval: Callable[[str], str]
    name: Callable[[str], str]


def headlines(document: Mapping[str, Any], metrics: Sequence[ScaledMetric]) -> list[dict[str, Any]]:
    """The document's `headline`: an entry for each metric."""
    entries = [(headline_of(document, metric.name), metric) for metric in metrics]
    return [
        {
            "metric": headline.metric,
            "text": sentence(headline, values_of(headline, metric.low, metric.high)),
            "code": headline.code,
            "candidates": headline.candidates,
            "value": headline.value,
        }
        for headline, metric in entries
    ]


def values_of(headline: Headline, low: float | None, high: float | None) -> ValueFormat:
    """The format of a headline's figures; `low`, `high`: the metric's scale."""
    return ValueFormat(rate=True) if headline.by else ValueFormat.of(headline.kind, low, high)


def sentence(headline: Headline, values: ValueFormat) -> str:
    """As plain text."""
    return _written(headline, values, Style(str.format, str, str, str))


def sentence_html(headline: Headline, values: ValueFormat, series: Mapping[str, int]) -> SafeString:
    """With candidates' marks and emphasis. `series`: {candidate: number of its colour and mark}."""

    def marked(name: str) -> str:
        icon = mark_safe(mark(series[name]) if name in series else "")  # noqa: S308 (paths of ours)
        return format_html('{}<b class="whole">{}</b>', icon, name)

    style = Style(
        format_html,
        figure=lambda text: format_html("<b>{}</b>", text),
        interval=lambda text: format_html('<span class="ci">{}</span>', text),
        name=marked,
    )
    return mark_safe(_written(headline, values, style))  # noqa: S308 (written by format_html)


def short_sentence(headline: Headline) -> str:
    """For a cell of a list, which shows the figure beside it."""
    names = headline.candidates
    if headline.code == "contradicted":
        return _("People contradict the judge")
    if headline.code == "leads":
        return fitted(_("{name} leads"), {"name": names[0]}).format(name=names[0])
    if headline.code == "nothing":
        return names[0] if names else _no_mean(headline)
    template = _("{names} are equal") if headline.code == "equal" else _("{names} can't be told apart")
    shown = names_of(names, shown=2)
    return fitted(template, {"names": shown}).format(names=shown)


def _no_mean(headline: Headline) -> str:
    if headline.by:
        return _("No comparisons yet")
    if headline.kind == "category":
        return _("This metric has categories: their shares are below.")
    return _("No scores yet")


def _written(headline: Headline, values: ValueFormat, style: Style) -> str:
    if not headline.candidates:
        return style.fill("{sentence}", sentence=_no_mean(headline))
    others = headline.others or headline.candidates[1:]
    names = {
        "name": headline.candidates[0],
        "names": names_of(headline.candidates),
        "other": others[0] if others else "",
        "by": author_name(headline.by),
    }
    template = fitted(str(_templates(headline)[headline.standing]), names)
    figure = _figure(headline, values, style)
    standing = style.fill(template, **{**names, "name": style.name(names["name"]), "figure": figure})
    if headline.gap is None:
        return standing
    first = _contradiction(headline.gap, values, style, compared=bool(headline.by))
    return style.fill("{first}{space}{then}", first=first, space=sentence_space(), then=standing)


def _figure(headline: Headline, values: ValueFormat, style: Style) -> str:
    """The first candidate's value and its interval, if it has one: fewer than three items have none."""
    figure = style.figure(values.text(headline.mean))
    if headline.low is None:
        return figure
    interval = style.interval(values.interval(headline.low, headline.high))
    return style.fill("{figure} {interval}", figure=figure, interval=interval)


def _templates(headline: Headline) -> Mapping[str, Promise]:
    """The sentences by standing. A win rate is against one other candidate only where there is only one."""
    if not headline.by:
        return (AGAINST_PEOPLE if headline.gap else MEANS)[_value(headline)]
    if headline.gap:
        return COMPARISONS_AGAINST_PEOPLE
    two = len(headline.candidates) + len(headline.others or []) == 2
    return COMPARISONS_OF_TWO if two else COMPARISONS


def _value(headline: Headline) -> str:
    """Raw, or with what it is corrected."""
    return "licence" if headline.corrected_by == "licence" else headline.value


def _contradiction(gap: Gap, values: ValueFormat, style: Style, *, compared: bool) -> str:
    if compared:
        text = ngettext(
            "People contradict the judge on the {n} comparison that both judged.",
            "People contradict the judge on the {n} comparisons that both judged.",
            gap.items,
        )
        return style.fill(text, n=number(gap.items))
    higher = gap.mean > 0
    size = values.difference(abs(gap.mean))
    low, high = (gap.low, gap.high) if higher else (-gap.high, -gap.low)
    if gap.candidate:
        text = _(
            "People contradict the judge: they rate the same {n} answers of {name} {gap} {interval} lower."
        )
    elif higher:
        text = _("People contradict the judge: they rate the same {n} answers {gap} {interval} higher.")
    else:
        text = _("People contradict the judge: they rate the same {n} answers {gap} {interval} lower.")
    return style.fill(
        text,
        n=number(gap.items),
        name=gap.candidate,
        gap=style.figure(_("{n} percentage points").format(n=size) if values.rate else size),
        interval=style.interval(values.interval(low, high)),
    )
