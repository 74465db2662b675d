"""The forms of gold items: which item it is, what is right of it, or a file of many."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate
from judging.core.people.criteria import Criterion
from judging.people.forms import OneCandidate
from judging.people.messages import value_label


class GoldPlaceForm(forms.Form):
    """The row, and whose answers to it; of one answer only `a`."""

    row = forms.IntegerField(label=_("Row"), min_value=1, max_value=2**31 - 1)
    a = OneCandidate(Candidate.objects.none(), label=_("Answer A of"), empty_label=None)
    b = OneCandidate(Candidate.objects.none(), label=_("Answer B of"), empty_label=None)

    def __init__(self, data: Any, *, candidates: QuerySet[Candidate], pair: bool) -> None:
        super().__init__(data)
        for field in ("a", "b"):
            self.fields[field].queryset = candidates  # type: ignore[attr-defined]
        if pair:
            self.initial["b"] = candidates.values_list("pk", flat=True)[1:2].first()
        else:
            del self.fields["b"]
            self.fields["a"].label = _("Answer of")

    @property
    def names(self) -> list[str]:
        """Of the candidates, after is_valid; '' for none."""
        return [self.cleaned_data[side].name if self.cleaned_data.get(side) else "" for side in ("a", "b")]


class KnownForm(forms.Form):
    """What is right, for each criterion that is no free text."""

    def __init__(self, data: Any, *, criteria: dict[int, Criterion]) -> None:
        super().__init__(data)
        self.criteria = {f"value_{number}": one for number, one in criteria.items() if one.scale != "text"}
        for name, one in self.criteria.items():
            choices = [("", "–"), *((str(place), value_label(one, v)) for place, v in enumerate(one.choices))]
            self.fields[name] = forms.ChoiceField(
                label=one.name, choices=choices, required=len(self.criteria) == 1
            )

    def values(self) -> dict[str, Any]:
        """{criterion's name: value} of what was chosen, after is_valid."""
        chosen = {name: self.cleaned_data[name] for name in self.criteria if self.cleaned_data[name]}
        return {self.criteria[name].name: self.criteria[name].choices[int(at)] for name, at in chosen.items()}


class GoldFileForm(forms.Form):
    """Gold from a file of lines."""

    file = forms.FileField(
        label=_("File"),
        help_text=_(
            'JSON Lines: {"row": 3, "a": "…", "b": "…", "values": {"…": "A>B"}}; A is the answer called a.'
        ),
    )
