"""Test records in the format of FastChat's MT-bench files."""

from __future__ import annotations

from typing import Any

QUESTION = {"question_id": 81, "category": "math", "turns": ["1 + 1?", "Twice that?"]}


def answer(model: str, *choices: list[str]) -> dict[str, Any]:
    given = choices or ([f"{model} 2", f"{model} 4"],)
    listed = [{"index": index, "turns": turns} for index, turns in enumerate(given)]
    return {"question_id": 81, "answer_id": "x", "model_id": model, "choices": listed, "tstamp": 1.5}


def single(model: str, turn: int, score: float) -> dict[str, Any]:
    judge = ["gpt-4", "single-v1" if turn == 1 else "single-v1-multi-turn"]
    return {
        **{"question_id": 81, "model": model, "judge": judge, "user_prompt": "…", "judgment": f"[[{score}]]"},
        **{"score": score, "turn": turn, "tstamp": 2.5},
    }


PAIR = {
    **{"question_id": 81, "model_1": "a", "model_2": "b", "judge": ["gpt-4", "pair-v2"], "turn": 1},
    **{"g1_winner": "model_1", "g2_winner": "model_2", "g1_judgment": "[[A]]", "g2_judgment": "[[A]]"},
    "tstamp": 3.5,
}
