"""Published data sets, if this machine has them."""

import json
from pathlib import Path

import pytest

from datasets.core.attach import AttachWork, attach
from datasets.core.csv_reader import records_in
from datasets.core.reader import read
from tests.real_data import real_data

SPECTRUM = ("comma_in_quotes", "empty", "empty_crlf", "escaped_quotes", "json", "newlines", "newlines_crlf")
SPECTRUM += ("quotes_and_newlines", "simple", "simple_crlf", "utf8")


@pytest.mark.parametrize("name", SPECTRUM)
def test_csv_spectrum_is_read_as_it_says(name: str) -> None:
    source = real_data(f"csv-spectrum/csvs/{name}.csv").read_bytes()
    if name.endswith(
        "_crlf"
    ):  # some copies have lost the CRLF line ends that the name and the expected rows assume
        source = source.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    header, *found = [record.fields for record in records_in(source.decode())]
    expected = json.loads(real_data(f"csv-spectrum/json/{name}.json").read_bytes())
    assert [dict(zip(header, fields, strict=True)) for fields in found] == expected


@pytest.mark.parametrize(
    ("name", "fmt", "rows", "counts"),
    [
        ("belle_zh_upload.jsonl", "infer_and_judge", 1000, {"ref_answer.some_missing": 1}),
        ("arena_hard_v01_upload.jsonl", "judge_only", 500, {}),
        (
            "mtbench_llama2_upload.jsonl",
            "judge_only",
            80,
            {"response.blank": 1, "ref_answer.some_missing": 1},
        ),
        ("mtbench_llama2_legacy_2turn.llama2_chat_7b.jsonl", "legacy_jsonl", 80, {}),
    ],
)
def test_a_published_set_is_read_whole(name: str, fmt: str, rows: int, counts: dict[str, int]) -> None:
    result = read(real_data(name)).summary
    assert (result.format, result.rows, result.valid_rows, result.counts) == (fmt, rows, rows, counts)


def test_published_answers_come_out_as_they_went_in() -> None:
    file = real_data("arena_hard_v01_upload.jsonl")
    given = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
    for row, original in zip(read(file), given, strict=True):
        answers = [r for output in original.pop("model_outputs") for r in output["responses"]]
        assert [json.loads(text) for _, _, text in row.responses] == answers
        assert json.loads(row.data) == original


def test_each_models_legacy_file_answers_the_same_prompts(tmp_path: Path) -> None:
    first, second = (
        real_data(f"mtbench_llama2_legacy_2turn.{model}.jsonl") for model in ("llama2_7b", "llama2_chat_7b")
    )
    report = attach(
        AttachWork(
            first, "legacy_jsonl", second, tmp_path / "new", tmp_path / "left", model_name="llama2 chat"
        )
    )
    assert (report.matched, report.problems) == (80, {})
    assert (report.own_turns, report.last_only) == (80, 0)
    theirs = [json.loads(line)["conversation"] for line in second.read_text(encoding="utf-8").splitlines()]
    for row, turns in zip((tmp_path / "new").read_text(encoding="utf-8").splitlines(), theirs, strict=True):
        response = json.loads(row)["model_outputs"][0]["responses"][0]
        assert response["earlier_messages"][1]["content"] == turns[0]["response"]
        assert response["content"] == turns[1]["response"]
