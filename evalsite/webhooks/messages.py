"""What became of a try to deliver a message, as sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

PROBLEMS = {
    "refused_address": _("Not sent: the name stands for an address that is not public."),
    "no_name": _("Not sent: the server’s name is unknown."),
    "bad_url": _("Not sent: the address is invalid."),
    "plain_http": _("Not sent: the address must begin with https://."),
    "undecryptable": _("Not sent: the stored address can’t be decrypted. Enter it again."),
    "timeout": _("No complete reply within 10 seconds."),
    "connect": _("The server accepted no connection."),
    "certificate": _("The server’s certificate is not valid."),
    "cut": _("The connection ended without a reply."),
    "redirect": _("The server redirects elsewhere, which is not followed."),
    "status": _("The server refused it."),
}


def problem_text(entry: Mapping[str, Any]) -> str:
    """The sentence for a try of Delivery.tries; '' if it arrived."""
    return str(PROBLEMS.get(entry["problem"], entry["problem"]))
