"""promptfoo's CSV: the variables of a test, then the answer of each prompt and provider with its verdict.

The header names provider and prompt as `[provider] prompt`; the prompt is the template, without its variables. Verdict
columns follow. In older releases the verdict is in the answer's cell: `[PASS] (1.00)`, the answer, `Pass Reason: …`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets.core.imports.chat import chat
from datasets.core.imports.columns import number
from datasets.core.imports.model import BrokenRecord, Note, NotUsable, Place, SourceFile
from datasets.core.imports.tables import SourceTable, csv_table, first_header
from datasets.core.limits import Limits

_HEAD = re.compile(r"\[([^\]\n]+)\] (.*)", re.DOTALL)
_VERDICT = re.compile(r"(Status|Score|Named Scores|Metric: .*|Grader Reason|Comment)(?: \(\d+\))?", re.DOTALL)
_OLD = re.compile(
    r"\[(PASS|FAIL|ERROR)\] \((-?[\d.]+|undefined)(?:, ([^\n]*))?\)(?:\n\n(.*?))?(?:\n\n(?:Pass|Fail) Reason: (.*))?",
    re.DOTALL,
)
_FILE = re.compile(r"[\w./\\-]+\.(?:txt|md|json|ya?ml|j2|js|ts|py|csv)(?::\w+)?: ")
"""Precedes a template that was read from a file."""
_VARIABLE = re.compile(r"\{\{-?\s*([\w.]+)\s*-?\}\}")


@dataclass(frozen=True, slots=True)
class _Output:
    """An answer's column, its provider and template, and {kind: column} of its verdict."""

    column: str
    provider: str
    template: str
    verdict: Mapping[str, str]


def is_table(file: SourceFile) -> bool:
    """Recognise by the header; for the older form also by the first record."""
    header = first_header(file)
    outputs = [number for number, name in enumerate(header) if _HEAD.fullmatch(name)]
    if any(header[number + 1 : number + 3] == ["Status", "Score"] for number in outputs):
        return True
    if not outputs:
        return False
    try:
        first = next(csv_table(file, Limits()).records(), None)
    except NotUsable:
        return False
    if first is None or isinstance(first[1], BrokenRecord):
        return False
    cells = list(first[1].values())
    return any(_OLD.fullmatch(str(cells[number])) for number in outputs if number < len(cells))


def _opened(file: SourceFile, limits: Limits) -> tuple[SourceTable, list[_Output], list[str]]:
    """The table, the answers in it, and the columns of the variables."""
    table = csv_table(file, limits)
    outputs = _outputs(first_header(file), table.columns)
    named = {name for output in outputs for name in (output.column, *output.verdict.values())}
    return table, outputs, [name for name in table.columns if name not in named]


def results(file: SourceFile, limits: Limits) -> Iterator[tuple[Place, dict[str, Any] | BrokenRecord]]:
    """Convert each answer to a result of the JSON export, as far as the table has its data."""
    table, outputs, variables = _opened(file, limits)
    for line, record in table.records():
        place = Place(file.name, line)
        if isinstance(record, BrokenRecord):
            yield place, record
            continue
        values = {name: record.get(name, "") for name in variables}
        described = values.pop("Description", "")
        for output in outputs:
            yield place, _result(output, record, values, described)


def table_notes(file: SourceFile) -> list[Note]:
    """What the columns become."""
    _table, outputs, variables = _opened(file, Limits())
    judged = any(output.verdict for output in outputs)
    return [
        Note("messages", "[provider] prompt"),
        Note("model", "[provider]"),
        *(Note("field", name) for name in variables),
        Note("answer", "[provider] prompt"),
        Note("verdict", "Score" if judged else "[PASS] (1.00)"),
        Note("comment", "Grader Reason, Named Scores, Comment" if judged else "Pass Reason, Fail Reason"),
        *([Note("left_out", "Status, Metric: …")] if judged else []),
    ]


def _outputs(header: Sequence[str], columns: Sequence[str]) -> list[_Output]:
    """`header` as written, `columns` as named by the table."""
    outputs = []
    for index, (written, column) in enumerate(zip(header, columns, strict=False)):
        head = _HEAD.fullmatch(written)
        if head is None:
            continue
        verdict = {}
        for name in columns[index + 1 :]:
            of = _VERDICT.fullmatch(name)
            if of is None or of[1] in verdict:
                break
            verdict[of[1]] = name
        outputs.append(_Output(column, head[1], _FILE.sub("", head[2], count=1), verdict))
    return outputs


def _result(
    output: _Output, record: Mapping[str, Any], variables: Mapping[str, Any], described: Any
) -> dict[str, Any]:
    text = str(record.get(output.column) or "")
    verdict = {name: str(record.get(column) or "") for name, column in output.verdict.items()}
    if not output.verdict and (old := _OLD.fullmatch(text)):
        status, score, named, text, reason = (part or "" for part in old.groups())
        verdict = {"Status": status, "Score": score, "Named Scores": named, "Grader Reason": reason}
    status, score, reason = (verdict.pop(name, "") for name in ("Status", "Score", "Grader Reason"))
    more = [f"{name}: {text}" for name, text in verdict.items() if text and not name.startswith("Metric: ")]
    failed = status == "ERROR" or not text.strip()
    return {
        **{name: said for name, said in verdict.items() if name.startswith("Metric: ")},
        "prompt": _question_messages(output.template, variables),
        "provider": output.provider,
        "vars": dict(variables),
        "testCase": {"description": described} if described else {},
        "error": (text or reason) if failed else None,
        "response": None if failed else {"output": text},
        "gradingResult": {"score": number(score), "reason": "\n".join([reason, *more]).strip()},
    }


def _question_messages(template: str, variables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Fill the variables into the prompt; if it uses none, it is a label and the variables are the question."""
    if not any(name in variables for name in _VARIABLE.findall(template)):
        texts = [str(value) for value in variables.values() if str(value or "").strip()]
        return [{"role": "user", "content": "\n\n".join(texts) or template}]

    def value(match: re.Match[str]) -> str:
        return str(variables.get(match[1], match[0]))

    messages, _dropped = chat(template)
    return [message | {"content": _VARIABLE.sub(value, message["content"])} for message in messages]
