"""Benchmarks of the rule language: parsing a long program; scoring 100,000 answers with lines that need no model."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from judging.core.rules.check import read_program
from tools.bench import Figure, command_line
from tools.bench.engine import evaluate

ANSWERS, MOST_SECONDS = 100_000, 10.0
LINES, MOST_MILLISECONDS = 200, 5.0
PROGRAM = (
    "# DSL\n标签:精确匹配\n主题:字数限制:(2, 60)\n主题:精确全包括\n年份:常量不等于:0\n"
    "@聚合方式:mean\n@格式限制:JSON\n"
)
_FUNCTIONS = (
    "精确匹配",
    "length:(20, 60)",
    "常量等于:喜剧",
    "contains",
    "自然语言规则:规则1",
    "Python代码:代码1",
)
_BLOCKS = (
    "<规则1>\n意思接近即可得 5 分。\n</规则1>\n"
    "<代码1>\ndef score(ref_answer, model_answer):\n    return 5 if ref_answer == model_answer else 1\n</代码1>\n"
)


def rules_figures() -> Iterator[Figure]:
    spent = min(_seconds_to_read(_long_program()) for _ in range(20)) * 1000
    name = f"processor time to read a program of {LINES} lines, ms"
    yield Figure.at_most(name, spent, MOST_MILLISECONDS, "the least of 20")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = folder / "rows.jsonl"
        _write_answers(rows)
        measured = evaluate(folder, folder / "data", "", rows, "rules", rules=PROGRAM)
    rate = f"{measured.judgements / measured.seconds:,.0f}/s"
    detail = f"{rate}; processor time with import and report {measured.cpu:.1f} s"
    name = f"seconds for {ANSWERS:,} answers by four rule lines that need no model, stored"
    yield Figure.at_most(name, measured.seconds, MOST_SECONDS, detail)


def _seconds_to_read(text: str) -> float:
    began = time.process_time()
    assert read_program(text).program is not None
    return time.process_time() - began


def _long_program() -> str:
    blocks = _BLOCKS.count("\n")
    lines = [f"字段{n}:{_FUNCTIONS[n % len(_FUNCTIONS)]}" for n in range(LINES - blocks - 2)]
    return "\n".join(["# DSL", *lines, f"@格式限制:JSON\n{_BLOCKS}"])


def _write_answers(path: Path) -> None:
    reference = {"标签": "电影", "主题": "一部融合了未来科技和人类情感的科幻巨作", "年份": 2024}
    with path.open("w") as file:
        for number in range(ANSWERS):
            answer = json.dumps({**reference, "年份": number}, ensure_ascii=False)
            outputs = [{"model_name": "alpha", "responses": [{"content": answer}]}]
            messages = [{"role": "user", "content": f"标注第 {number} 段"}]
            row = {"messages": messages, "ref_answer": reference, "model_outputs": outputs}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in rules_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
