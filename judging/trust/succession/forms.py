"""The forms of a succession: the new judges, and the margin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.accounts.models import Project
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.succession import Margins, Measure
from judging.endpoints.models import Endpoint
from judging.endpoints.selectors import endpoints_of
from judging.runs.forms import EndpointChoice

_HELP = {
    "score": gettext_lazy("Percent of the scale's width by which a candidate's mean may move."),
    "rate": gettext_lazy("Points by which a candidate's rate may move."),
    "label": gettext_lazy("Percent of a candidate's labels that may turn."),
}


class MarginForm(forms.Form):
    """How far a mean may move for old and new to stand in one table."""

    margin = forms.FloatField(label=gettext_lazy("Margin"), min_value=0.1, max_value=50)

    def __init__(self, data: Any = None, *, measure: Measure, now: float | None = None) -> None:
        share = Margins().share(measure) if now is None else now
        super().__init__(data, initial={"margin": round(100 * share, 6)})
        self.fields["margin"].help_text = _HELP[measure]

    @property
    def share(self) -> float:
        """The margin as a share, 0…1. Call only after is_valid."""
        return float(self.cleaned_data["margin"]) / 100


class SuccessionForm(MarginForm):
    """An endpoint for each judge model of a metric."""

    def __init__(
        self, data: Any = None, *, project: Project, definition: MetricDefinition, measure: Measure
    ) -> None:
        super().__init__(data, measure=measure)
        for number, judge in enumerate(definition.judges):
            self.fields[f"judge-{number}"] = EndpointChoice(
                endpoints_of(project),
                label=_("Instead of %(judge)s") % {"judge": judge.name},
                initial=judge.endpoint,
                empty_label=None,
                help_text=_("The same endpoint again: its model was updated.") if not number else "",
            )
        self.order_fields([name for name in self.fields if name != "margin"])

    def endpoints(self) -> dict[int, Endpoint]:
        """The endpoint sent or offered for each judge model, by its number."""
        chosen = {}
        for name, field in self.fields.items():
            if isinstance(field, forms.ModelChoiceField):
                offered = Endpoint.objects.none() if field.queryset is None else field.queryset
                endpoint = offered.filter(pk=_key(self[name].value())).first() or offered.first()
                if endpoint is not None:
                    chosen[int(name.removeprefix("judge-"))] = endpoint
        return chosen


def _key(value: Any) -> int:
    text = str(getattr(value, "pk", value) or "")
    return int(text) if text.isdecimal() and len(text) < 19 else 0
