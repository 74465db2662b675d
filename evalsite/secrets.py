"""Keys, and what is encrypted with them. Key files lie in DATA_DIR/keys, which only its owner (or group) can read."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets as random_source
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from evalsite import logs

SECRETS = "secrets"  # the name of the key that `encrypt` uses


class Undecryptable(Exception):
    """The stored text was encrypted with another key (DATA_DIR/keys was lost or replaced)."""


def new_key() -> str:
    """50 random characters; a process that made one up for itself forgets it when it ends."""
    return random_source.token_urlsafe(50)


def stored_key(data_dir: Path, name: str) -> str | None:
    """The key called `name`, or None if it has not been made yet."""
    try:
        return (data_dir / "keys" / name).read_text().strip() or None
    except FileNotFoundError:
        return None


def make_key(data_dir: Path, name: str) -> str:
    """The key called `name`, made on first use. Two processes that start at once agree on one."""
    folder = data_dir / "keys"
    folder.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
    draft = folder / f".{name}.{os.getpid()}"
    try:
        draft.touch(mode=settings.DATA_FILE_MODE)
        draft.write_text(new_key())
        os.link(draft, folder / name)  # fails if the other process was first
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    return (folder / name).read_text().strip()


def encrypt(plain: str) -> str:
    """Encrypt for storing; '' stays ''."""
    if not plain:
        return ""
    return _fernet(_given_key() or make_key(_data_dir(), SECRETS)).encrypt(plain.encode()).decode()


def decrypt(stored: str) -> str:
    """The text that `encrypt` was given. Raises Undecryptable if the key is another one, or is gone.

    Writes nothing: a new key could decrypt nothing, and would be kept in place of the lost one.
    """
    if not stored:
        return ""
    key = _given_key() or stored_key(_data_dir(), SECRETS)
    if key is None:
        raise Undecryptable
    try:
        plain = _fernet(key).decrypt(stored.encode()).decode()
    except InvalidToken:
        raise Undecryptable from None
    logs.never_show(plain)
    return plain


def _given_key() -> str:
    """That of ENCRYPTION_KEY."""
    return str(settings.CONFIG.encryption_key)


def _data_dir() -> Path:
    return Path(settings.DATA_DIR)


def _fernet(key: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))
