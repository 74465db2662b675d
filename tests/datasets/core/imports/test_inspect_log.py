"""Import of Inspect logs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from datasets.core.imports.model import NotUsable, Options, SourceFile
from datasets.core.imports.registry import recognise
from datasets.core.limits import Limits
from tests.datasets.core.imports.inspect_logs import archive, log, packed_with_zstandard, sample
from tests.datasets.core.imports.reading import taken


@pytest.mark.parametrize("form", ["json", "zip", "zstandard"])
def test_a_sample_is_a_row_with_target_answer_and_scores(tmp_path: Path, form: str) -> None:
    plain = log(sample())
    written = {
        "json": json.dumps(plain, indent=1).encode(),
        "zip": archive(plain),
        "zstandard": packed_with_zstandard(archive(plain, zipfile.ZIP_STORED)),
    }[form]
    found = taken(tmp_path, log__eval=written)
    (row,) = found.rows
    assert found.source == "inspect"
    assert (row["id"], row["ref_answer"], row["level"]) == ("s1", "A", 3)
    assert found.answers == {"openai/gpt-x": ["answer 1"]}
    assert found.said("line", "metric", "value", "reasoning", "judge") == [
        (1, "match", 1.0, "It says A.", "inspect")
    ]


def test_epochs_are_answers_in_their_order_however_the_log_has_them(tmp_path: Path) -> None:
    third = sample(epoch=3, scores={"match": {"value": "I"}})
    found = taken(tmp_path, log__eval=archive(log(third, sample(epoch=1))))
    assert found.answers == {"openai/gpt-x": ["answer 1", "answer 3"]}
    assert sorted(found.said("response", "value")) == [(1, 1.0), (2, 0.0)]


def test_logs_of_two_models_share_their_rows(tmp_path: Path) -> None:
    found = taken(
        tmp_path, one__json=json.dumps(log(sample())), two__json=json.dumps(log(sample(), model="other"))
    )
    assert (len(found.rows), list(found.answers)) == (1, ["openai/gpt-x", "other"])


def test_a_second_log_of_a_model_adds_its_answers(tmp_path: Path) -> None:
    found = taken(tmp_path, one__json=json.dumps(log(sample())), two__json=json.dumps(log(sample())))
    assert found.said("response") == [(1,), (2,)]


def test_nan_is_no_score_and_several_values_are_several_metrics(tmp_path: Path) -> None:
    scores = {"judge": {"value": float("nan")}, "both": {"value": {"a": 2, "b": 3}}}
    found = taken(tmp_path, log__json=json.dumps(log(sample(scores=scores))))
    assert found.said("metric", "value", "state") == [
        ("judge", None, "no_score"),
        ("both.a", 2, None),
        ("both.b", 3, None),
    ]


def test_the_model_that_graded_is_the_judge(tmp_path: Path) -> None:
    graded = {"scores": [{"name": "match", "params": {"grader_model": {"model": "google/g"}}}]}
    found = taken(tmp_path, log__json=json.dumps(log(sample(), results=graded)))
    assert found.said("judge") == [("google/g",)]


def test_reasoning_attachments_and_parts_that_are_no_text(tmp_path: Path) -> None:
    content = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "attachment://x"}]
    asked = [
        {"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image", "image": "data:"}]}
    ]
    given = sample(
        input=asked,
        attachments={"x": "long text"},
        output={"choices": [{"message": {"role": "assistant", "content": content}}]},
    )
    found = taken(tmp_path, log__json=json.dumps(log(given)))
    (response,) = found.rows[0]["model_outputs"][0]["responses"]
    assert response == {"content": "long text", "reasoning_content": "Hm."}
    assert found.left_out == {"part_dropped": 1}


def test_a_sample_that_failed_is_left_out_with_its_error(tmp_path: Path) -> None:
    failed = sample("s2", output={"choices": []}, error={"message": "timeout"}, scores=None)
    found = taken(tmp_path, log__json=json.dumps(log(sample(), failed)))
    assert (len(found.rows), found.left_out) == (1, {"no_answer": 1, "row_without_answer": 1})


def test_an_archive_that_unfolds_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(archive(log(sample(input="x" * 3_000_000))))
    file = SourceFile.of(path)
    source = recognise([file])
    assert source is not None
    imported = source.read([file], Options(limits=Limits(unpacked_bytes=1_000_000)))
    assert [row.data for row in imported.rows] == []
    assert imported.left_out_counts["too_large"] == 1


def test_a_damaged_archive_is_a_sentence_and_no_traceback(tmp_path: Path) -> None:
    whole = archive(log(sample()))
    at = whole.index(b"header.json") + len("header.json")
    path = tmp_path / "log.eval"
    path.write_bytes(whole[:at] + b"\xff" * 20 + whole[at + 20 :])
    file = SourceFile.of(path)
    source = recognise([file])
    assert source is not None
    with pytest.raises(NotUsable, match="archive_broken"):
        list(source.read([file], Options()).rows)
