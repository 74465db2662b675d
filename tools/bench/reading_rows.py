"""Rows of every upload format, for the reading and importing benchmarks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "问题", "与", "参考答案")
FAULTY_SHARE = 0.3


def words(number: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(number))


def asked(number: int) -> Row:
    message = {"role": "user", "content": f"question {number} {words(20)}"}
    return {"id": number, "messages": [message], "ref_answer": words(3)}


def answered(number: int, length: int = 12) -> Row:
    outputs = [{"model_name": name, "responses": [{"content": words(length)}]} for name in ("alpha", "beta")]
    return {**asked(number), "model_outputs": outputs}


def ordinary(number: int) -> Row:
    """A row of about 1 KB: two models' answers and a nested field."""
    return {**answered(number, 80), "tags": {"level": number % 3, "subjects": ["a", "b"]}}


def with_response_fields(number: int) -> Row:
    """Answers as servers return them, with usage, finish reason and latency."""
    row = ordinary(number)
    for output in row["model_outputs"]:
        usage = {"prompt_tokens": number % 97, "completion_tokens": 80}
        more = {"finish_reason": "stop", "usage": usage, "latency": number / 7}
        output["responses"][0] |= {"reasoning_content": words(10), **more}
    return row


def with_calls(number: int) -> Row:
    """A conversation with a tool call and a question in several content parts."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "look", "arguments": '{"at": 1}'},
    }
    row = ordinary(number)
    row["messages"] = [
        {"role": "system", "content": "Use the tools."},
        {
            "role": "user",
            "content": [{"type": "text", "text": words(10)}, {"type": "text", "text": f" {number}"}],
        },
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": words(5)},
        {"role": "user", "content": words(5), "name": "reader"},
    ]
    row["model_outputs"][1]["responses"][0] = {"content": None, "tool_calls": [call]}
    return row


def legacy(number: int) -> Row:
    return {"conversation": [{"prompt": f"question {number} {words(20)}", "response": words(20)}]}


def invalid(number: int) -> Row:
    """Like `ordinary`, but 30 % of the rows have one fault."""
    row = ordinary(number)
    if random.random() < FAULTY_SHARE:
        random.choice(_FAULTS)(row)
    return row


def _no_role(row: Row) -> None:
    del row["messages"][0]["role"]


def _no_text(row: Row) -> None:
    row["model_outputs"][0]["responses"][0]["content"] = 7


def _no_outputs(row: Row) -> None:
    del row["model_outputs"]


def _blank_answer(row: Row) -> None:
    row["model_outputs"][0]["responses"][0]["content"] = "  "


_FAULTS = (_no_role, _no_text, _no_outputs, _blank_answer)

KINDS: dict[str, Callable[[int], Row]] = {
    "small judge-only rows": answered,
    "judge-only rows of 1 KB": ordinary,
    "infer rows": asked,
    "rows with fields in responses": with_response_fields,
    "rows with tool calls and parts": with_calls,
    "legacy rows": legacy,
    "rows of which 30 % are invalid": invalid,
}


def write_rows(path: Path, make: Callable[[int], Row], count: int) -> None:
    random.seed(7)
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps(make(number), ensure_ascii=False) + "\n")
