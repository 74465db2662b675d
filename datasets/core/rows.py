"""One row as it stands in an upload, and as it is kept."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType


class _Outputs(Struct):
    model_outputs: Raw | UnsetType = UNSET


class _Output(Struct):
    model_name: str
    responses: list[Raw]


Answers = tuple[tuple[str, int, str], ...]
Pieces = tuple[bytes, list[tuple[str, int, bytes]]]

_KEY = b'"model_outputs"'
_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_key = msgspec.json.Decoder(_Outputs).decode
_decode_outputs = msgspec.json.Decoder(list[_Output]).decode


class NewRow(Struct, frozen=True, gc=False):
    """A row as it is kept: of a valid one JSON without its answers, of a bad one the text that was met, all in UTF-8.

    `answers` are (model name, number from 1 within row and model, JSON).
    """

    line: int
    valid: bool
    raw: bytes
    answers: Sequence[tuple[str, int, bytes]] = ()


Part = tuple[list[NewRow], int]
"""Some rows, and how many bytes of the upload they were made of."""


class RawRow(Struct, frozen=True, gc=False):
    """One row as it stands in the upload: `source` is its bytes in UTF-8, `json` the same unless it was CSV."""

    line: int
    valid: bool
    source: bytes
    json: bytes

    @property
    def raw(self) -> str:
        """The upload's own text of the row (of an oversized one only the beginning)."""
        return self.source.decode("utf-8", "replace")

    @property
    def data(self) -> str:
        """JSON of the row without `model_outputs`, custom fields byte for byte; '' of a row with errors."""
        return self.parts[0]

    @property
    def responses(self) -> Answers:
        """(model name, index from 1, JSON of the response) of every uploaded answer; () of a row with errors."""
        return self.parts[1]

    @property
    def parts(self) -> tuple[str, Answers]:
        """`data` and `responses` together, which costs little more than one of them."""
        data, answers = self.pieces
        return data.decode(), tuple((model, index, raw.decode()) for model, index, raw in answers)

    @property
    def pieces(self) -> Pieces:
        """The same in UTF-8, as they stand in the upload; a CSV's column of that name holds no answers."""
        if not self.valid:
            return b"", []
        return cut(self.json) if self.json is self.source else (self.json, [])

    @property
    def kept(self) -> NewRow:
        """The row as it is kept; a text that is stored holds no NUL."""
        if self.valid:
            return NewRow(self.line, True, *self.pieces)
        return NewRow(self.line, False, self.raw.replace("\0", "\N{REPLACEMENT CHARACTER}").encode())


def cut(line: bytes, keys: Sequence[str] = ()) -> Pieces:
    """A valid row's JSON without its answers, and these, wherever they stand in it.

    It is faster where the row's `keys` are known.
    """
    before, key, after = line.strip().partition(_KEY)
    if not key and not escaped(line):
        return before, []
    if after.endswith(b"]}"):
        try:
            return _cut_from_the_end(before, after)
        except msgspec.DecodeError:
            pass  # it is not the row's last key, or not the row's own
    elif keys and not (_KEY in after or escaped(line)):
        try:
            return _cut_before(before, after, keys[keys.index("model_outputs") + 1].encode())
        except (msgspec.DecodeError, IndexError):
            pass  # the next key stands in its value too
    outputs = _decode_key(line).model_outputs
    if outputs is UNSET:
        return line.strip(), []
    return _cut(line, before, after, bytes(outputs)), _answers(outputs)


def _cut_from_the_end(before: bytes, after: bytes) -> Pieces:
    """Of a row in which the key stands between these two; raises msgspec.DecodeError if its value is not the last.

    The brace that ends a row ends the row's own object: a key whose value is all that stands before it is the row's.
    """
    if not after.startswith(b":") or before.endswith(b"\\"):
        raise msgspec.DecodeError
    answers = _answers(after[1:-1])
    before = before.rstrip()
    return (before[:-1].rstrip() if before.endswith(b",") else before) + b"}", answers


def _cut_before(before: bytes, after: bytes, following: bytes) -> Pieces:
    """Of a row that holds the key once, between these two; raises msgspec.DecodeError if the next key is not found.

    What decodes whole from the value's beginning on is the value: where an array ends is certain.
    """
    value, quote, rest = after.rpartition(b'"' + following + b'"')
    ended = value.rstrip()
    if not quote or not ended.endswith(b","):
        raise msgspec.DecodeError
    answers = _answers(ended.lstrip(b" \t\r\n")[1:-1])
    return _joined(before, value[len(ended) - 1 :] + quote + rest), answers


def _answers(outputs: bytes | Raw) -> list[tuple[str, int, bytes]]:
    return [
        (output.model_name, index, bytes(response))
        for output in _decode_outputs(outputs)
        for index, response in enumerate(output.responses, 1)
    ]


def _cut(line: bytes, before: bytes, after: bytes, outputs: bytes) -> bytes:
    """The row without the key, whose value is `outputs`; written anew where its place is not beyond doubt.

    It stands between `before` and `after` if that value follows there and the key nowhere later, nor with escapes.
    """
    value = after.lstrip(b" \t\r\n")[1:].lstrip(b" \t\r\n")
    rest = value[len(outputs) :].lstrip()
    if not value.startswith(outputs) or _KEY in rest or escaped(before) or escaped(rest):
        top = _decode_top(line)
        top.pop("model_outputs", None)
        return msgspec.json.encode(top)
    return _joined(before, rest)


def _joined(before: bytes, rest: bytes) -> bytes:
    """What stands before the key and after its value, with one comma less."""
    before = before.rstrip()
    if before.endswith(b","):
        return before[:-1].rstrip() + rest
    return before + rest.removeprefix(b",").lstrip()


def escaped(part: bytes) -> bool:
    """Whether a letter of a key may be written as an escape. Looking for one byte first is fifty times as fast."""
    return b"\\" in part and b"\\u00" in part
