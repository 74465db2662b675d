"""Recognises files that are not text by their first and last bytes."""

import codecs
import re

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"!<arch>\n", "archive"),
    (b"\x04\x22\x4d\x18", "archive"),
    (b"OggS\x00", "media"),
    (b"ID3\x03", "media"),
    (b"ID3\x04", "media"),
    (b"II*\x00", "image"),
    (b"MM\x00*", "image"),
    (b"\x93NUMPY", "numpy"),
    (b"\x89HDF\r\n", "binary"),
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
_COMMENTS = rb"\s*(?:<!--.*?-->\s*)*"
_HTML = re.compile(
    _COMMENTS
    + rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|div|table|p|br|h[1-6]|a|span)\b",
    re.IGNORECASE | re.DOTALL,
)
_XML = re.compile(_COMMENTS + rb"<[?!A-Za-z]", re.DOTALL)
_CONTROL = bytes(code for code in range(0x20) if code not in b"\t\n\r\f\x1b")
_MOST_CONTROL = 0.03
"""Highest share of control characters in text; in random bytes it is about a ninth."""

SNIFFED_BYTES = 8192
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def other_kind(head: bytes, tail: bytes) -> str | None:
    """The kind of a file that cannot be an upload, from its first and last kilobytes; None if it may be one."""
    if head.startswith(_ZIP):
        return next((name for mark, name in _ZIP_MEMBERS if mark in head or mark in tail), "archive")
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "archive"
    text = head.removeprefix(b"\xef\xbb\xbf")
    if _HTML.match(text):
        return "html"
    if _XML.match(text):
        return "xml"
    if head[4:8] == b"ftyp" or (head.startswith(b"RIFF") and head[8:12] in (b"WAVE", b"AVI ")):
        return "media"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image"
    return "binary" if _is_binary(head) else None


def _is_binary(head: bytes) -> bool:
    """Whether the bytes are neither UTF-8 nor UTF-16 and contain many control characters."""
    if head.startswith(UTF16_MARKS) or is_unmarked_utf16(head) or _is_utf8(head):
        return False
    control = len(head) - len(head.translate(None, _CONTROL))
    return control >= 8 and control > _MOST_CONTROL * len(head)


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def is_unmarked_utf16(head: bytes) -> bool:
    """Whether this is UTF-16 without its mark: NULs, of ASCII characters, mostly at even or mostly at odd positions."""
    if b"\0" not in head or head.startswith(UTF16_MARKS):
        return False
    even, odd = head[::2].count(0), head[1::2].count(0)
    most, every = max(even, odd), len(head) // 2
    if 4 * min(even, odd) > most or most < min(every, max(8, len(head) // 16)):
        return False
    try:
        codecs.getincrementaldecoder("utf-16-le" if odd > even else "utf-16-be")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
