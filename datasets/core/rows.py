"""One row as it stands in an upload, and as it is kept."""

import re
from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType


class _Outputs(Struct):
    model_outputs: Raw | UnsetType = UNSET


class _ModelAnswers(Struct):
    model_name: str
    responses: list[Raw]


Answers = tuple[tuple[str, int, str], ...]
Pieces = tuple[bytes, list[tuple[str, int, bytes]]]

_KEY = b'"model_outputs"'
_ESCAPED_LETTER = re.compile(rb"\\u00[567]")  # of the key, maybe; none that is no ASCII
_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_key = msgspec.json.Decoder(_Outputs).decode
_decode_outputs = msgspec.json.Decoder(list[_ModelAnswers]).decode


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
        return self.kept.raw.decode() if self.valid else ""

    @property
    def responses(self) -> Answers:
        """(model name, index from 1, JSON of the response) of every uploaded answer; () of a row with errors."""
        return tuple((model, index, raw.decode()) for model, index, raw in self.kept.answers)

    @property
    def kept(self) -> NewRow:
        """The row as it is kept; a text that is stored holds no NUL. A CSV's `model_outputs` holds no answers."""
        if not self.valid:
            return NewRow(self.line, False, self.raw.replace("\0", "\N{REPLACEMENT CHARACTER}").encode())
        return NewRow(self.line, True, *(cut(self.json) if self.json is self.source else (self.json, ())))


def cut(line: bytes) -> Pieces:
    """A valid row's JSON without its answers, and these, wherever they stand in it.

    Its top is written anew where the key's place is not beyond doubt; every value stays as it was spelt.
    """
    line = line.strip()
    if _KEY not in line and not _ESCAPED_LETTER.search(line):
        return line, []
    before, _, after = line.partition(_KEY)
    if after.endswith(b"]}") and after.startswith(b":"):
        # The last brace ends the row's own object: a list that fills all from the key to it is the row's last value.
        try:
            return _without_comma(before.rstrip(), b"}"), _answers(after[1:-1])
        except msgspec.DecodeError:
            pass
    outputs = _decode_key(line).model_outputs
    if outputs is UNSET:
        return line, []
    if _KEY in after or _ESCAPED_LETTER.search(line):
        top = _decode_top(line)
        del top["model_outputs"]
        return msgspec.json.encode(top), _answers(outputs)
    rest = after.lstrip(b" \t\r\n:")[len(bytes(outputs)) :].lstrip()
    return _without_comma(before.rstrip(), rest), _answers(outputs)


def _without_comma(before: bytes, rest: bytes) -> bytes:
    if before.endswith(b","):
        return before[:-1].rstrip() + rest
    return before + rest.removeprefix(b",").lstrip()


def _answers(outputs: bytes | Raw) -> list[tuple[str, int, bytes]]:
    return [
        (output.model_name, index, bytes(response))
        for output in _decode_outputs(outputs)
        for index, response in enumerate(output.responses, 1)
    ]
