"""Arena-Hard-Auto (v0.1 and v2.0): questions, model answers and judgments of two games each, in several files."""

from collections.abc import Sequence
from typing import Any, Literal

from datasets.core.imports.chat import chat, said
from datasets.core.imports.gathering import Gathering, fields, gathered, records
from datasets.core.imports.json_records import first_record
from datasets.core.imports.model import Imported, Note, Options, Place, Source, SourceFile

METRIC = "preference"
BASELINE = "gpt-4-0314"
"""The baseline of v0.1, whose judgments do not name it."""
_OF_QUESTION = ("question_id", "uid", "turns", "prompt")
_TURNED = {"A>>B": "B>>A", "A>B": "B>A", "A=B": "A=B", "B>A": "A>B", "B>>A": "A>>B"}
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
    if _turns(record.get("choices")) or ("model" in record and isinstance(record.get("messages"), list)):
        return "answer"
    asked = record.get("turns")
    if isinstance(asked, list) and asked and isinstance(asked[0], dict):
        return "question"
    return "question" if "uid" in record and isinstance(record.get("prompt"), str) else ""


def _turns(choices: Any) -> list[Any]:
    """The turns of the first choice if they are objects; else an empty list."""
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    turns = first.get("turns")
    return turns if isinstance(turns, list) and turns and isinstance(turns[0], dict) else []


def recognise(files: Sequence[SourceFile]) -> bool:
    return bool(files) and all(_kind(first_record(file)) for file in files)


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    return gathered(files, options, _gather, _NOTES)


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    """Read questions first, as they contain more of a row than the answers, which repeat the prompt."""
    take = {"question": _row, "answer": _answer, "judgment": _judgment}
    for file in sorted(files, key=lambda one: _kind(first_record(one)) != "question"):
        for place, record in records(file, options, found, _kind):
            take[_kind(record)](found, place, record)


def _id(record: dict[str, Any]) -> str:
    return str(record.get("uid") or record.get("question_id"))


def _row(found: Gathering, place: Place, record: dict[str, Any]) -> None:
    texts = [said(turn.get("content")) for turn in record.get("turns") or [{"content": record.get("prompt")}]]
    rest = fields({name: value for name, value in record.items() if name not in _OF_QUESTION}, "question")
    for kind in [kind for one in texts for kind in one.dropped]:
        found.leave_out(place, "part_dropped", kind)
    messages = [{"role": "user", "content": one.text} for one in texts if one.text.strip()]
    if not messages:
        found.leave_out(place, "no_question")
        return
    found.row(_id(record), {"id": _id(record), "messages": messages} | rest, place)


def _answer(found: Gathering, place: Place, record: dict[str, Any]) -> None:
    model = str(record.get("model_id") or record.get("model"))
    choices = record.get("choices")
    if isinstance(choices, list):
        contents = [turns[-1].get("content") for one in choices if (turns := _turns([one]))]
    else:
        messages = [one for one in record["messages"] if isinstance(one, dict)]
        contents = [one.get("content") for one in messages if one.get("role") == "assistant"][-1:]
        asked = chat([one for one in messages if one.get("role") != "assistant"])[0]
        if any(one["content"].strip() for one in asked):
            found.row(_id(record), {"id": _id(record), "messages": asked}, place)
    if not contents:
        found.leave_out(place, "no_answer", model)
    for number, content in enumerate(contents, 1):
        text = content.get("answer") if isinstance(content, dict) else content
        found.answer(_id(record), model, {"content": said(text).text}, place, number)


def _judgment(found: Gathering, place: Place, record: dict[str, Any]) -> None:
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
            found.leave_out(place, "no_value", METRIC)
            continue
        said = str(game.get("score"))
        value = _TURNED.get(_SPELT.get(said, said))
        if value and number % 2:
            value = _TURNED[value]
        verdict = about | {"value": value, "shown_first": 1 if number % 2 else 2, "repeat": number // 2 + 1}
        words = game.get("judgment")
        words = words.get("answer") if isinstance(words, dict) else words
        state = {} if value else {"state": "unparsed"}
        found.verdict(key, verdict | state | {"reasoning": words if isinstance(words, str) else None}, place)


SOURCE = Source("arena_hard", recognise, read)
