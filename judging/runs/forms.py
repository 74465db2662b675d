"""The form of a new run."""

from __future__ import annotations

import random
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate, Version
from judging.endpoints.models import Endpoint
from judging.runs.asked_forms import asked_forms
from judging.runs.budget_forms import BudgetForm
from judging.runs.models import Priority
from judging.runs.selectors import MetricChoice
from judging.runs.services import Manner

SEEDS = 2**31
MORE = ("budget_calls", "budget_tokens", "budget_money", "priority", "stop_width")


class VersionChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Names a version by its data set, number and size."""

    def label_from_instance(self, obj: Any) -> str:
        return _("%(name)s, version %(number)s (%(rows)s rows)") % {
            "name": obj.dataset.name,
            "number": obj.number,
            "rows": obj.valid_rows,
        }


class CandidateChoice(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Names a candidate with the number of its answers."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:  # SQLite's, for a number beyond 64 bits: no candidate has it
            raise forms.ValidationError(
                self.error_messages["invalid_choice"], code="invalid_choice", params={"value": value}
            ) from None

    def label_from_instance(self, obj: Any) -> str:
        return _("%(name)s (%(count)s answers)") % {"name": obj.name, "count": obj.responses}


class RunForm(BudgetForm):
    """What is judged, by which metrics, on how many rows."""

    version = VersionChoice(Version.objects.none(), label=_("Data set"), empty_label=None)
    candidates = CandidateChoice(
        Candidate.objects.none(),
        label=_("Candidates"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    metrics = forms.MultipleChoiceField(label=_("Metrics"), widget=forms.CheckboxSelectMultiple)
    sample_size = forms.IntegerField(
        label=_("Sample size"),
        min_value=1,
        max_value=100_000_000,
        required=False,
        help_text=_("Leave empty to use all rows. Try a few rows first to check the metric."),
    )
    seed = forms.IntegerField(
        label=_("Random seed"),
        min_value=0,
        max_value=SEEDS - 1,
        required=False,
        help_text=_("The same seed selects the same rows."),
    )
    name = forms.CharField(label=_("Name"), max_length=200)
    priority = forms.TypedChoiceField(
        label=_("Priority"),
        choices=Priority.choices,
        coerce=int,
        initial=Priority.NORMAL,
        required=False,
        empty_value=str(int(Priority.NORMAL)),
        help_text=_(
            "Each level gets three times the concurrency of the one below when runs share an endpoint."
        ),
    )
    stop_width = forms.FloatField(
        label=_("Stop early when every mean is within ±"),
        min_value=1e-6,
        required=False,
        help_text=_(
            "In score points, at 95 % confidence (valid at any time). Rows are judged in random order. Leave "
            "empty to judge all rows."
        ),
        widget=forms.NumberInput(attrs={"step": "any"}),
    )
    reuse_replies = forms.BooleanField(
        label=_("Reuse replies to identical requests"),
        required=False,
        help_text=_(
            "Within this project, for judges at temperature 0, when address, model and the full request match. "
            "Reused replies are free and marked with their source."
        ),
    )

    reuse_any = forms.BooleanField(
        label=_("Also at other temperatures"),
        required=False,
        help_text=_(
            "A new call could return a different reply, so repeated runs no longer show judge variance."
        ),
    )

    def __init__(
        self,
        data: Any = None,
        *,
        versions: QuerySet[Version],
        version: Version,
        choices: list[MetricChoice],
        name: str,
        endpoints: QuerySet[Endpoint],
    ) -> None:
        candidates = Candidate.uploaded.filter(version=version, responses__gt=0).order_by("name")
        self.choices = {str(choice.version.pk): choice for choice in choices if choice.version}
        proposed = {
            "version": version,
            "candidates": list(candidates),
            "metrics": list(self.choices)[:1] if len(self.choices) == 1 else [],
            "seed": random.randrange(SEEDS),
            "name": name,
            "reuse_replies": True,
        }
        super().__init__(data, initial=proposed)
        self.asked = asked_forms(data, endpoints)
        self.fields["version"].queryset = versions  # type: ignore[attr-defined]
        self.fields["candidates"].queryset = candidates  # type: ignore[attr-defined]
        self.fields["metrics"].choices = [  # type: ignore[attr-defined]
            (pk, choice.definition.name) for pk, choice in self.choices.items()
        ]

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or self.cleaned_data
        if "candidates" in sent and not sent["candidates"] and not self.asked.candidates():
            self.add_error("candidates", _("Select at least one candidate, or a model to generate answers."))
        return sent

    def is_valid(self) -> bool:
        return super().is_valid() and (not self.asked.is_bound or self.asked.is_valid())

    def metric_boxes(self) -> list[tuple[Any, MetricChoice]]:
        """Each box to tick, with its metric."""
        return [(box, self.choices[str(box.data["value"])]) for box in self["metrics"]]

    def clean_seed(self) -> int:
        """Drawn here where none is given."""
        seed = self.cleaned_data["seed"]
        return random.randrange(SEEDS) if seed is None else int(seed)

    @property
    def more_errors(self) -> bool:
        """Whether something is wrong in the part that is folded away."""
        return any(name in self.errors for name in MORE)

    def manner(self) -> Manner:
        """After is_valid."""
        sent = self.cleaned_data
        return Manner(
            self.budget(),
            Priority(int(sent["priority"])),
            sent["stop_width"],
            sent["reuse_replies"],
            sent["reuse_any"],
        )

    def chosen_metrics(self) -> list[MetricChoice]:
        """After is_valid."""
        return [self.choices[pk] for pk in self.cleaned_data["metrics"]]
