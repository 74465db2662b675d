"""How much of a file is read at all."""

from dataclasses import dataclass

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond these a file or a row is refused with a finding; bytes are those of a packed file twice."""

    file_bytes: int = 4096 * MEBIBYTE
    unpacked_bytes: int = 4096 * MEBIBYTE
    row_bytes: int = 16 * MEBIBYTE
    row_values: int = 1_000_000
    rows: int = 5_000_000
