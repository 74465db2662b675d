"""Import of HealthBench's conversations and of its meta-evaluation."""

from pathlib import Path
from typing import Any

from tests.datasets.core.imports.reading import lines, taken

RELEASED = Path(__file__).parents[2] / "files" / "rubrics"
PROMPT = [{"role": "user", "content": "How much water should I drink a day?"}]
EXAMPLE: dict[str, Any] = {
    "prompt": PROMPT,
    "prompt_id": "p-1",
    "rubrics": [{"criterion": "Names an amount", "points": 5, "tags": ["axis:accuracy"]}],
    "example_tags": ["theme:hedging"],
    "ideal_completions_data": {"ideal_completion": "About two litres.", "ideal_completions_group": "Group 1"},
}
LABEL: dict[str, Any] = {
    "prompt": PROMPT,
    "prompt_id": "p-1",
    "completion": "Two litres.",
    "completion_id": "c-1",
    "category": "cluster:hedging",
    "rubric": "Names an amount",
    "binary_labels": [True, False],
    "anonymized_physician_ids": ["doc1", "doc2"],
}


def test_an_example_is_a_row_with_its_rubric(tmp_path: Path) -> None:
    (row,) = taken(tmp_path, examples__jsonl=lines(EXAMPLE)).rows
    assert (row["id"], row["messages"], row["rubric"]) == ("p-1", PROMPT, EXAMPLE["rubrics"])
    assert (row["ref_answer"], row["example_tags"]) == ("About two litres.", ["theme:hedging"])


def test_the_released_files_are_read(tmp_path: Path) -> None:
    examples = taken(tmp_path, a__jsonl=(RELEASED / "healthbench.jsonl").read_bytes())
    labels = taken(tmp_path, b__jsonl=(RELEASED / "healthbench_meta.jsonl").read_bytes())
    assert (len(examples.rows), sum(len(row["rubric"]) for row in examples.rows)) == (5, 13)
    assert (len(labels.rows), [len(row["rubric"]) for row in labels.rows]) == (2, [2, 2])
    assert (len(labels.answers["completion"]), len(labels.verdicts)) == (3, 10)


def test_labels_are_peoples_verdicts_on_a_criterion(tmp_path: Path) -> None:
    other = LABEL | {"rubric": "Is brief", "binary_labels": [None, True]}
    labels = taken(tmp_path, meta__jsonl=lines(LABEL, other, LABEL | {"completion_id": "c-2"}))
    assert labels.said("response", "criterion", "value", "rater") == [
        (1, "1", True, "doc1"),
        (1, "1", False, "doc2"),
        (1, "2", True, "doc2"),
        (2, "1", True, "doc1"),
        (2, "1", False, "doc2"),
    ]
    assert labels.left_out == {"no_value": 1}


def test_labels_may_be_numbers(tmp_path: Path) -> None:
    labels = taken(tmp_path, meta__jsonl=lines(LABEL | {"binary_labels": [1, 0, 2]}))
    assert [value for (value,) in labels.said("value")] == [True, False]
    assert labels.left_out == {"no_value": 1}


def test_a_blank_criterion_costs_only_its_own_labels(tmp_path: Path) -> None:
    labels = taken(tmp_path, meta__jsonl=lines(LABEL | {"rubric": " "}, LABEL))
    assert [row["rubric"] for row in labels.rows] == [[{"criterion": "Names an amount"}]]
    assert labels.said("criterion", "value") == [("1", True), ("1", False)]
    assert labels.left_out == {"no_value": 1}


def test_a_first_example_without_a_rubric_does_not_change_how_the_others_are_read(tmp_path: Path) -> None:
    rows = taken(
        tmp_path, examples__jsonl=lines(EXAMPLE | {"rubrics": None}, EXAMPLE | {"prompt_id": "p-2"})
    ).rows
    assert [(row["id"], "rubric" in row) for row in rows] == [("p-1", False), ("p-2", True)]
