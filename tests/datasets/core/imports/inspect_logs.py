"""Inspect logs for tests."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from io import BytesIO
from typing import Any

import pyarrow as pa


def sample(name: str = "s1", epoch: int = 1, **changes: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"answer {epoch}", "source": "generate"}
    given = {
        "id": name,
        "epoch": epoch,
        "input": f"Question {name}?",
        "target": "A",
        "messages": [],
        "output": {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}]},
        "scores": {"match": {"value": "C", "answer": "A", "explanation": "It says A."}},
        "metadata": {"level": 3},
        "events": [{"event": "score"}],
    }
    return given | changes


def log(*samples: dict[str, Any], model: str = "openai/gpt-x", **header: Any) -> dict[str, Any]:
    started = {"task": "demo", "task_id": "t", "run_id": "r", "model": model}
    return {"version": 2, "status": "success", "eval": started, **header, "samples": list(samples)}


def archive(given: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The log as a zip archive, as in `.eval` files."""
    written = BytesIO()
    with zipfile.ZipFile(written, "w", method) as made:
        made.writestr("header.json", json.dumps({key: given[key] for key in given if key != "samples"}))
        for one in given["samples"]:
            made.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    return written.getvalue()


def packed_with_zstandard(plain: bytes) -> bytes:
    """Recompress a zip's entries with method 93 (Zstandard), as in newer logs."""
    entries, made, listed = zipfile.ZipFile(BytesIO(plain)), bytearray(), bytearray()
    for info in entries.infolist():
        text, name = entries.read(info), info.filename.encode()
        body = pa.Codec("zstd").compress(text, asbytes=True)
        common = struct.pack("<HHHHIII", 0, 93, 0, 0, zlib.crc32(text), len(body), len(text))
        listed += struct.pack("<IHH", 0x02014B50, 20, 20) + common
        listed += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, len(made)) + name
        made += struct.pack("<IH", 0x04034B50, 20) + common + struct.pack("<HH", len(name), 0) + name + body
    count = len(entries.infolist())
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(listed), len(made), 0)
    return bytes(made + listed + end)
