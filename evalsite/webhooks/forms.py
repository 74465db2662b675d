"""Forms for webhooks."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from evalsite.webhooks.addresses import may_be_called
from evalsite.webhooks.kinds import Event, Preset
from evalsite.webhooks.models import Webhook

MOST_CHARACTERS = 1000
_PLAIN = re.compile(r"https?://[A-Za-z0-9._\[\]:-]+([/?][!-~]*)?")
_ADDRESS = re.compile(r"[0-9.]+|.*:.*")


class WebhookForm(forms.Form):
    """Address, events and preset. The address of an existing webhook is kept if the field is empty."""

    name = forms.CharField(label=_("Name"), max_length=100, required=False)
    url = forms.CharField(label=_("Address"), max_length=MOST_CHARACTERS)
    preset = forms.ChoiceField(
        label=_("Body"), choices=Preset.choices, initial=Preset.STANDARD, required=False
    )
    events = forms.MultipleChoiceField(
        label=_("Events"), choices=Event.choices, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, webhook: Webhook | None = None, **more: Any) -> None:
        super().__init__(*args, **more)
        if webhook is not None:
            self.fields["url"].required = False
            self.fields["url"].help_text = _("Leave it empty to keep the stored address.")
        else:
            self.fields["url"].help_text = _("It is encrypted; later only the server’s name is shown.")

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if url:
            _check_url(url)
        return url

    def clean_preset(self) -> str:
        return self.cleaned_data["preset"] or Preset.STANDARD


def _check_url(url: str) -> None:
    """Raises ValidationError. Names are resolved at each delivery only."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if not host or not _PLAIN.fullmatch(url):
        raise forms.ValidationError(
            _("Enter an address such as https://example.com/hook, without user, password and spaces.")
        )
    if parts.scheme == "http" and not settings.CONFIG.webhooks_plain_http:
        raise forms.ValidationError(_("The address must begin with https://."))
    if _ADDRESS.fullmatch(host) and not may_be_called(host, settings.CONFIG.webhooks_allowed_networks):
        raise forms.ValidationError(
            _(
                "This network address is not public. The operator can allow its network (WEBHOOKS_ALLOWED_NETWORKS)."
            )
        )
