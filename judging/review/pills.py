"""A judgement as a pill in the grid. Built here, not in a template, because a page has hundreds of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from judging.core.metric_definition import MetricDefinition
from judging.core.values import stored_value_text
from judging.review.selectors import flag_names
from judging.runs.models import Judgement
from judging.runs.teamwork.models import FLAG, Mark, MarkKind


@dataclass(frozen=True, slots=True)
class Pill:
    """`level` from 1 (lowest of the scale) to SCALE_LEVELS, or None; `meant`: it matches the filter."""

    judgement: Judgement
    metric: str
    shown: str
    level: int | None
    meant: bool

    @property
    def name(self) -> str:
        """The metric's name; for an imported verdict also its source."""
        source = self.judgement.source
        return f"{source.name} · {self.metric}" if source else self.metric

    def html(self, base: str, query: str, marks: Iterable[Mark], *, named: bool) -> SafeString:
        """A link to its page, below `base`; grid.js opens it in the panel. `named`: with the metric's name."""
        one = self.judgement
        level = format_html(' data-level="{}"', self.level) if self.level else ""
        other = "" if self.meant else mark_safe(" data-other")
        value = format_html("<strong>{}</strong>", self.shown)
        value = value if self.shown else format_html("<span>{}</span>", one.get_state_display())
        name = format_html(' <span class="pill-name">{}</span>', self.name) if named else ""
        address = f"{base}{one.pk}/{query}"
        return format_html(
            '<a class="pill" href="{}" data-pk="{}"{}{} title="{}">{}{}{}</a>',
            *(address, one.pk, level, other, self.name, value, name, self._signs(marks)),
        )

    def _signs(self, marks: Iterable[Mark]) -> SafeString:
        """Icons for its flags and for reviewers' marks."""
        signs = [(_("overridden"), "✎")] if self.judgement.overridden else []
        if self.judgement.flags:
            signs.append((", ".join(flag_names(self.judgement)), "⚑"))
        for mark in marks:
            if mark.kind == MarkKind.EXCLUDED:
                signs.append((_("excluded"), "⊘"))
            elif mark.kind == MarkKind.TAG:
                signs.append((_("flagged"), "⚑") if mark.name == FLAG else (mark.name, "#"))
        return format_html_join("", ' <span aria-label="{}">{}</span>', signs)


def pill_of(judgement: Judgement, metric: MetricDefinition, *, meant: bool = True) -> Pill:
    value = judgement.value_in_force
    level = metric.level(value, judgement.score_in_force)
    return Pill(judgement, metric.name, stored_value_text(value), level, meant)
