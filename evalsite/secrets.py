"""Keys and encryption with them, and random secrets. Key files are in DATA_DIR/keys, only for the owner (or group)."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets as random_source
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from evalsite import logs
from evalsite.storage import unfinished

SECRETS = "secrets"  # name of the key used by `encrypt`


class Undecryptable(Exception):
    """The stored text was encrypted with another key (DATA_DIR/keys was lost or replaced)."""


def new_key() -> str:
    """50 random bytes as URL-safe text. A key that is not stored is lost when the process ends."""
    return random_source.token_urlsafe(50)


def new_secret(prefix: str = "") -> str:
    """A secret for a link or a header, of which only the hash is stored: `prefix` and 256 random bits, URL-safe."""
    return prefix + random_source.token_urlsafe(32)


def hashed(secret: str) -> str:
    """The hash stored for a secret. A plain hash is enough, because 256 random bits can't be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def stored_key(data_dir: Path, name: str) -> str | None:
    """The key called `name`, or None if it does not exist yet."""
    try:
        return (data_dir / "keys" / name).read_text().strip() or None
    except FileNotFoundError:
        return None


def make_key(data_dir: Path, name: str) -> str:
    """The key called `name`, created on first use. Processes that start concurrently agree on one."""
    if key := stored_key(data_dir, name):
        return key
    folder = data_dir / "keys"
    folder.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
    draft = folder / f".{name}.{os.getpid()}"
    try:
        draft.touch(mode=settings.DATA_FILE_MODE)
        with draft.open("w") as file:
            unfinished.lock(file)
            file.write(new_key())
            file.flush()
            os.link(draft, folder / name)  # fails if the other process was first
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    return (folder / name).read_text().strip()


def encrypt(plain: str) -> str:
    """Encrypt for storage; '' stays ''."""
    if not plain:
        return ""
    return _fernet(_configured_key() or make_key(settings.DATA_DIR, SECRETS)).encrypt(plain.encode()).decode()


def decrypt(stored: str) -> str:
    """Reverse `encrypt`, and hide the secret in all further logs. Raises Undecryptable if the key is missing or a
    different one."""
    plain = decrypt_text(stored)
    logs.never_show(plain)
    return plain


def decrypt_text(stored: str) -> str:
    """Like `decrypt`, for a text that is no secret as a whole.

    Never creates a key: a new one could not decrypt anything, but would stay in place of the lost one.
    """
    if not stored:
        return ""
    key = _configured_key() or stored_key(settings.DATA_DIR, SECRETS)
    if key is None:
        raise Undecryptable
    try:
        plain = _fernet(key).decrypt(stored.encode()).decode()
    except InvalidToken:
        raise Undecryptable from None
    return plain


def _configured_key() -> str:
    """The value of ENCRYPTION_KEY."""
    return str(settings.CONFIG.encryption_key)


def _fernet(key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))
