"""MT-bench (FastChat): questions, answers, reference answers, and single and pair judgments, in several files.

Each turn of a question becomes its own row, so that a verdict refers to exactly the answer it judged; answers to later
turns include their own earlier turns.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from datasets.core.imports.collector import Collector, fields, tool
from datasets.core.imports.json_records import first_record, json_records, list_at
from datasets.core.imports.model import Note, Place, SourceFile
from datasets.core.variables import EARLIER

SCORE, PREFERENCE = "score", "preference"
WITH_REFERENCE = ("math", "reasoning", "coding", "arena-hard-200")
"""Categories whose answers FastChat judges against a reference."""
_OF_QUESTION = ("question_id", "turns", "reference")
_WINNERS = {"model_1": "A>B", "model_2": "B>A", "tie": "A=B"}
_NOTES = (
    Note("messages", "turns"),
    Note("reference", "reference_answer"),
    Note("model", "model_id"),
    Note("answer", "choices"),
    Note("verdict", "score"),
    Note("verdict", "g1_winner, g2_winner"),
    Note("left_out", "answer_id, user_prompt, judge[1]"),
)
Kind = Literal["question", "answer", "single", "pair", ""]


def _kind(record: Any) -> Kind:
    if not isinstance(record, dict) or "question_id" not in record:
        return ""
    turns, choices = record.get("turns"), record.get("choices")
    if isinstance(turns, list) and turns and all(isinstance(turn, str) for turn in turns):
        return "question"
    if "model_id" in record and isinstance(choices, list):
        return "answer" if all(map(_is_choice, choices)) else ""
    if "g1_winner" in record and "model_1" in record:
        return "pair"
    return "single" if {"model", "score", "judgment", "turn"} <= record.keys() else ""


def _is_choice(choice: Any) -> bool:
    turns = choice.get("turns") if isinstance(choice, dict) else None
    return isinstance(turns, list) and all(isinstance(turn, str) for turn in turns)


def _kind_of(file: SourceFile) -> Kind:
    return _kind(first_record(file))


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    """Read questions first, then answers, then verdicts, whatever the order of the files."""
    of_kind: dict[str, list[SourceFile]] = defaultdict(list)
    for file in files:
        of_kind[_kind_of(file)].append(file)
    questions = list(_records(of_kind["question"], collector, "question"))
    turns = {str(record["question_id"]): record["turns"] for _place, record in questions}
    categories = {str(record["question_id"]): str(record.get("category")) for _place, record in questions}
    reference_files = _reference_files(of_kind, categories, collector)
    references = _references(reference_files, collector)
    for place, record in questions:
        _rows(collector, place, record, references)
    answers = [file for file in of_kind["answer"] if file not in reference_files]
    for place, record in _records(answers, collector, "answer"):
        _answers(collector, place, record, turns)
    for place, record in _records(of_kind["single"], collector, "single"):
        _single(collector, place, record)
    for place, record in _records(of_kind["pair"], collector, "pair"):
        _pair(collector, place, record)


def _records(
    files: Sequence[SourceFile], collector: Collector, kind: Kind
) -> Iterator[tuple[Place, dict[str, Any]]]:
    for file in files:
        yield from collector.records(file, lambda record: _kind(record) == kind)


def _reference_files(
    of_kind: Mapping[str, list[SourceFile]], categories: Mapping[str, str], collector: Collector
) -> list[SourceFile]:
    """The answer files that contain references.

    Either the file name says so, or its model is never judged and it answers only questions that are judged against a
    reference.
    """
    judged: set[str] = set()
    for file in of_kind["single"] + of_kind["pair"]:
        for record in _peek(file, collector, "single", "pair"):
            judged |= {str(record.get(name)) for name in ("model", "model_1", "model_2")}
    references = []
    for file in of_kind["answer"]:
        if "reference" in file.name.lower():
            references.append(file)
        elif judged and categories:
            answers = list(_peek(file, collector, "answer"))
            models = {str(record["model_id"]) for record in answers}
            answered = {categories.get(str(record["question_id"])) for record in answers}
            if models.isdisjoint(judged) and answered <= set(WITH_REFERENCE):
                references.append(file)
    return references


def _peek(file: SourceFile, collector: Collector, *kinds: Kind) -> Iterator[dict[str, Any]]:
    """The records of these kinds; what is left out is listed when the file is actually read."""
    for _line, record in islice(json_records(file, collector.options.limits), collector.options.first):
        if _kind(record) in kinds:
            yield record


def _references(files: Sequence[SourceFile], collector: Collector) -> dict[str, list[str]]:
    references: dict[str, list[str]] = {}
    for place, record in _records(files, collector, "answer"):
        if record["choices"]:
            references.setdefault(str(record["question_id"]), record["choices"][0]["turns"])
            for choice in record["choices"][1:]:
                collector.leave_out(place, "more_references", "; ".join(choice["turns"])[:200])
        else:
            collector.leave_out(place, "no_answer", str(record["model_id"]))
    return references


def _rows(
    collector: Collector, place: Place, record: dict[str, Any], references: Mapping[str, list[str]]
) -> None:
    name, turns = str(record["question_id"]), record["turns"]
    references_of_turns = references.get(name) or list_at(record, "reference")
    rest = fields({field: record[field] for field in record if field not in _OF_QUESTION}, "question")
    for turn in range(1, len(turns) + 1):
        row = {
            "id": _row_name(name, turn),
            "messages": [{"role": "user", "content": text} for text in turns[:turn]],
            "question_id": record["question_id"],
            "turn": turn,
        }
        reference = references_of_turns[turn - 1] if turn <= len(references_of_turns) else None
        collector.row([name, turn], row | rest, place, reference=reference or None)


def _row_name(question: object, turn: object) -> str:
    return str(question) if turn == 1 else f"{question}-{turn}"


def _answers(
    collector: Collector, place: Place, record: dict[str, Any], questions_by_id: Mapping[str, list[str]]
) -> None:
    name, model = str(record["question_id"]), str(record["model_id"])
    questions = questions_by_id.get(name, [])
    if not record["choices"]:
        collector.leave_out(place, "no_answer", model)
    for number, choice in enumerate(record["choices"], 1):
        earlier: list[dict[str, str]] = []
        for turn, text in enumerate(choice["turns"], 1):
            before = {EARLIER: list(earlier)} if earlier else {}
            collector.answer([name, turn], model, {"content": text, **before}, place, number)
            if turn <= len(questions):
                earlier += [
                    {"role": "user", "content": questions[turn - 1]},
                    {"role": "assistant", "content": text},
                ]


def _single(collector: Collector, place: Place, record: dict[str, Any]) -> None:
    score, key = record["score"], [str(record["question_id"]), record["turn"]]
    verdict = _judged(record, "judgment") | {
        "model": str(record["model"]),
        "metric": SCORE,
        "id": _row_name(*key),
        "value": score if isinstance(score, int | float) and score != -1 else None,
        "min_score": 1,
        "max_score": 10,
    }
    collector.verdict(key, verdict, place)


def _pair(collector: Collector, place: Place, record: dict[str, Any]) -> None:
    """Import both games: model_1 is shown first in the first, model_2 in the second; winners are model names."""
    key = [str(record["question_id"]), record.get("turn") or 1]
    about = {"model": str(record["model_1"]), "other_model": str(record["model_2"]), "metric": PREFERENCE}
    about["id"] = _row_name(*key)
    for game in (1, 2):
        if f"g{game}_winner" in record:
            value = _WINNERS.get(str(record[f"g{game}_winner"]))
            verdict = _judged(record, f"g{game}_judgment") | {"value": value, "shown_first": game}
            collector.verdict(key, about | verdict, place)


def _judged(record: dict[str, Any], text: str) -> dict[str, Any]:
    """The judge, time and reasoning of a judgment."""
    judge = record.get("judge")
    name = judge[0] if isinstance(judge, list) and judge else judge
    at = record.get("tstamp")
    return {
        "judge": str(name or "judge"),
        "reasoning": record[text] if isinstance(record.get(text), str) else None,
        "at": at if isinstance(at, int | float) else None,
    }


SOURCE = tool("mt_bench", _kind_of, _collect, _NOTES)
