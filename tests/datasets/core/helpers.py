"""Rows and files for the tests of reading."""

import io
import json
from typing import Any

from datasets.core.findings import Finding
from datasets.core.limits import Limits
from datasets.core.reader import RawRow, Summary, read

USER = {"role": "user", "content": "How many?"}
ANSWER = {"model_name": "lark", "responses": [{"content": "Four."}]}


def row(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER], **fields}


def judged(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER], "model_outputs": [ANSWER], **fields}


def turns(**fields: Any) -> dict[str, Any]:
    return {"conversation": [{"prompt": "How many?", "response": "Four."}], **fields}


def jsonl(*rows: Any) -> bytes:
    lines = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def summary(source: bytes, limits: Limits | None = None, **options: Any) -> Summary:
    return read(io.BytesIO(source), limits=limits, **options).summary


def rows(source: bytes, **options: Any) -> list[RawRow]:
    return list(read(io.BytesIO(source), **options))


def found(source: bytes, code: str) -> list[Finding]:
    return [one for one in summary(source).findings if one.code == code]


def codes(source: bytes) -> dict[str, int]:
    return summary(source).counts
