"""The form that begins a fire drill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from judging.metrics.models import MetricVersion
from judging.trust.drill_pages.sources import MOST_ROWS, USUAL_ROWS, DrillSource


class DrillForm(forms.Form):
    """Which judge is drilled, on which answers. `offered`: (version of a metric, its name)."""

    metric = forms.TypedChoiceField(label=gettext_lazy("Metric"), coerce=int)
    source = forms.ChoiceField(
        label=gettext_lazy("Answers"),
        help_text=gettext_lazy("Good answers are best: what is bad already cannot become worse."),
    )
    model = forms.CharField(
        label=gettext_lazy("Only answers of"),
        required=False,
        max_length=300,
        help_text=gettext_lazy("Name of a model; empty: one answer a row, drawn among all."),
    )
    rows = forms.IntegerField(
        label=gettext_lazy("Rows"),
        min_value=1,
        max_value=MOST_ROWS,
        initial=USUAL_ROWS,
        help_text=gettext_lazy("Drawn at random. A defect needs 20 items to be flagged, in each language."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=0,
        max_value=2**31 - 1,
        initial=0,
        help_text=gettext_lazy("The same seed plants the same."),
    )

    def __init__(
        self,
        data: Any = None,
        *,
        versions: Sequence[MetricVersion],
        sources: Sequence[DrillSource],
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        self.versions = {version.pk: version for version in versions}
        self.sources = {source.code: source for source in sources}
        names = [(pk, f"{version.metric.name} v{version.number}") for pk, version in self.versions.items()]
        self.fields["metric"].choices = names  # type: ignore[attr-defined]
        self.fields["source"].choices = [  # type: ignore[attr-defined]
            (source.code, _("run %(name)s") % {"name": source.name} if source.run else source.name)
            for source in sources
        ]

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        source, model = self.sources.get(values.get("source", "")), values.get("model")
        if source and model and model not in source.candidates:
            names = ", ".join(source.candidates[:20])
            self.add_error(
                "model", _("There are no answers of this model. There are: %(names)s") % {"names": names}
            )
        return values

    def chosen(self) -> tuple[MetricVersion, DrillSource, int]:
        """Metric, answers and rows as sent so far, or the first ones offered."""

        def sent(name: str) -> str:
            return str(self[name].value() or "")

        version = next((each for pk, each in self.versions.items() if str(pk) == sent("metric")), None)
        source = self.sources.get(sent("source"))
        rows = int(sent("rows")) if sent("rows").isdecimal() and len(sent("rows")) < 6 else USUAL_ROWS
        return (
            version or next(iter(self.versions.values())),
            source or next(iter(self.sources.values())),
            max(1, min(rows, MOST_ROWS)),
        )
