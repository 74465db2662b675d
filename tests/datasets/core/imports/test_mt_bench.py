"""Import of FastChat's MT-bench files."""

from __future__ import annotations

from pathlib import Path

from tests.datasets.core.imports.fastchat import PAIR, QUESTION, answer, single
from tests.datasets.core.imports.reading import lines, taken


def test_each_turn_is_a_row_whose_answers_bring_their_own_earlier_turns(tmp_path: Path) -> None:
    found = taken(
        tmp_path, model_answer__jsonl=lines(answer("a"), answer("b")), question__jsonl=lines(QUESTION)
    )
    first, second = found.rows
    assert found.source == "mt_bench"
    assert [(row["id"], row["turn"], len(row["messages"])) for row in found.rows] == [
        ("81", 1, 1),
        ("81-2", 2, 2),
    ]
    assert found.answers == {"a": ["a 2", "a 4"], "b": ["b 2", "b 4"]}
    assert "earlier_messages" not in first["model_outputs"][0]["responses"][0]
    earlier = second["model_outputs"][0]["responses"][0]["earlier_messages"]
    assert earlier == [{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "a 2"}]


def test_scores_are_verdicts_on_the_answer_of_their_turn(tmp_path: Path) -> None:
    found = taken(
        tmp_path,
        judgment__jsonl=lines(single("a", 1, 9), single("a", 2, 7), single("b", 1, -1)),
        model_answer__jsonl=lines(answer("a"), answer("b")),
        question__jsonl=lines(QUESTION),
    )
    assert found.said("line", "model", "metric", "value", "judge") == [
        (1, "a", "score", 9, "gpt-4"),
        (2, "a", "score", 7, "gpt-4"),
        (1, "b", "score", None, "gpt-4"),
    ]
    assert found.verdicts[2]["state"] == "unparsed"


def test_a_pair_is_two_comparisons_in_both_orders(tmp_path: Path) -> None:
    found = taken(
        tmp_path, p__jsonl=lines(PAIR), m__jsonl=lines(answer("a"), answer("b")), q__jsonl=lines(QUESTION)
    )
    assert found.said("model", "other_model", "metric", "value", "shown_first") == [
        ("a", "b", "preference", "A>B", 1),
        ("a", "b", "preference", "B>A", 2),
    ]


def test_a_game_without_a_winner_is_unparsed_and_a_tie_is_one(tmp_path: Path) -> None:
    given = PAIR | {"g1_winner": "error", "g2_winner": "tie"}
    found = taken(
        tmp_path, p__jsonl=lines(given), m__jsonl=lines(answer("a"), answer("b")), q__jsonl=lines(QUESTION)
    )
    assert found.said("value", "state") == [(None, "unparsed"), ("A=B", None)]


def test_reference_answers_are_references_and_no_model(tmp_path: Path) -> None:
    found = taken(
        tmp_path,
        reference_answer__jsonl=lines(answer("gpt-4", ["2", "4"])),
        model_answer__jsonl=lines(answer("a")),
        question__jsonl=lines(QUESTION),
    )
    assert [row["ref_answer"] for row in found.rows] == ["2", "4"]
    assert list(found.answers) == ["a"]


def test_reference_answers_are_known_though_their_file_does_not_say_so(tmp_path: Path) -> None:
    writing = {"question_id": 90, "category": "writing", "turns": ["Write."]}
    found = taken(
        tmp_path,
        gpt4__jsonl=lines(answer("gpt-4", ["2", "4"])),
        a__jsonl=lines(answer("a"), answer("a") | {"question_id": 90}),
        judgment__jsonl=lines(single("a", 1, 9)),
        question__jsonl=lines(QUESTION, writing),
    )
    assert [row.get("ref_answer") for row in found.rows] == ["2", "4", None]
    assert list(found.answers) == ["a"]


def test_choices_are_several_answers(tmp_path: Path) -> None:
    given = answer("a", ["x", "y"], ["z", "w"])
    found = taken(tmp_path, m__jsonl=lines(given), q__jsonl=lines(QUESTION))
    assert found.answers == {"a": ["x", "z", "y", "w"]}


def test_verdicts_on_what_is_not_there_are_left_out(tmp_path: Path) -> None:
    lost = single("a", 1, 5) | {"question_id": 99}
    found = taken(
        tmp_path,
        judgment__jsonl=lines(single("c", 1, 9), lost),
        model_answer__jsonl=lines(answer("a")),
        question__jsonl=lines(QUESTION),
    )
    assert (found.verdicts, found.left_out) == ([], {"verdict_without_answer": 1, "verdict_without_row": 1})


def test_further_reference_answers_are_listed(tmp_path: Path) -> None:
    references = answer("gpt-4", ["2", "4"], ["two", "four"])
    found = taken(tmp_path, question__jsonl=lines(QUESTION), reference_answer__jsonl=lines(references))
    assert ([row["ref_answer"] for row in found.rows], found.left_out) == (["2", "4"], {"more_references": 1})
