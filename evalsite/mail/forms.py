"""Forms for mail."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from evalsite.mail.models import MailAddress

SWITCHES = ("mentions", "ratings", "runs", "alarms", "invitations", "resets")


class MailForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A user's address, zone and switches."""

    email = forms.EmailField(label=_("Mail address"), max_length=254, required=False)

    class Meta:
        model = MailAddress
        fields = ("time_zone", *SWITCHES)
        labels = {"time_zone": _("Time zone of the daily mail")}
        help_texts = {"time_zone": _("For example: Asia/Shanghai.")}

    prefix = "mail"
    field_order = ("email", "time_zone", *SWITCHES)

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        row = self.instance
        self.fields["email"].initial = row.pending or row.address
        self.fields["time_zone"].widget.attrs["data-time-zone"] = ""
        if row.pending:
            self.fields["email"].help_text = _("Not confirmed yet. Open the link that was sent to it.")

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"].strip()
        if not name:
            return ""
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise ValidationError(_("This is not a time zone. Use one such as Asia/Shanghai.")) from None
        return name


class ResetRequestForm(forms.Form):
    email = forms.EmailField(label=_("Mail address"), max_length=254)
