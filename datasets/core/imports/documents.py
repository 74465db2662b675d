"""Reads a file that is a single JSON object: its first bytes for recognition, or its whole text up to a limit."""

from contextlib import closing, suppress
from typing import Any, TypeVar

import msgspec

from datasets.core.decode import Unreadable, encoding_of, utf8_chunks
from datasets.core.imports.model import NotUsable, SourceFile
from datasets.core.json_errors import MAX_DEPTH
from datasets.core.limits import MEBIBYTE, Limits

DOCUMENT_BYTES = 512 * MEBIBYTE
"""Larger documents are rejected, as the whole document is held in memory."""
UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError)
_BEGINNING = 64 * 1024

Kind = TypeVar("Kind")


def beginning(file: SourceFile) -> bytes:
    """The first kilobytes, decompressed; b'' if the file is not text."""
    found = b""
    with closing(file.upload()) as upload, suppress(Unreadable):
        if upload.other_kind():
            return b""
        for chunk in upload.chunks():
            found += chunk
            if len(found) >= _BEGINNING:
                break
    return found[:_BEGINNING].removeprefix(b"\xef\xbb\xbf").lstrip()


def document(file: SourceFile, limits: Limits) -> bytes:
    """The whole file in UTF-8. Raises NotUsable."""
    found = bytearray()
    with closing(file.upload(limits)) as upload:
        try:
            for chunk in utf8_chunks(upload, encoding_of(upload)):
                found += chunk
                if len(found) > DOCUMENT_BYTES:
                    raise NotUsable("too_large", file=file.name)
        except Unreadable as trouble:
            raise NotUsable("unreadable", finding=trouble.found.code, file=file.name) from None
    return bytes(found)


def decoded(text: bytes, kind: type[Kind], file: SourceFile) -> Kind:
    """Decode only the parts of a document that `kind` declares. Raises NotUsable."""
    try:
        return msgspec.json.decode(text, type=kind)
    except UNDECODED:
        raise NotUsable("json_broken", file=file.name) from None


def is_deep(value: Any) -> bool:
    """Whether lists and objects are nested more deeply than rows may be."""
    level = [value]
    for _depth in range(MAX_DEPTH):
        held = (one.values() if isinstance(one, dict) else one for one in level)
        level = [child for children in held for child in children if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def value_of(raw: msgspec.Raw) -> Any:
    """Decode one part of a document; None if it is invalid or too deep."""
    try:
        return msgspec.json.decode(raw)
    except UNDECODED:
        return None
