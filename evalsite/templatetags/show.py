"""Template filters that format values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache

from django import template
from django.conf import settings
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext, pgettext

from evalsite.accounts.models import Role
from evalsite.names import bracketed, join_sentences, labelled, sentence_space
from evalsite.rounding import fixed, fixed_percent, rounded, shortest, significant, without_zeros

register = template.Library()
NONE = "–"
SMALL_P = 0.001
MOST_MARKED = 500  # matches to highlight; further ones are not
_UNITS = ("B", "kB", "MB", "GB", "TB")


def _real(value: object) -> float | None:
    """The value as a finite number, or None."""
    if value is None or value == "":
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # templates pass any type
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


@register.filter
def marked(text: object, wanted: str) -> SafeString:
    """The escaped text with case-insensitive matches of `wanted` in <mark>."""
    parts = (
        re.split(f"({re.escape(wanted)})", str(text), maxsplit=MOST_MARKED, flags=re.IGNORECASE)
        if wanted
        else [str(text)]
    )
    # every second part is a match
    marks = (
        format_html("<mark>{}</mark>", part) if number % 2 else part for number, part in enumerate(parts)
    )
    return format_html_join("", "{}", ((part,) for part in marks))


@register.filter
def number(value: object) -> str:
    """A count with thousands separators: 12345 → 12,345 (in Chinese too, unlike Django's grouping by ten thousands)."""
    real = _real(value)
    if real is None:
        return NONE
    return f"{int(real):,}" if real == int(real) else f"{real:,}"


@register.filter
def approximate(value: object) -> str:
    """An estimated count to three digits: 451515 → 452,000."""
    real = _real(value)
    return NONE if real is None else number(float(significant(float(rounded(real)), 3)))


@register.filter
def score(value: object, places: int = 3) -> str:
    """A score to `places` decimals without trailing zeros: 7.500 → 7.5, None → –."""
    real = _real(value)
    if real is None:
        return NONE
    return shortest(real, places).replace("-", "−")


@register.filter
def p_value(value: object) -> str:
    """A p value with three decimals, or that it is under 0.001; – for None."""
    real = _real(value)
    if real is None:
        return NONE
    return f"< {SMALL_P}" if real < SMALL_P else fixed(real, 3)


@register.filter
def money(value: object) -> str:
    """An amount of money with four decimals, also where it is small: 0.0123, 1,234.5000."""
    real = _real(value)
    return NONE if real is None else fixed(real, 4, thousands=True)


@register.filter(name="fixed")
def fixed_decimals(value: object, places: int = 2) -> str:
    """A number of a column, with exactly `places` decimals: 7.5 → 7.50, None → –."""
    real = _real(value)
    return NONE if real is None else fixed(real, places).replace("-", "−")


@register.filter
def percent(value: object, places: int = 1) -> str:
    """A share in a sentence: 0.953 → 95.3 %, 0.5 → 50 %; never rounded to 0 or 100 unless exact."""
    return _percentage(value, places, without_zeros)


@register.filter
def share(value: object, places: int = 1) -> str:
    """A share of a column, with exactly `places` decimals: 0.5 → 50.0 %; otherwise as `percent`."""
    return _percentage(value, places, str)


def _percentage(value: object, places: int, shown: Callable[[str], str]) -> str:
    real = _real(value)
    if real is None:
        return NONE
    text = fixed_percent(real, places)
    if real and not float(text):
        return f"< {percents(fixed(10.0**-places, places))}"
    if real != 1 and float(text) == 100:
        return f"> {percents(fixed(100 - 10.0**-places, places))}"
    return percents(shown(text).replace("-", "−"))


def percents(number: str) -> str:
    """A number as a percentage in the user's language: 95.3 %, in Chinese 95.3%."""
    return gettext("%(n)s %%") % {"n": number}


@register.filter
def duration(seconds: object) -> str:
    """A duration in its largest two units: 0.042 → 42 ms, 0.675 → 0.7 s, 7 → 7.0 s, 39.4 → 39 s, 3725 → 1 h 2 min."""
    real = _real(seconds)
    if real is None:
        return NONE
    if real < 0.0995:
        return gettext("%(n)s ms") % {"n": fixed(real * 1000)}
    if real < 59.5:
        return gettext("%(n)s s") % {"n": fixed(real, 1 if real < 9.95 else 0)}
    minutes, rest = divmod(int(rounded(real)), 60)
    if minutes < 60:
        text = gettext("%(m)s min %(s)s s") if rest else gettext("%(m)s min")
        return text % {"m": minutes, "s": rest}
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        text = gettext("%(h)s h %(m)s min") if minutes else gettext("%(h)s h")
        return text % {"h": hours, "m": minutes}
    return gettext("%(d)s d %(h)s h") % {"d": hours // 24, "h": hours % 24}


@register.filter
def filesize(value: object) -> str:
    """A number of bytes in decimal units: 1234567 → 1.2 MB."""
    real = _real(value)
    if real is None:
        return NONE
    for unit in _UNITS:
        if real < 999.5 or unit == _UNITS[-1]:
            return f"{score(real, 0 if unit == 'B' or real >= 99.5 else 1)} {unit}"
        real /= 1000
    raise AssertionError("unreachable")


@register.filter
def moment(value: datetime | float | None) -> SafeString | str:
    """A time as <time> in UTC; static/js/site.js converts it to the user's time zone."""
    when = _datetime(value)
    if when is None:
        return NONE
    text = when.strftime("%Y-%m-%d %H:%M") + " UTC"
    return format_html('<time datetime="{}" data-local>{}</time>', when.isoformat(timespec="seconds"), text)


@register.filter
def since(value: datetime | float | None) -> SafeString | str:
    """The time elapsed in one unit, with the exact time in the title."""
    when = _datetime(value)
    if when is None:
        return NONE
    text = _ago((timezone.now() - when).total_seconds())
    stamp = when.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" data-since>{}</time>', stamp, text)


def _datetime(value: datetime | float | None) -> datetime | None:
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    return value.astimezone(UTC) if value else None


def _ago(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 1:
        return gettext("just now")
    if minutes < 60:
        return ngettext("%(n)s minute ago", "%(n)s minutes ago", minutes) % {"n": minutes}
    hours = minutes // 60
    if hours < 24:
        return ngettext("%(n)s hour ago", "%(n)s hours ago", hours) % {"n": hours}
    days = hours // 24
    return ngettext("%(n)s day ago", "%(n)s days ago", days) % {"n": number(days)}


register.simple_tag(sentence_space)
register.filter(join_sentences)


@register.simple_tag
def icon(name: str) -> SafeString:
    """A vendored icon in the colour of the adjacent text, hidden from screen readers."""
    return mark_safe(  # noqa: S308 (files of ours)
        f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{_paths_of(name)}</svg>'
    )


@cache
def _paths_of(name: str) -> str:
    text = (settings.BASE_DIR / "static" / "vendor" / "lucide" / f"{name}.svg").read_text()
    inner = text.partition("<svg")[2].partition(">")[2].removesuffix("</svg>\n")
    return " ".join(inner.split())


_STATE_ICONS = {
    **dict.fromkeys(("scored", "finished", "ready"), "circle-check"),
    **dict.fromkeys(("error", "failed"), "circle-x"),
    **dict.fromkeys(("running", "reading", "planning"), "refresh-cw"),
    "unparsed": "triangle-alert", "unsettled": "scale", "paused": "pause", "cancelled": "square", "no_score": "x",
}  # fmt: skip


@register.filter
def state_badge(state: str, label: str = "") -> SafeString:
    """A state as a label with its icon: {{ run.state|state_badge:run.get_state_display }}."""
    shown = icon(_STATE_ICONS.get(state, "history"))
    return format_html(
        '<span class="state" data-state="{}">{}{}</span>', state, shown, label or _state_name(state)
    )


def _state_name(state: str) -> str:
    """The label for a state given without one; the apps' own choices have the same msgids."""
    names = {
        "scored": gettext("scored"),
        "no_score": gettext("no score"),
        "unparsed": gettext("unparsed"),
        "unsettled": gettext("unsettled"),
        "error": gettext("error"),
        "not_run": gettext("not run"),
    }
    return names.get(state, state)


@register.filter
def role_name(role: str) -> str:
    """The label for a role code."""
    return str(Role(role).label) if role in Role.values else role


@register.filter
def turn_name(role: str) -> str:
    """The speaker in a conversation, in the user's language; unknown roles are unchanged."""
    names = {
        "user": pgettext("speaker", "User"),
        "assistant": pgettext("speaker", "Assistant"),
        "system": pgettext("speaker", "System"),
        "tool": pgettext("speaker", "Tool"),
        "developer": pgettext("speaker", "Developer"),
        "function": pgettext("speaker", "Function"),
    }
    return names.get(role, role)


@register.filter
def exact(text: str) -> SafeString:
    """A text of which a browser keeps every code point, so that places in it are those in the data."""
    return mark_safe(escape(_DROPPED.sub("\ufffd", text)).replace("\r", "&#13;"))  # noqa: S308


_DROPPED = re.compile("[\x00\ud800-\udfff]")


@register.filter
def nth(values: Sequence[object], place: int) -> object:
    """The value at a place, from 0; '' if there is none."""
    return values[place] if values and place < len(values) else ""


register.simple_tag(labelled)
register.simple_tag(bracketed)


@register.simple_tag(takes_context=True)
def address(context: template.Context, **changes: object) -> str:
    """This page's query string with `changes`, for filters and tabs; an empty value removes a name."""
    query = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = str(value)
    return f"?{query.urlencode()}"
