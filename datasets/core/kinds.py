"""Telling files that are no text at all by their first and last bytes."""

import re

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "pdf"),
    (b"\x89PNG\r\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old_office"),
    (b"{\\rtf", "rtf"),
    (b"7z\xbc\xaf\x27\x1c", "archive"),
    (b"Rar!\x1a\x07", "archive"),
    (b"BZh", "archive"),
    (b"\xfd7zXZ\x00", "archive"),
    (b"\x28\xb5\x2f\xfd", "archive"),
    (b"\x1f\x8b", "archive"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "parquet"),
    (b"SQLite format 3\x00", "sqlite"),
    (b"\xff\xfe\x00\x00", "utf32"),
    (b"\x00\x00\xfe\xff", "utf32"),
)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"xl/", "spreadsheet"),
    (b"opendocument.spreadsheet", "spreadsheet"),
    (b"word/", "document"),
    (b"opendocument.text", "document"),
    (b"ppt/", "document"),
)
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*<(?:\?xml|[A-Za-z])", re.IGNORECASE)

SNIFFED_BYTES = 8192


def other_kind(head: bytes, tail: bytes) -> str | None:
    """A short name of what a file is if it cannot be an upload, from its first and last kilobytes; else None."""
    if head.startswith(_ZIP):
        return next((name for mark, name in _ZIP_MEMBERS if mark in head or mark in tail), "archive")
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "archive"
    if not head.startswith((b"\xff\xfe", b"\xfe\xff")) and _is_unmarked_utf16(head):
        return "utf16"
    text = head.removeprefix(b"\xef\xbb\xbf")
    if _HTML.match(text):
        return "html"
    return "xml" if _XML.match(text) else None


def _is_unmarked_utf16(head: bytes) -> bool:
    """Every other byte NUL wherever a sign of JSON or CSV stands, and no NUL between: half a character each."""
    first, second = head[::2].count(0), head[1::2].count(0)
    return min(first, second) == 0 and max(first, second) >= max(8, len(head) // 16)
