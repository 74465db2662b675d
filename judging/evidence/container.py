"""The zip of an evidence file as it is written: its members, a manifest of their SHA-256, and an Ed25519 signature of
the manifest. How it is read: datasets/core/imports/evidence_zip.py."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from datasets.core.imports.evidence_zip import FORMAT, MANIFEST, PART_BYTES, SIGNATURE, EvidenceZip, parsed
from datasets.core.imports.model import NotUsable

_DATE = (1980, 1, 1, 0, 0, 0)
_KEY_BYTES = 32


class BadKey(Exception):
    """A key that cannot be used; the message says why."""


class EvidenceWriter:
    """Writes members to a zip and remembers their hashes for the manifest."""

    def __init__(self, stream: IO[bytes], version: str) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)
        self._version = version
        self._files: dict[str, dict[str, Any]] = {}

    def add(self, name: str, content: bytes) -> None:
        self._files[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        self._write(name, content)

    def add_json(self, name: str, document: Any) -> None:
        self.add(name, json.dumps(document, allow_nan=False, indent=1).encode())

    def add_lines(self, name: str, records: Iterable[Any]) -> None:
        """Add records as JSON lines, in members `name/0001.jsonl` and so on; one, if there are none."""
        lines, size, part = list[bytes](), 0, 1
        for record in records:
            line = json.dumps(record, allow_nan=False).encode() + b"\n"
            if lines and size + len(line) > PART_BYTES:
                self.add(f"{name}/{part:04}.jsonl", b"".join(lines))
                lines, size, part = [], 0, part + 1
            lines.append(line)
            size += len(line)
        self.add(f"{name}/{part:04}.jsonl", b"".join(lines))

    def finish(self, key: Ed25519PrivateKey | None = None) -> None:
        """Add the manifest and its signature, and close the zip."""
        manifest = {"format": FORMAT, "version": self._version, "files": self._files}
        content = json.dumps(manifest, indent=1).encode()
        self._write(MANIFEST, content)
        if key is not None:
            signature = {
                "algorithm": "ed25519",
                "public_key": base64.b64encode(raw_key(key.public_key())).decode(),
                "signature": base64.b64encode(key.sign(content)).decode(),
            }
            self._write(SIGNATURE, json.dumps(signature, indent=1).encode())
        self._zip.close()

    def _write(self, name: str, content: bytes) -> None:
        info = zipfile.ZipInfo(name, _DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, content)


@dataclass(frozen=True, slots=True)
class Signed:
    """A file's signature. `key`: the fingerprint of the key in it; None without a signature, or if it is unreadable."""

    present: bool
    valid: bool = False
    key: str | None = None
    public: bytes = b""


class Evidence(EvidenceZip):
    """An evidence file with its signature, read within the limits of uploads. See EvidenceZip."""

    def signature(self) -> Signed:
        if not self.holds(SIGNATURE):
            return Signed(present=False)
        try:
            signature = parsed(self.read(SIGNATURE))
            public = base64.b64decode(signature["public_key"], validate=True)
            key = Ed25519PublicKey.from_public_bytes(public)
        except (NotUsable, ValueError, KeyError, TypeError, RecursionError):
            return Signed(present=True)
        try:
            key.verify(base64.b64decode(signature["signature"], validate=True), self.manifest)
        except (InvalidSignature, ValueError, KeyError, TypeError):
            return Signed(present=True, key=fingerprint(public), public=public)
        return Signed(present=True, valid=True, key=fingerprint(public), public=public)


def raw_key(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def fingerprint(public: bytes) -> str:
    return "SHA256:" + hashlib.sha256(public).hexdigest()


def private_key(path: Path) -> Ed25519PrivateKey:
    """The Ed25519 key in a PEM file. Raises BadKey."""
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey(f"{path} holds no unencrypted private key in PEM form.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(f"The key in {path} is not an Ed25519 key.")
    return key


def public_key(text: str) -> bytes:
    """The raw public key named by a user: a PEM file, or the key as hexadecimal or Base64 text. Raises BadKey."""
    path = Path(text)
    if len(text) < 4096 and path.is_file():
        try:
            key = load_pem_public_key(path.read_bytes())
        except (OSError, ValueError, UnsupportedAlgorithm):
            return public_key(_text_in(path))
        if not isinstance(key, Ed25519PublicKey):
            raise BadKey(f"The key in {text} is not an Ed25519 key.")
        return raw_key(key)
    for decode in (bytes.fromhex, base64.b64decode):
        try:
            raw = decode(text.strip())
        except (ValueError, binascii.Error):
            continue
        if len(raw) == _KEY_BYTES:
            return raw
    raise BadKey(
        f"{text[:80]} is neither a file with an Ed25519 public key nor the key in hexadecimal or Base64."
    )


def _text_in(path: Path) -> str:
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise BadKey(f"{path} holds no Ed25519 public key.") from None
    if Path(text.strip()).is_file():
        raise BadKey(f"{path} holds no Ed25519 public key.")
    return text.strip()
