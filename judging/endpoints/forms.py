"""The endpoint form. Key, headers and proxy are write-only."""

from __future__ import annotations

import json
import ssl
from copy import copy
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.secrets import encrypt
from judging.core.judges.addresses import chat_url
from judging.core.judges.errors import JudgeError
from judging.core.judges.http_clients import request_headers
from judging.core.judges.protocols import CHAT, PROTOCOLS
from judging.core.judges.settings import JudgeSettings
from judging.endpoints.fields import REMOVE, JsonObjectField, SecretField
from judging.endpoints.models import Endpoint
from judging.endpoints.settings import origin
from judging.messages import reason_sentence

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

SECRETS = ("key", "headers", "proxy")
PLAIN = (
    *("name", "url", "model", "protocol", "ca_pem", "params"),
    *("concurrency", "requests_per_minute", "tokens_per_minute"),
    *("input_price", "output_price", "currency"),
    *("connect_seconds", "first_byte_seconds", "idle_seconds", "total_seconds"),
)
"""Names of the fields that the form and the endpoint model share."""
SHOWN_FIRST = ("name", "url", "model", "protocol", "key", "remove_key")
PRICES = ("input_price", "output_price")


def _price(label: StrPromise) -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        min_value=Decimal(0),
        max_digits=12,
        decimal_places=4,
        required=False,
        widget=forms.NumberInput(attrs={"step": "any"}),
    )


def _whole(
    label: StrPromise, least: int, most: int, initial: int | None, help_text: StrPromise | str = ""
) -> forms.IntegerField:
    """An integer field; optional if it has no `initial` value."""
    return forms.IntegerField(
        label=label,
        min_value=least,
        max_value=most,
        initial=initial,
        required=initial is not None,
        help_text=help_text,
    )


