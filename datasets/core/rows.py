"""One row as it stands in an upload."""

import msgspec
from msgspec import Raw, Struct


class _RawOutput(Struct):
    model_name: str
    responses: list[Raw]


_decode_top = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_outputs = msgspec.json.Decoder(list[_RawOutput]).decode


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
        if not self.valid:
            return ""
        if b"model_outputs" not in self.json:
            return self.json.strip().decode()
        top = _decode_top(self.json)
        top.pop("model_outputs", None)
        return msgspec.json.encode(top).decode()

    @property
    def responses(self) -> tuple[tuple[str, int, str], ...]:
        """(model name, index from 1, JSON of the response) of every uploaded answer; () of a row with errors."""
        if not self.valid or b"model_outputs" not in self.json:
            return ()
        outputs = _decode_top(self.json).get("model_outputs")
        return tuple(
            (output.model_name, index, bytes(response).decode())
            for output in (_decode_outputs(outputs) if outputs is not None else ())
            for index, response in enumerate(output.responses, 1)
        )
