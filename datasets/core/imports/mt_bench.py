"""MT-bench (FastChat): questions, answers, reference answers, and single and pair judgments, in several files.

Each turn of a question becomes its own row, so that a verdict refers to exactly the answer it judged; answers to later
turns include their own earlier turns.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from datasets.core.imports.gathering import Gathering, fields, gathered, records
from datasets.core.imports.json_records import first_record
from datasets.core.imports.model import Imported, Note, Options, Place, Source, SourceFile
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
    Note("left_out", "answer_id, user_prompt"),
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


def recognise(files: Sequence[SourceFile]) -> bool:
    return bool(files) and all(_kind_of(file) for file in files)


def _kind_of(file: SourceFile) -> Kind:
    return _kind(first_record(file))


def read(files: Sequence[SourceFile], options: Options) -> Imported:
    return gathered(files, options, _gather, _NOTES)


def _gather(files: Sequence[SourceFile], options: Options, found: Gathering) -> None:
    """Read questions first, then answers, then verdicts, whatever the order of the files."""
    of_kind: dict[str, list[SourceFile]] = defaultdict(list)
    for file in files:
        of_kind[_kind_of(file)].append(file)
    asked: dict[str, list[str]] = {}
    categories: dict[str, str] = {}
    kept: list[tuple[Place, dict[str, Any]]] = []
    for place, record in _records(of_kind["question"], options, found, "question"):
        name = str(record["question_id"])
        asked[name], categories[name] = record["turns"], str(record.get("category"))
        kept.append((place, record))
    references = _reference_files(of_kind["answer"], of_kind["single"] + of_kind["pair"], categories, options)
    known = _references(references, options, found)
    for place, record in kept:
        _rows(found, place, record, known)
    answers = [file for file in of_kind["answer"] if file not in references]
    for place, record in _records(answers, options, found, "answer"):
        _answers(found, place, record, asked)
    for place, record in _records(of_kind["single"], options, found, "single"):
        _single(found, place, record)
    for place, record in _records(of_kind["pair"], options, found, "pair"):
        _pair(found, place, record)


def _records(files: Sequence[SourceFile], options: Options, found: Gathering, kind: Kind) -> Any:
    for file in files:
        yield from records(file, options, found, lambda record: _kind(record) == kind)


def _reference_files(
    answers: Sequence[SourceFile],
    judgments: Sequence[SourceFile],
    categories: Mapping[str, str],
    options: Options,
) -> list[SourceFile]:
    """The answer files that contain references.

    Either the file name says so, or its model is never judged and it answers only questions that are judged against a
    reference.
    """
    quiet = Gathering(Imported(()))  # left-out records are reported when the files are actually read
    judged: set[str] = set()
    for file in judgments:
        for _place, record in records(file, options, quiet):
            judged |= {str(record.get(name)) for name in ("model", "model_1", "model_2")}
    found = []
    for file in answers:
        if "reference" in file.name.lower():
            found.append(file)
        elif judged and categories:
            given = [record for _place, record in records(file, options, quiet) if _kind(record) == "answer"]
            models = {str(record["model_id"]) for record in given}
            wanted = {categories.get(str(record["question_id"])) for record in given}
            if models.isdisjoint(judged) and wanted <= set(WITH_REFERENCE):
                found.append(file)
    quiet.close()
    return found


def _references(files: Sequence[SourceFile], options: Options, found: Gathering) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {}
    for place, record in _records(files, options, found, "answer"):
        if record["choices"]:
            known.setdefault(str(record["question_id"]), record["choices"][0]["turns"])
        else:
            found.leave_out(place, "no_answer", str(record["model_id"]))
    return known


def _rows(
    found: Gathering, place: Place, record: dict[str, Any], references: Mapping[str, list[str]]
) -> None:
    name, turns = str(record["question_id"]), record["turns"]
    own = record.get("reference")
    given = references.get(name) or (own if isinstance(own, list) else [])
    rest = fields({field: value for field, value in record.items() if field not in _OF_QUESTION}, "question")
    for turn in range(1, len(turns) + 1):
        row = {
            "id": _row_name(name, turn),
            "messages": [{"role": "user", "content": text} for text in turns[:turn]],
            "question_id": record["question_id"],
            "turn": turn,
        }
        reference = given[turn - 1] if turn <= len(given) else None
        found.row([name, turn], row | rest | ({"ref_answer": reference} if reference else {}), place)


def _row_name(question: object, turn: object) -> str:
    return str(question) if turn == 1 else f"{question}-{turn}"


def _answers(found: Gathering, place: Place, record: dict[str, Any], asked: Mapping[str, list[str]]) -> None:
    name, model = str(record["question_id"]), str(record["model_id"])
    questions = asked.get(name, [])
    if not record["choices"]:
        found.leave_out(place, "no_answer", model)
    for number, choice in enumerate(record["choices"], 1):
        earlier: list[dict[str, str]] = []
        for turn, text in enumerate(choice["turns"], 1):
            before = {EARLIER: list(earlier)} if earlier else {}
            found.answer([name, turn], model, {"content": text, **before}, place, number)
            if turn <= len(questions):
                earlier += [
                    {"role": "user", "content": questions[turn - 1]},
                    {"role": "assistant", "content": text},
                ]


def _single(found: Gathering, place: Place, record: dict[str, Any]) -> None:
    score = record["score"]
    said = _judged(record, "judgment") | {"model": str(record["model"]), "metric": SCORE}
    said |= {"id": _row_name(record["question_id"], record["turn"]), "min_score": 1, "max_score": 10}
    if isinstance(score, int | float) and score != -1:
        said["value"] = score
    else:
        said |= {"value": None, "state": "unparsed"}
    found.verdict([str(record["question_id"]), record["turn"]], said, place)


def _pair(found: Gathering, place: Place, record: dict[str, Any]) -> None:
    """Import both games: model_1 is shown first in the first, model_2 in the second; winners are model names."""
    key = [str(record["question_id"]), record.get("turn") or 1]
    about = {"model": str(record["model_1"]), "other_model": str(record["model_2"]), "metric": PREFERENCE}
    about["id"] = _row_name(*key)
    for game in (1, 2):
        if f"g{game}_winner" in record:
            value = _WINNERS.get(str(record[f"g{game}_winner"]))
            state = {} if value else {"state": "unparsed"}
            said = _judged(record, f"g{game}_judgment") | {"value": value, "shown_first": game}
            found.verdict(key, about | said | state, place)


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


SOURCE = Source("mt_bench", recognise, read)