class EndpointForm(forms.Form):
    """The form for a new endpoint, or for editing `endpoint`."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("Shown in metrics and runs. Defaults to the model ID."),
    )
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=1000,
        help_text=gettext_lazy("With or without version and path of the call. Local addresses work too."),
        widget=forms.TextInput(attrs={"class": "mono", "inputmode": "url", "spellcheck": "false"}),
    )
    model = forms.CharField(
        label=gettext_lazy("Model ID"),
        max_length=300,
        help_text=gettext_lazy("As the server lists it, for example gpt-4o-mini."),
        widget=forms.TextInput(attrs={"class": "mono", "list": "models", "spellcheck": "false"}),
    )
    protocol = forms.ChoiceField(
        label=gettext_lazy("Protocol"),
        choices=[(protocol.code, protocol.name) for protocol in PROTOCOLS.values()],
        initial=CHAT,
        required=False,
        help_text=gettext_lazy("How the server is asked. Most servers offer OpenAI chat completions."),
    )
    key = SecretField(label=gettext_lazy("API key"), max_length=5000)
    remove_key = forms.BooleanField(label=REMOVE, required=False)
    headers = SecretField(
        rows=3,
        label=gettext_lazy("Extra headers"),
        max_length=20_000,
        help_text=gettext_lazy("One per line, as “Name: value”. Replaces all stored headers."),
    )
    remove_headers = forms.BooleanField(label=REMOVE, required=False)
    proxy = SecretField(
        label=gettext_lazy("Proxy"),
        max_length=1000,
        help_text=gettext_lazy("For example http://proxy.example:3128. Can include a username and password."),
    )
    remove_proxy = forms.BooleanField(label=REMOVE, required=False)
    ca_pem = forms.CharField(
        label=gettext_lazy("Custom CA certificate"),
        required=False,
        max_length=200_000,
        help_text=gettext_lazy("In PEM format, for servers with a private or self-signed certificate."),
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )
    params = JsonObjectField(
        label=gettext_lazy("Generation parameters"),
        help_text=gettext_lazy("JSON object sent with every request. Metrics can override it."),
    )
    concurrency = _whole(
        gettext_lazy("Max concurrent requests"),
        1,
        1000,
        16,
        gettext_lazy("Reduced automatically when the server is overloaded."),
    )
    requests_per_minute = _whole(
        gettext_lazy("Requests per minute"),
        1,
        1_000_000,
        None,
        gettext_lazy("Limit across all workers. Leave empty for no limit."),
    )
    tokens_per_minute = _whole(
        gettext_lazy("Tokens per minute"),
        100,
        2_000_000_000,
        None,
        gettext_lazy("Input and output combined. Estimated before a call, corrected after the reply."),
    )
    input_price = _price(gettext_lazy("Price per million input tokens"))
    output_price = _price(gettext_lazy("Price per million output tokens"))
    currency = forms.CharField(
        label=gettext_lazy("Currency"),
        max_length=8,
        required=False,
        help_text=gettext_lazy("For example USD or CNY."),
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    connect_seconds = _whole(gettext_lazy("Connect timeout (seconds)"), 1, 300, 10)
    first_byte_seconds = _whole(gettext_lazy("Time to first byte (seconds)"), 1, 3600, 120)
    idle_seconds = _whole(gettext_lazy("Idle timeout (seconds)"), 1, 3600, 120)
    total_seconds = _whole(gettext_lazy("Total timeout (seconds)"), 1, 7200, 600)

    def __init__(self, data: Any = None, *, endpoint: Endpoint | None = None) -> None:
        self.endpoint = endpoint
        initial = {name: getattr(endpoint, name) for name in PLAIN} if endpoint else None
        super().__init__(data, initial=initial)
        self.stored = {name: bool(endpoint and getattr(endpoint, f"{name}_encrypted")) for name in SECRETS}
        for name in SECRETS:
            if not self.stored[name]:
                del self.fields[f"remove_{name}"]

    @property
    def advanced_errors(self) -> bool:
        """Whether the collapsed section has errors."""
        return any(name not in SHOWN_FIRST for name in self.errors)

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            chat_url(url)
        except JudgeError:
            raise forms.ValidationError(
                _(
                    "Not a valid http or https URL, or it contains a username. Use the form http://host:port/v1."
                )
            ) from None
        return url

    def clean_protocol(self) -> str:
        return self.cleaned_data["protocol"] or CHAT

    def clean_key(self) -> str:
        key: str = self.cleaned_data["key"]
        _refuse_unsendable(JudgeSettings(url="", model="", api_key=key))
        return key

    def clean_headers(self) -> dict[str, str]:
        """Parse `Name: value` lines. Errors give the line number only, because the text is secret."""
        headers: dict[str, str] = {}
        for number, line in enumerate(self.cleaned_data["headers"].splitlines(), 1):
            name, _colon, value = (part.strip() for part in line.partition(":"))
            if not line.strip():
                continue
            if not name or not value or any(c.isspace() for c in name):
                raise forms.ValidationError(_("Line %(line)s: expected “Name: value”.") % {"line": number})
            headers[name] = value
        _refuse_unsendable(JudgeSettings(url="", model="", headers=headers))
        return headers

    def clean_proxy(self) -> str:
        proxy: str = self.cleaned_data["proxy"]
        if proxy and not _is_proxy(proxy):
            raise forms.ValidationError(_("Enter the proxy as http://host:port."))
        return proxy

    def clean_ca_pem(self) -> str:
        pem: str = self.cleaned_data["ca_pem"]
        if pem:
            try:
                ssl.create_default_context().load_verify_locations(cadata=pem)
            except (ssl.SSLError, ValueError, TypeError):  # TypeError: not ASCII
                raise forms.ValidationError(reason_sentence("bad_ca")) from None
        return pem

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        values["name"] = values.get("name") or values.get("model", "")[:200]
        if values.get("first_byte_seconds", 0) > values.get("total_seconds", 10**9):
            self.add_error("total_seconds", _("Total timeout must not be shorter than time to first byte."))
        if any(values.get(name) is not None for name in PRICES) and not values.get("currency"):
            self.add_error("currency", _("Enter the currency of the prices."))
        if self.endpoint and "url" in values and self._goes_elsewhere():
            for name in ("key", "headers"):
                if self.stored[name] and not values.get(name) and not values.get(f"remove_{name}"):
                    self.add_error(
                        name, _("The address or proxy has changed. Enter this again, or remove it.")
                    )
        return values

    def _goes_elsewhere(self) -> bool:
        """Whether a stored key would be sent to a different server than it was entered for."""
        assert self.endpoint is not None
        moved = origin(self.endpoint.url).lower() != origin(self.cleaned_data["url"]).lower()
        return bool(self.cleaned_data.get("proxy")) or moved

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()

    def result(self) -> Endpoint:
        """The endpoint with the form's values, not saved. Call only after is_valid."""
        values, typed = self.cleaned_data, copy(self.endpoint) if self.endpoint else Endpoint()
        for name in PLAIN:
            setattr(typed, name, values[name])
        for name in SECRETS:
            secret = values[name]
            if secret or values.get(f"remove_{name}"):
                text = json.dumps(secret) if name == "headers" and secret else secret or ""
                setattr(typed, f"{name}_encrypted", encrypt(text))
        return typed


def _is_proxy(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _refuse_unsendable(settings: JudgeSettings) -> None:
    try:
        request_headers(settings)
    except JudgeError as error:
        raise forms.ValidationError(reason_sentence(error.code)) from None
