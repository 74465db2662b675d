"""Rows and files for the reader tests."""

import io
import json
from pathlib import Path
from typing import Any

from datasets.core.findings import Finding
from datasets.core.limits import Limits
from datasets.core.reader import Summary, read
from datasets.core.repair.apply import Repair, repair_file
from datasets.core.repair.kinds import WITHOUT_VALUE
from datasets.core.rows import RawRow

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


BLOCK = 200_000
FILLER = "x" * 1000


def many(fields: dict[str, Any], count: int = BLOCK // 1000) -> bytes:
    return jsonl(*({**fields, "id": number, "filler": FILLER} for number in range(count)))


# The judge-only example from the format documentation, verbatim.
PRINTED = """\
{
"messages":
[
{
"role": "user",
"content": "你好"
},
{
"role": "assistant",
"content": "你好,有什么可以帮助你"
},
{
"role": "user",
"content": "16+16等于几"
}
],
"ref_answer": "答案等于32",
"id": "141234314",
"max_tokens": 1024,
"temperature": 0.7,
"top_p": 0.9,
"top_k": 50,
"model_outputs": // 上方是原有数据集的字段
// 本字段用于记录各模型的输出,类型为列表,列表每个对象都包含
// model_name: 模型名
// responses: 该模型的输出
[
{
"model_name": "llama3",
"responses":
[
{
"content": "The answer is 32."
},
{
"content": "32 is the answer."
},
]
},
{
"model_name": "qwen3",
"responses":
[
{
"content": "The answer is 32.",
"reasoning_content": "Wait..."
},
{
"content": "The answer is 32.",
"reasoning_content": "Thinking..."
}
]
}
]
}
"""
DEFAULT = Limits().row_bytes


def repaired(folder: Path, source: bytes, *names: str, value: str = "", row_bytes: int = DEFAULT) -> bytes:
    before, after = folder / "before", folder / "after"
    before.write_bytes(source)
    chosen = names or WITHOUT_VALUE
    repairs = [Repair(name, value if name == "unify_model_names" else "") for name in chosen]
    repair_file(before, after, repairs, Limits(row_bytes=row_bytes))
    return after.read_bytes()
