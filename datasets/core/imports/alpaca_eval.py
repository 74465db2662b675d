"""AlpacaEval: `model_outputs.json` and `annotations.json`, several files."""

import json
from collections.abc import Sequence
from typing import Any

from datasets.core.imports.chat import content_of
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import first_record, first_records, value_at
from datasets.core.imports.model import Note, Place, SourceFile

METRIC = "preference"
_ROW_FIELDS = ("dataset", "datasplit")
_NOTES = (
    Note("question", "instruction"),
    Note("model", "generator"),
    Note("answer", "output"),
    Note("field", "dataset"),
    Note("verdict", "preference"),
    Note("left_out", "logprobs"),
)


def _is_output(record: Any) -> bool:
    return isinstance(record, dict) and {"instruction", "output", "generator"} <= record.keys()


def _is_annotation(record: Any) -> bool:
    needed = {"instruction", "output_1", "output_2", "preference"}
    return isinstance(record, dict) and needed <= record.keys()


def _is_either(record: Any) -> bool:
    return _is_output(record) or _is_annotation(record)


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    for file in files:
        graded = any(map(_is_graded, first_records(file)))
        for place, record in collector.records(file, _is_either):
            question = content_of(record["instruction"]).text
            if not question.strip():
                collector.leave_out(place, "no_question")
                continue
            about = fields({name: record[name] for name in _ROW_FIELDS if name in record}, "row")
            collector.row(question, {"messages": [{"role": "user", "content": question}]} | about, place)
            if _is_annotation(record):
                _annotation(collector, place, question, record, graded)
            else:
                _answer(collector, place, question, str(record["generator"]), record["output"])


def _answer(collector: Collector, place: Place, question: str, model: str, output: Any) -> int:
    return collector.same_answer(question, model, {"content": content_of(output).text}, place)


def _annotation(
    collector: Collector, place: Place, question: str, record: dict[str, Any], graded: bool
) -> None:
    models = [str(record.get(f"generator_{side}") or f"output_{side}") for side in (1, 2)]
    answers = [
        _answer(collector, place, question, model, record[f"output_{side}"])
        for side, model in enumerate(models, 1)
    ]
    verdict = {
        "model": models[0],
        "response": answers[0],
        "other_model": models[1],
        "other_response": answers[1],
        "metric": METRIC,
        "value": _value(record["preference"], graded),
        "judge": str(record.get("annotator") or "annotator"),
        "reasoning": _words(record),
        "seconds": _number(record.get("time_per_example")),
        "cost": _number(record.get("price_per_example")),
    }
    collector.verdict(question, verdict, place)


def _is_graded(record: Any) -> bool:
    """Whether the preference is not one of the values used by annotators without weights."""
    preference = record.get("preference") if _is_annotation(record) else None
    return isinstance(preference, float) and preference not in (0, 1, 1.5, 2)


def _value(preference: Any, graded: bool) -> str | None:
    """Convert a preference: 1 is for the first output, 2 for the second, 1.5 (formerly 0) is a draw.

    Weighted annotators return values in between, by confidence: with `graded`, the outer quarters are a clear
    preference.
    """
    if isinstance(preference, bool) or not isinstance(preference, int | float) or not 0 <= preference <= 2:
        return None
    if preference in (0, 1.5):
        return "A=B"
    clear = graded and abs(preference - 1.5) >= 0.25
    return ("A>>B" if clear else "A>B") if preference < 1.5 else ("B>>A" if clear else "B>A")


def _words(record: dict[str, Any]) -> str | None:
    """The annotator's text, followed by the preference as in the file."""
    completion = record.get("raw_completion")
    texts = (completion, value_at(completion, "message", "content"), value_at(completion, "text"))
    words = next((text for text in texts if isinstance(text, str)), "")
    return f"{words}\npreference: {json.dumps(record['preference'])}".strip()


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


SOURCE = tool("alpaca_eval", lambda file: _is_either(first_record(file)), _collect, _NOTES)
