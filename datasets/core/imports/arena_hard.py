"""Arena-Hard-Auto (v0.1 and v2.0): questions, model answers and judgments of two games each, in several files."""

from collections.abc import Sequence
from typing import Any, Literal

from datasets.core.imports.chat import chat, content_of
from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import first_record, list_at, value_at
from datasets.core.imports.model import Note, Place, SourceFile
from datasets.core.kinds import COMPARISON_CODES, turned

METRIC = "preference"
BASELINE = "gpt-4-0314"
"""The baseline of v0.1, whose judgments do not name it."""
_OF_QUESTION = ("question_id", "uid", "turns", "prompt")
_SPELT = {"A<<B": "B>>A", "A<B": "B>A", "B=A": "A=B", "B<A": "A>B", "B<<A": "A>>B"}
"""Alternative spellings that judges use and the benchmark accepts."""
_NOTES = (
    Note("messages", "turns, prompt"),
    Note("model", "model_id, model"),
    Note("answer", "choices, messages"),
    Note("verdict", "games"),
    Note("left_out", "token_len, user_prompt, metadata"),
)
Kind = Literal["question", "answer", "judgment", ""]


def _kind(record: Any) -> Kind:
    if not isinstance(record, dict) or not ("question_id" in record or "uid" in record):
        return ""
    if isinstance(record.get("games"), list) and "model" in record:
        return "judgment"
    if any(map(_turns, list_at(record, "choices")[:1])):
        return "answer"
    if "model" in record and isinstance(record.get("messages"), list):
        return "answer"
    is_question = _turns(record) or ("uid" in record and isinstance(record.get("prompt"), str))
    return "question" if is_question else ""


def _turns(holder: Any) -> list[Any]:
    """The turns of a question or a choice if they are objects; else an empty list."""
    turns = list_at(holder, "turns")
    return turns if turns and isinstance(turns[0], dict) else []


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    """Read questions first, as they contain more of a row than the answers, which repeat the prompt."""
    take = {"question": _row, "answer": _answer, "judgment": _judgment}
    for file in sorted(files, key=lambda file: _kind(first_record(file)) != "question"):
        for place, record in collector.records(file, _kind):
            take[_kind(record)](collector, place, record)


def _id(record: dict[str, Any]) -> str:
    return str(record.get("uid") or record.get("question_id"))


def _row(collector: Collector, place: Place, record: dict[str, Any]) -> None:
    contents = [value_at(turn, "content") for turn in _turns(record)] or [record.get("prompt")]
    rest = fields({name: record[name] for name in record if name not in _OF_QUESTION}, "question")
    messages = []
    for content in map(content_of, contents):
        collector.leave_out_parts(place, content.dropped)
        if content.text.strip():
            messages.append({"role": "user", "content": content.text})
    if not messages:
        collector.leave_out(place, "no_question")
        return
    collector.row(_id(record), {"id": _id(record), "messages": messages} | rest, place)


def _answer(collector: Collector, place: Place, record: dict[str, Any]) -> None:
    model = str(record.get("model_id") or record.get("model"))
    choices = record.get("choices")
    if isinstance(choices, list):
        turns = [of_choice for of_choice in map(_turns, choices) if of_choice]
        for _earlier in (turn for of_choice in turns for turn in of_choice[:-1]):
            collector.leave_out(place, "earlier_answer", model)
        contents = [value_at(of_choice[-1], "content") for of_choice in turns]
    else:
        messages = [message for message in record["messages"] if isinstance(message, dict)]
        contents = [message.get("content") for message in messages if message.get("role") == "assistant"][-1:]
        prompt = chat([message for message in messages if message.get("role") != "assistant"])[0]
        if any(message["content"].strip() for message in prompt):
            collector.row(_id(record), {"id": _id(record), "messages": prompt}, place)
    if not contents:
        collector.leave_out(place, "no_answer", model)
    for number, content in enumerate(contents, 1):
        text = content.get("answer") if isinstance(content, dict) else content
        collector.answer(_id(record), model, {"content": content_of(text).text}, place, number)


def _judgment(collector: Collector, place: Place, record: dict[str, Any]) -> None:
    """Import a judgment: the baseline is A in the first game, the model in the second."""
    key, model = _id(record), str(record["model"])
    baseline = str(record.get("baseline") or BASELINE)
    about = {
        "model": model,
        "other_model": baseline,
        "metric": METRIC,
        "id": key,
        "judge": str(record.get("judge") or "judge"),
    }
    for number, game in enumerate(record["games"]):
        if not isinstance(game, dict):
            collector.leave_out(place, "no_value", METRIC)
            continue
        score = str(game.get("score"))
        code = _SPELT.get(score, score)
        value = None if code not in COMPARISON_CODES else code if number % 2 else turned(code)
        verdict = about | {"value": value, "shown_first": 1 if number % 2 else 2, "repeat": number // 2 + 1}
        words = game.get("judgment")
        words = words.get("answer") if isinstance(words, dict) else words
        collector.verdict(key, verdict | {"reasoning": words if isinstance(words, str) else None}, place)


SOURCE = tool("arena_hard", lambda file: _kind(first_record(file)), _collect, _NOTES)
