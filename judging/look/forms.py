"""Forms of looks: how many answers to draw, a note, and a group."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from judging.look.services import FEWEST, LONGEST_NOTE, MOST, USUAL
from judging.records.models import RunMetric


class LookForm(forms.Form):
    """How many answers to draw, and whether evenly or by a metric's scores."""

    size = forms.IntegerField(
        label=_("Answers to look at"),
        min_value=FEWEST,
        max_value=MOST,
        initial=USUAL,
        help_text=_("20 to 100, about half a minute each. If there are fewer, all of them are shown."),
    )
    by_score_of = forms.ModelChoiceField(
        RunMetric.objects.none(),
        label=_("Draw"),
        required=False,
        empty_label=_("evenly"),
        help_text=_("By score: half of the answers have low scores. Shares are weighted to make up for it."),
    )

    def __init__(self, data: Any, metrics: list[RunMetric], initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial)
        field = self.fields["by_score_of"]
        field.queryset = RunMetric.objects.filter(pk__in=[metric.pk for metric in metrics])  # type: ignore[attr-defined]
        field.label_from_instance = lambda metric: _("by the scores of “%(name)s”") % {"name": metric.name}  # type: ignore[attr-defined]
        if not metrics:
            del self.fields["by_score_of"]


class NoteForm(forms.Form):
    """A note on an answer. `passed` is '' while the person has not decided."""

    text = forms.CharField(required=False, strip=False, max_length=LONGEST_NOTE)
    passed = forms.TypedChoiceField(
        choices=[("1", _("Pass")), ("0", _("Fail"))],
        required=False,
        coerce=lambda value: value == "1",
        empty_value=None,
    )
    new_kind = forms.BooleanField(required=False)
    page = forms.UUIDField(required=False)
    seen = forms.IntegerField(required=False, min_value=0)


class GroupForm(forms.Form):
    """A group's name and definition."""

    name = forms.CharField(label=_("Name"), max_length=100)
    definition = forms.CharField(
        label=_("Definition"),
        required=False,
        max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("When does an answer belong here? A judge written for this group starts from it."),
    )
    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)
