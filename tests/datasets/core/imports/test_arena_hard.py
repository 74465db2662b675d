"""Import of Arena-Hard-Auto files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.datasets.core.imports.reading import lines, taken

QUESTION = {
    "question_id": "q1",
    "category": "arena-hard-v0.1",
    "cluster": "c",
    "turns": [{"content": "Why?"}],
}
QUESTION_2 = {"uid": "q1", "category": "hard_prompt", "subcategory": "coding", "prompt": "Why?"}


def answer(model: str) -> dict[str, Any]:
    turns = [{"content": f"{model} says", "token_len": 2}]
    return {
        "question_id": "q1",
        "answer_id": "x",
        "model_id": model,
        "choices": [{"index": 0, "turns": turns}],
    }


def answer_2(model: str) -> dict[str, Any]:
    spoken = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": {"answer": f"{model} says"}},
    ]
    style = {"token_len": 2, "header_count": {"h1": 0}, "list_count": {"ordered": 0}, "bold_count": {"**": 0}}
    return {
        **{"uid": "q1", "ans_id": "x", "model": model, "messages": spoken},
        **{"tstamp": 1745605748.4, "metadata": style},
    }


def judged(*scores: str | None, **changes: Any) -> dict[str, Any]:
    games = [{"user_prompt": "…", "judgment": f"[[{score}]]", "score": score} for score in scores]
    return {"question_id": "q1", "model": "m", "judge": "gpt-4-1106-preview", "games": games} | changes


def test_the_baseline_is_a_in_the_first_game_and_b_in_the_second(tmp_path: Path) -> None:
    found = taken(
        tmp_path,
        judgment__jsonl=lines(judged("A>>B", "A>B")),
        question__jsonl=lines(QUESTION),
        answers__jsonl=lines(answer("gpt-4-0314"), answer("m")),
    )
    assert found.source == "arena_hard"
    assert (found.rows[0]["id"], found.rows[0]["cluster"]) == ("q1", "c")
    assert found.said("model", "other_model", "value", "shown_first") == [
        ("m", "gpt-4-0314", "B>>A", 2),
        ("m", "gpt-4-0314", "A>B", 1),
    ]


def test_the_second_version_names_its_baseline(tmp_path: Path) -> None:
    game = {"score": "B>>A", "judgment": {"answer": "B is better."}, "prompt": []}
    given = {"uid": "q1", "judge": "j", "model": "m", "baseline": "o3", "games": [game]}
    found = taken(
        tmp_path,
        question__jsonl=lines(QUESTION_2),
        answers__jsonl=lines(answer_2("o3"), answer_2("m")),
        judgment__jsonl=lines(given),
    )
    assert found.answers == {"o3": ["o3 says"], "m": ["m says"]}
    assert found.said("other_model", "value", "reasoning") == [("o3", "A>>B", "B is better.")]


@pytest.mark.parametrize(
    ("said", "value"), [("A<<B", "A>>B"), ("A<B", "A>B"), ("B=A", "A=B"), ("B<<A", "B>>A")]
)
def test_a_score_that_is_spelt_the_other_way_counts(tmp_path: Path, said: str, value: str) -> None:
    found = taken(
        tmp_path,
        judgment__jsonl=lines(judged(said)),
        question__jsonl=lines(QUESTION),
        answers__jsonl=lines(answer("gpt-4-0314"), answer("m")),
    )
    assert found.said("value") == [(value,)]


def test_answers_of_the_second_version_say_what_was_asked(tmp_path: Path) -> None:
    alone = taken(tmp_path, answers__jsonl=lines(answer_2("m")))
    assert alone.rows[0]["messages"] == [{"role": "user", "content": "Why?"}]
    found = taken(tmp_path, answers__jsonl=lines(answer_2("m")), question__jsonl=lines(QUESTION_2))
    assert [row["subcategory"] for row in found.rows] == ["coding"]


def test_a_question_without_a_text_is_left_out(tmp_path: Path) -> None:
    blank = {"uid": "q2", "category": "vision", "prompt": "", "image_path": "/data/x.jpg"}
    found = taken(tmp_path, question__jsonl=lines(QUESTION_2, blank))
    assert (len(found.rows), found.left_out) == (1, {"no_question": 1})


def test_a_game_without_a_score_is_unparsed(tmp_path: Path) -> None:
    found = taken(
        tmp_path,
        judgment__jsonl=lines(judged(None, "A=B")),
        question__jsonl=lines(QUESTION),
        answers__jsonl=lines(answer("gpt-4-0314"), answer("m")),
    )
    assert found.said("value", "state") == [(None, "unparsed"), ("A=B", None)]


@pytest.mark.parametrize(
    ("model", "code"), [("other", "verdict_without_answer"), ("gpt-4-0314", "same_answer")]
)
def test_games_without_a_second_answer_are_left_out(tmp_path: Path, model: str, code: str) -> None:
    found = taken(
        tmp_path,
        judgment__jsonl=lines(judged("A>B", model=model)),
        question__jsonl=lines(QUESTION),
        answers__jsonl=lines(answer(model)),
    )
    assert (found.verdicts, found.left_out) == ([], {code: 1})


def test_earlier_turns_of_an_answer_are_listed(tmp_path: Path) -> None:
    turns = [{"content": "First."}, {"content": "Then."}]
    given = answer("m") | {"choices": [{"index": 0, "turns": turns}]}
    found = taken(tmp_path, question__jsonl=lines(QUESTION), answers__jsonl=lines(given))
    assert (found.answers, found.left_out) == ({"m": ["Then."]}, {"earlier_answer": 1})
