"""Keys, and what is encrypted with them. Key files lie in DATA_DIR/keys, which only its owner (or group) can read."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets as random_source
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from evalsite import logs


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
    from django.conf import settings

    folder = data_dir / "keys"
    folder.mkdir(parents=True, exist_ok=True, mode=settings.DATA_FOLDER_MODE)
    draft = folder / f".{name}.{os.getpid()}"
    draft.touch(mode=settings.DATA_FILE_MODE)
    draft.write_text(new_key())
    try:
        os.link(draft, folder / name)  # fails if the other process was first
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return (folder / name).read_text().strip()


def encrypt(plain: str) -> str:
    """Encrypt for storing; '' stays ''."""
    return _fernet().encrypt(plain.encode()).decode() if plain else ""


def decrypt(stored: str) -> str:
    """The text that `encrypt` was given. Raises Undecryptable if the key is another one."""
    if not stored:
        return ""
    try:
        plain = _fernet().decrypt(stored.encode()).decode()
    except InvalidToken:
        raise Undecryptable from None
    logs.never_show(plain)
    return plain


def _fernet() -> Fernet:
    from django.conf import settings

    key = settings.CONFIG.encryption_key or make_key(settings.DATA_DIR, "secrets")
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))
