"""Reads the zip of an evidence file: its members, compared with the SHA-256 in its manifest.

Members are read in memory, one at a time, and never unpacked to a folder, so neither a name nor a link leads out of it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from datasets.core.imports.archives import Archive, is_archive_with
from datasets.core.imports.model import NotUsable, SourceFile
from datasets.core.limits import MEBIBYTE, Limits, holds_more_values

FORMAT = "evalsite-evidence-1"
MANIFEST, SIGNATURE = "manifest.json", "signature.json"
PART_BYTES = 32 * MEBIBYTE
"""Lines are split into members of about this size, so that each can be read in memory."""
DOCUMENT_BYTES = 64 * MEBIBYTE
"""Limit for a member, which is parsed in memory."""
MOST_VALUES = 2_000_000
"""Limit for the values in a JSON text, which take many times its size in memory."""


class EvidenceZip:
    """The members of an evidence file. Raises NotUsable with the code no_evidence, or too_large_unpacked beyond the
    limits."""

    def __init__(self, file: SourceFile, limits: Limits) -> None:
        self._name = file.name
        try:
            self._archive = Archive(file, limits)
        except NotUsable as error:
            raise self._refusal(error) from None
        try:
            self.manifest = self.read(MANIFEST)
            self.files, self.version = _manifest_of(self.manifest, file.name)
        except NotUsable:
            self.close()
            raise
        self.broken = self._other_names()
        """Members that are not as the manifest says: {name: (its hash in the manifest, the hash computed)}."""

    def close(self) -> None:
        self._archive.close()

    def holds(self, name: str) -> bool:
        return name in self._archive.names

    def read(self, name: str) -> bytes:
        """A member that no hash is known of."""
        try:
            return self._archive.read(name, DOCUMENT_BYTES)
        except NotUsable as error:
            raise self._refusal(error) from None

    def check(self) -> None:
        """Compare every member with its hash, and add those that differ to `broken`."""
        for name in self.files:
            if name not in self.broken:
                self.content(name)

    def content(self, name: str) -> bytes | None:
        """A member's content; None if it is damaged."""
        try:
            content = self._archive.read(name, DOCUMENT_BYTES)
        except NotUsable as error:
            if error.code != "archive_broken":
                raise self._refusal(error) from None
            self.broken[name] = self.files[name], None
            return None
        computed = hashlib.sha256(content).hexdigest()
        if computed != self.files[name]:
            self.broken[name] = self.files[name], computed
        return content

    def document(self, name: str) -> Any:
        """A member as JSON. Raises ValueError if it is missing or is no JSON."""
        content = self.content(name) if name in self.files else None
        if content is None:
            raise ValueError(f"{name} cannot be read")
        return parsed(content)

    def lines(self, name: str) -> Iterator[Any]:
        """The records of JSON lines, over all their members. Raises ValueError."""
        for part in sorted(part for part in self.files if part.startswith(f"{name}/")):
            content = self.content(part)
            if content is None:
                raise ValueError(f"{part} cannot be read")
            for line in content.splitlines():
                yield parsed(line)

    def _other_names(self) -> dict[str, tuple[str | None, str | None]]:
        counts = Counter(self._archive.names)
        twice = {name for name, count in counts.items() if count > 1}
        names = set(counts) - {MANIFEST, SIGNATURE}
        wrong = names ^ set(self.files) | twice
        return {name: (self.files.get(name), None) for name in sorted(wrong)}

    def _refusal(self, error: NotUsable) -> NotUsable:
        too_large = error.code == "too_large"
        return NotUsable("too_large_unpacked" if too_large else "no_evidence", file=self._name)


def parsed(text: bytes) -> Any:
    """A JSON text. Raises ValueError, or RecursionError."""
    if holds_more_values(text, MOST_VALUES):
        raise ValueError("too many values")
    return json.loads(text)


def _manifest_of(content: bytes, name: str) -> tuple[dict[str, str], str]:
    """{member: SHA-256} and the version of the program."""
    try:
        manifest = parsed(content)
        if manifest["format"] != FORMAT:
            raise ValueError
        files = {str(member): str(entry["sha256"]) for member, entry in manifest["files"].items()}
        return files, str(manifest["version"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NotUsable("no_evidence", file=name) from None


def is_evidence(file: SourceFile) -> bool:
    """Whether the file is a zip with the manifest of an evidence file."""
    if not is_archive_with(file, MANIFEST):
        return False
    try:
        EvidenceZip(file, Limits()).close()
    except NotUsable:
        return False
    return True
