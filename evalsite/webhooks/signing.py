"""Signatures after the Standard Webhooks text: HMAC-SHA256 over `id.timestamp.body`."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_signing_secret() -> str:
    """`whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed_headers(signing_secrets: Sequence[str], uid: str, timestamp: int, body: str) -> dict[str, str]:
    """The three headers of a message; each secret adds a signature. `timestamp`: Unix seconds."""
    signatures = [signature(secret, uid, timestamp, body) for secret in signing_secrets]
    return {
        "webhook-id": uid,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


def signature(secret: str, uid: str, timestamp: int, body: str) -> str:
    """`v1,` and the signature in base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{uid}.{timestamp}.{body}".encode(), "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"
