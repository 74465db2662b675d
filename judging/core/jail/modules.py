"""The modules that a script may import, and what else must be loaded while files can still be read."""

_IMPORTABLE = """
    __future__ abc array ast base64 binascii bisect calendar cmath collections collections.abc contextlib copy csv
    dataclasses datetime decimal difflib enum fractions functools hashlib heapq hmac html html.entities html.parser io
    itertools json json.decoder json.encoder keyword locale math numbers operator pprint random re reprlib secrets
    statistics string struct textwrap time token tokenize traceback types typing unicodedata urllib urllib.parse uuid
    warnings weakref xml xml.etree xml.etree.ElementTree zlib
"""
_ENCODINGS = """
    ascii latin-1 utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32 utf-7 gbk gb2312 gb18030 big5 shift_jis euc_jp
    euc_kr cp1252 cp437 idna punycode unicode_escape raw_unicode_escape hex base64 rot13 zlib
"""

IMPORTABLE = frozenset(_IMPORTABLE.split())
ENCODINGS = tuple(_ENCODINGS.split())

LAZY = (  # imported by the standard library itself, some of it from C
    "_strptime",
    "copyreg",
    "encodings.idna",
    "jinja2.debug",
    "linecache",
    "stringprep",
    "xml.parsers.expat",
)
