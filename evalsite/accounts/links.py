"""Random secrets in links and headers, stored only as hashes."""

from __future__ import annotations

import hashlib
import secrets


def new_secret(prefix: str = "") -> str:
    """Return `prefix` followed by 256 random bits, URL-safe."""
    return prefix + secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """The hash stored for a secret. A plain hash is enough, because 256 random bits can't be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
