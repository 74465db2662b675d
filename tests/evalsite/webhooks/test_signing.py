"""Signatures, checked with the package of the Standard Webhooks text."""

from __future__ import annotations

import base64
import time

import pytest
from standardwebhooks import Webhook

from evalsite.webhooks.signing import new_signing_secret, signed_headers


def test_the_standards_own_package_verifies_a_message() -> None:
    secret = new_signing_secret()
    headers = signed_headers([secret], "msg_1", int(time.time()), '{"name":"评测"}')
    assert Webhook(secret).verify('{"name":"评测"}', headers) == {"name": "评测"}


def test_during_a_rotation_both_secrets_verify() -> None:
    old, new = new_signing_secret(), new_signing_secret()
    headers = signed_headers([new, old], "msg_1", int(time.time()), "{}")
    for secret in (old, new):
        assert Webhook(secret).verify("{}", headers) == {}


@pytest.mark.parametrize("changed", ["webhook-id", "body"])
def test_a_changed_message_is_not_verified(changed: str) -> None:
    secret = new_signing_secret()
    headers = signed_headers([secret], "msg_1", int(time.time()), "{}")
    if changed != "body":
        headers[changed] = "msg_2"
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(secret).verify("[]" if changed == "body" else "{}", headers)


def test_a_secret_is_whsec_and_32_bytes_in_base64() -> None:
    prefix, _underscore, text = new_signing_secret().partition("_")
    assert (prefix, len(base64.b64decode(text, validate=True))) == ("whsec", 32)
