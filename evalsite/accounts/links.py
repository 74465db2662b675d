"""Secrets that are in links and headers: made at random, kept as hashes only."""

from __future__ import annotations

import hashlib
import secrets


def new_secret(prefix: str = "") -> str:
    """`prefix` and 256 random bits, fit for an address."""
    return prefix + secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """What is kept of a secret. A plain hash is enough: no one tries all of 256 bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
