"""Forms for adding and withdrawing an override."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evalsite.rounding import significant
from judging.core.values import Value, value_text
from judging.messages import verdict_text

LARGEST = sys.float_info.max


def _number(text: str) -> int | float | None:
    """Parse a JSON number, accepting full-width characters; None if it is not a finite number."""
    try:
        number = json.loads(unicodedata.normalize("NFKC", text))
    except (ValueError, RecursionError):
        return None
    if isinstance(number, bool) or not isinstance(number, int | float) or not -LARGEST <= number <= LARGEST:
        return None
    return number


class WithdrawForm(forms.Form):
    """Reason for withdrawing an override. `seen`: id of the newest history entry when the page was opened, or 0."""

    reason = forms.CharField(
        label=_("Reason for withdrawing"), widget=forms.Textarea(attrs={"rows": 2}), max_length=4000
    )
    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)


class OverrideForm(forms.Form):
    """A reviewer's value and reason; `seen` as in WithdrawForm. The value is one of `choices`, or else has the type
    of the metric's other `values`: a number from `least` to `most`, a boolean, or a text."""

    value = forms.CharField(label=_("New value"), max_length=500)
    reason = forms.CharField(label=_("Reason"), widget=forms.Textarea(attrs={"rows": 3}), max_length=4000)
    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    def __init__(
        self,
        data: Any = None,
        *,
        least: float,
        most: float,
        values: Collection[Value] = (),
        choices: Sequence[Value] = (),
        **options: Any,
    ) -> None:
        super().__init__(data, **options)
        self.least, self.most = least, most
        if values and all(isinstance(value, bool) for value in values):
            choices = (True, False)
        self.choices = {verdict_text(choice): choice for choice in choices}
        self.bools = any(isinstance(value, bool) for value in values)
        self.texts = any(isinstance(value, str) for value in values)
        self.numbers = any(not isinstance(value, bool | str) for value in values) or not (
            self.bools or self.texts
        )
        self.bounded = (least, most) != (-LARGEST, LARGEST)
        limits = {
            "least": significant(least, 6),
            "most": significant(most, 6),
            "values": " · ".join(self.choices),
        }
        self.fields["value"].help_text = self._help() % limits

    def _help(self) -> str:
        if self.choices:
            return gettext("One of: %(values)s.")
        if not self.bounded and not self.bools and not self.texts:
            return gettext("A number.")
        if self.texts:
            return (
                gettext("A category, or a number from %(least)s to %(most)s.")
                if self.numbers
                else gettext("A category.")
            )
        if self.bools and self.numbers:
            return gettext("true or false, or a number from %(least)s to %(most)s.")
        return gettext("A number from %(least)s to %(most)s.")

    def clean_value(self) -> Value:
        text: str = self.cleaned_data["value"].strip()
        if self.choices:
            return self._chosen(text)
        if self.bools and text.lower() in ("true", "false"):
            return text.lower() == "true"
        number = _number(text) if self.numbers else None
        if number is None and self.texts:
            return text
        if number is None:
            raise ValidationError(_("This is not a number. Enter one with a decimal point, for example 7.5."))
        if not self.least <= number <= self.most:
            raise ValidationError(_("This is outside the metric's scale."))
        return number

    def _chosen(self, text: str) -> Value:
        named = unicodedata.normalize("NFKC", text)
        for name, choice in self.choices.items():
            words = (name.casefold(), value_text(choice)) if isinstance(choice, bool) else ()
            if name in (text, named) or named.casefold() in words:
                return choice
        raise ValidationError(_("Enter one of the listed values."))
