"""The encodings of other tools' files: which are known, and what was only guessed."""

import codecs
from collections.abc import Sequence

from datasets.core.decode import is_guess, text_encoding
from datasets.core.file_kinds import UTF16_MARKS
from datasets.core.imports.model import Imported, Place, SourceFile
from datasets.core.limits import Limits

OFFERED = (
    *("utf-8", "utf-16", "gb18030", "big5hkscs", "shift_jis", "cp932", "euc_jp", "euc_kr"),
    *("cp1252", "iso-8859-1", "iso-8859-15", "cp1250", "cp1251", "koi8-r", "mac_roman"),
)
"""The encodings that the page offers; the command takes any codec of Python for texts."""


def is_known(name: str) -> bool:
    """Whether this is the name of a text encoding."""
    try:
        "".encode(name)
        return codecs.lookup(name).name not in _NOT_OF_FILES
    except (LookupError, ValueError):
        return False


_NOT_OF_FILES = frozenset(
    ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "unicode-escape")
)


def encoding_seen(file: SourceFile, limits: Limits) -> str:
    """The encoding that a text file is read in; '' if it is not text. Raises NotUsable."""
    with file.upload(limits) as upload:
        return "" if upload.other_kind() else text_encoding(upload)


def is_guessed(file: SourceFile, encoding: str) -> bool:
    """Whether a file is read in this encoding though nothing in its bytes proves it, and nobody named it."""
    with file.upload() as upload:
        return not file.encoding and (
            is_guess(encoding) or (encoding == "utf-16" and not upload.head().startswith(UTF16_MARKS))
        )


def warn_of_encodings(files: Sequence[SourceFile], limits: Limits, imported: Imported) -> None:
    """Warn of each file whose bytes are decoded by a guess."""
    for file in files:
        encoding = encoding_seen(file, limits)
        if encoding and is_guessed(file, encoding):
            imported.leave_out(Place(file.name), "file.converted", encoding.upper())
