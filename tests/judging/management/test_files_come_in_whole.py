"""Files that people have come in whole, or what is missing is named with its line."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.datasets.core.imports.inspect_logs import archive, log, sample
from tests.datasets.core.imports.reading import lines
from tests.datasets.core.imports.tabular import parquet, xlsx
from tests.judging.management.taking import check, take

FILES = Path(__file__).parents[2] / "datasets" / "files"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FILES / "expected.json").read_text())
LATE = 226
"""Some fields occur only in the last four of 230 records."""


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_file_comes_in_whole_or_says_what_is_missing(tmp_path: Path, name: str) -> None:
    huge = "question,answer\nq0," + "x" * 200_000 + "\nq1,a\n"
    content = huge.encode() if name == "huge_first.csv" else (FILES / name).read_bytes()
    check(tmp_path, name, content, **EXPECTED[name])


def records(late: dict[str, Any], **always: Any) -> list[dict[str, Any]]:
    """230 records, of which the last four have further fields."""
    made = [{"question": f"q{number}", "answer": "a"} | always for number in range(230)]
    return [record | (late if number >= LATE else {}) for number, record in enumerate(made)]


def inside(key: str, made: list[dict[str, Any]], **beside: Any) -> list[dict[str, Any]]:
    return [{"id": number, key: record} | beside for number, record in enumerate(made)]


def chat(number: int) -> list[dict[str, str]]:
    return [{"from": "human", "value": f"q{number}"}, {"from": "gpt", "value": "a"}]


def completion(number: int) -> dict[str, Any]:
    body = {"model": "gpt", "choices": [{"message": {"role": "assistant", "content": "a"}}]}
    return {"custom_id": f"c{number}", "response": {"body": body}}


def harness(number: int, **more: Any) -> dict[str, Any]:
    asked = {"doc": {"q": f"q{number}"} | more, "target": "t", "arguments": [[f"q{number}", {}]]}
    return {"doc_id": number, **asked, "resps": [["a"]], "filtered_resps": ["a"], "exact_match": 1.0}


def evaluated(number: int, **more: Any) -> dict[str, Any]:
    test = {"promptIdx": 0, "testIdx": number, "testCase": {}, "provider": {"id": "p"}}
    return {
        **test,
        **{"prompt": {"raw": f"q{number}"}, "vars": {"x": number} | more},
        **{"response": {"output": "a"}, "gradingResult": {"score": 1}},
    }


def sheet(rows: list[dict[str, Any]]) -> list[list[Any]]:
    names = ["question", "answer", "topic", "reference"]
    return [names, *([row.get(name) for name in names] for row in rows)]


BOTH = {"topic": "t", "reference": "r"}
LATE_FILES: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "array.json": (json.dumps(records(BOTH)), {"references": 4}),
    "spread.json": ("\n".join(json.dumps(one, indent=1) for one in records(BOTH)), {"references": 4}),
    "table.xlsx": (xlsx(sheet(records(BOTH))), {"references": 4}),
    "table.parquet": (
        parquet(**{name: list(column) for name, *column in zip(*sheet(records(BOTH)), strict=True)}),
        {"references": 4},
    ),
    "sharegpt.jsonl": (
        lines(*({"conversations": chat(n)} | (BOTH if n >= LATE else {}) for n in range(230))),
        {"answers": 0, "references": 4},
    ),
    "batch.jsonl": (lines(*(completion(n) | (BOTH if n >= LATE else {}) for n in range(230))), {}),
    "samples_x.jsonl": (lines(*(harness(n, **(BOTH if n >= LATE else {})) for n in range(230))), {}),
    "promptfoo.jsonl": (lines(*(evaluated(n, **(BOTH if n >= LATE else {})) for n in range(230))), {}),
    "label_studio.json": (
        json.dumps(inside("data", records(BOTH), annotations=[{"result": [], "completed_by": 1}])),
        {"references": 4},
    ),
    "argilla.json": (json.dumps(inside("fields", records(BOTH), responses={})), {"references": 4}),
}


def test_a_key_that_is_not_imported_is_listed_with_its_line_and_number(tmp_path: Path) -> None:
    given = [evaluated(n) | ({"tone": "dry"} if n >= LATE else {}) for n in range(230)]
    found = check(tmp_path, "promptfoo.jsonl", lines(*given), rows=230, answers=230, lines=[LATE + 1])
    (key,) = (one for one in found["left_out"] if "tone" in one["message"])
    assert (key["line"], key["code"]) == (LATE + 1, "key_unread")
    assert key["message"].endswith("that hold it. (tone × 4)")


NAN_DOCUMENTS = {
    "out.json": json.dumps(
        {"results": {"version": 3, "results": [evaluated(0) | {"latencyMs": float("nan")}]}}, indent=1
    ),
    "log.json": json.dumps(log(sample(metadata={"level": float("inf")}))),
    "log.eval": archive(log(sample(metadata={"level": float("-inf")}))),
}


@pytest.mark.parametrize("name", NAN_DOCUMENTS)
def test_nan_in_a_whole_document_is_read_as_null_and_said(tmp_path: Path, name: str) -> None:
    check(tmp_path, name, NAN_DOCUMENTS[name], rows=1, answers=1, says=["NaN"], repair="nan_to_null")


@pytest.mark.parametrize("name", LATE_FILES)
def test_what_first_occurs_late_comes_in(tmp_path: Path, name: str) -> None:
    content, expected = LATE_FILES[name]
    check(tmp_path, name, content, **{"rows": 230, "answers": 230, "fields": {"topic": 4}} | expected)


@pytest.mark.parametrize(("given", "references"), [([None, None], 0), ([None, "r"], 1), (["", 0], 2)])
def test_a_reference_that_is_null_is_none(tmp_path: Path, given: list[Any], references: int) -> None:
    asked = [{"role": "user", "content": "q"}]
    content = lines(*({"messages": asked, "ref_answer": one} for one in given))
    found = check(tmp_path, "rows.jsonl", content, rows=2, references=references)
    assert found["fields"]["ref_answer"] == 2  # of a field, the rows that have it, null or not


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "models.csv",
            "question,answer_x,answer_y\n" + "".join(f"q{n},a,{'b' * (n >= LATE)}\n" for n in range(230)),
        ),
        ("label_studio.json", json.dumps(inside("data", records({"answer_2": "b"}), annotations=[]))),
        ("outputs.jsonl", lines(*records({"answer_2": {"text": "b"}}))),
    ],
)
def test_a_model_that_first_answers_late_comes_in(tmp_path: Path, name: str, content: str) -> None:
    check(tmp_path, name, content, rows=230, answers=234)


def quoted(sign: str, at: int, *, all_quoted: bool) -> str:
    """Eight records with a header; the answer of one has a quote that is never closed."""
    quote = '"' if all_quoted else ""
    opened = [
        f'q{n}{sign}"a{n}' if n == at else f"{quote}q{n}{quote}{sign}{quote}a{n}{quote}" for n in range(8)
    ]
    return "\n".join([f"question{sign}answer", *opened]) + "\n"


@pytest.mark.parametrize("all_quoted", [False, True])
@pytest.mark.parametrize("at", [0, 4, 7])
@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_after_an_unclosed_quote_reading_goes_on(
    tmp_path: Path, sign: str, at: int, all_quoted: bool
) -> None:
    content = quoted(sign, at, all_quoted=all_quoted)
    found = check(tmp_path, "t.csv", content, rows=7, answers=7, says=["quote"])
    assert [(one["line"], one["code"]) for one in found["left_out"]] == [(at + 2, "quote_never_ends")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('question,answer\n"q0,a0\nq1,"a 1"\n"q2",a2\n', {"rows": 2, "lines": [2]}),
        ('question,answer\n"q\n0","a0"\nq1,"a\n""1"""\n', {"rows": 2, "answers": 2}),
        ('prompt,response\nq0,"r0\nq1,r1\n"q2","r2"\n', {"rows": 3, "references": 2, "lines": [2]}),
        ("question,answer\nq0,a0\nq1\nq2,a2\nq3,a3,x\n", {"rows": 2, "lines": [3, 5]}),
        ("question\tanswer\nq0\nq1\ta1\n", {"rows": 1, "lines": [2]}),
        ("question,answer\nq0,a0,\nq1,a1,\n", {"rows": 2, "answers": 2}),
    ],
)
def test_a_record_that_does_not_fit_is_named(tmp_path: Path, content: str, expected: dict[str, Any]) -> None:
    check(tmp_path, "t.csv", content, **expected)


def asked(**fields: list[Any]) -> str:
    """A record for each of the values, each with a question of its own."""
    rows = zip(*fields.values(), strict=True)
    return lines(*({"question": f"q{n}"} | dict(zip(fields, row, strict=True)) for n, row in enumerate(rows)))


GOOD, BAD = (
    [{"role": "user", "content": "q"}, {"role": "assistant", "content": text}] for text in ("g", "b")
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (asked(answer=["a", {"content": "b"}, {"output": "c"}, 4]), {"answers": 4}),
        (asked(answer=["a", {"x": 1}, ["y", "z"]]), {"answers": 3, "says": ["JSON"], "lines": [2, 3]}),
        (asked(answer_a=[{"text": "a"}, "b"], answer_b=["c", "d"]), {"answers": 4}),
        (lines({"question": "q", "answer": "a"}, {"question": {"text": "r"}, "answer": "b"}), {"answers": 2}),
        (asked(choices=[["a", "b"]] * 2, answer=["0", "1"]), {"answers": 0, "references": 2}),
        (asked(choices=[["a", "b"]] * 2, answer=[0, 2]), {"references": 1, "lines": [2]}),
        (asked(chosen=["good"], rejected=["bad"]), {"answers": 2}),
        (lines({"chosen": GOOD, "rejected": BAD}), {"answers": 2}),
        (lines({"prompt": "q", "chosen": GOOD, "rejected": BAD, "score": 1}), {"answers": 2}),
    ],
)
def test_answers_of_several_shapes_are_answers(
    tmp_path: Path, content: str, expected: dict[str, Any]
) -> None:
    check(tmp_path, "t.jsonl", content, rows=content.count("\n"), **expected)


def test_a_choice_is_the_reference_in_words(tmp_path: Path) -> None:
    check(tmp_path, "t.jsonl", asked(choices=[["no", "yes"]], answer=[1]))
    row = json.loads((tmp_path / "rows.out").read_text())
    assert (row["ref_answer"], row["choices"]) == ("yes", ["no", "yes"])


def test_a_preference_s_answers_are_the_last_replies(tmp_path: Path) -> None:
    check(tmp_path, "t.jsonl", lines({"chosen": GOOD, "rejected": BAD}))
    row = json.loads((tmp_path / "rows.out").read_text())
    named = {one["model_name"]: one["responses"][0]["content"] for one in row["model_outputs"]}
    assert (row["messages"], named) == ([{"role": "user", "content": "q"}], {"chosen": "g", "rejected": "b"})


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("首都在哪裡,臺北", "big5"),
        ("日本の首都は,東京です", "shift_jis"),
        ("Où est né Molière?,à Paris é", "latin-1"),
        ("“Quoted” — naïve?,€5", "cp1252"),
        ("Привет как дела,хорошо", "koi8-r"),
        ("한국의 수도는,서울", "euc-kr"),
        ("一加一等于几？,二", "gb18030"),
    ],
)
def test_bytes_decoded_by_a_guess_are_said_to_be(tmp_path: Path, text: str, codec: str) -> None:
    content = f"question,answer\n{text}\n".encode(codec)
    found = check(tmp_path, "t.csv", content, rows=1, answers=1, says=["encoding"])
    assert "file.converted" in [one["code"] for one in found["findings"]]
    named, _status, _said = take(tmp_path / "t.csv", encoding=codec)
    row = json.loads((tmp_path / "rows.out").read_text())
    assert [row["messages"][0]["content"], named["encoding"]] == [text.split(",")[0], codec]
    assert "file.converted" not in [one["code"] for one in named["findings"]]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("t.jsonl", lines({"question": "Où", "answer": "é"}).encode("utf-16-le"), {"answers": 1}),
        ("t.csv", "question,answer\n一加一,二\n再见,三\n".encode("utf-16-be"), {"rows": 2}),
        ("t.tsv", "question\tanswer\nq\ta\n".encode("utf-16"), {"answers": 1}),
        ("t.jsonl", lines({"messages": [{"role": "user", "content": "q"}]}).encode("utf-16-le"), {"rows": 1}),
        ("t.csv", "\ufeff\ufeffquestion,answer\nq,a\n".encode("utf-16-le"), {"answers": 1}),
        ("t.jsonl", "\ufeff\ufeff" + lines({"question": "q", "answer": "a"}), {"answers": 1}),
        ("t.csv", "\ufeff\ufeffprompt,response\nq,a\n", {"references": 1}),
        ("t.csv", "问题\n一加一等于几？\n".encode("gb18030"), {"rows": 1, "says": ["GB18030"]}),
        ("t.csv", "prompt,response\n一加一,二\n".encode("gb18030"), {"references": 1, "says": ["GB18030"]}),
        ("t.csv", "问题,回答\n一,二\n".encode() + b"q\xff,a\n", {"rows": 1, "lines": [3]}),
        ("t.csv", "question,answer\rq0,a0\rq1,a1", {"rows": 2, "answers": 2}),
        ("t.csv", 'question,answer\r"q\n0",a0\rq1,a1\r', {"rows": 2, "answers": 2}),
        ("t.csv", 'question,answer\n"q\r0",a0\nq1,a1\n', {"rows": 2, "answers": 2}),
        ("t.jsonl", lines({"question": "q"}, {"question": "r"}).replace("\n", "\r"), {"rows": 2}),
        ("t.csv", "prompt,response\rq0,r0\rq1,r1\r", {"rows": 2, "references": 2}),
        ("t.csv.gz", gzip.compress(b"question,answer\nq,a\n", mtime=0), {"answers": 1}),
    ],
)
def test_text_is_read_however_it_is_written(
    tmp_path: Path, name: str, content: str | bytes, expected: dict[str, Any]
) -> None:
    check(tmp_path, name, content, **expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("sep=\t\nquestion\tanswer\nq0\ta0\n", {"answers": 1}),
        ('\ufeff"sep=|"\r\nquestion|answer\r\nq0|a0\r\n', {"answers": 1}),
        ("sep=;\nprompt;response\nq0;r0\n", {"references": 1}),
        ("My survey\n\nprompt,response\nq0,r0\n", {"rows": 1, "references": 1, "lines": [1]}),
        ("Survey, of May\nSince 2024\n\nquestion,answer\nq0,a0\n", {"answers": 1, "lines": [1, 2]}),
        ("Survey of May,,\nquestion,answer,topic\nq0,a0,t\n", {"answers": 1, "lines": [1]}),
        ("Umfrage\n\nquestion;answer\nq0;a0\n", {"answers": 1, "lines": [1]}),
        ("prompt\tresponse\nq0\tr0\n", {"references": 1}),
        ("Prompt;Response;System\nq0;r0;s\n", {"references": 1}),
        ("问题\n一加一，等于几？\n你好, 再见\n", {"rows": 2}),
        ('question\nWhat, then?\n"a ""b"""\n', {"rows": 2}),
        ("prompt\nq0\nq1\n", {"rows": 2}),
        ("prompt;response;model\nq0;a;m1\nq0;b;m2\n", {"references": 2, "says": ["--columns"]}),
    ],
)
def test_a_table_s_header_is_found(tmp_path: Path, content: str, expected: dict[str, Any]) -> None:
    check(tmp_path, "t.csv", content, **expected)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "t.jsonl",
            '{"question":"q","s":NaN}\n{"question":"r","s":1}\n',
            {"rows": 2, "repair": "nan_to_null"},
        ),
        ("t.jsonl", '{"question":"q","s":-Infinity}\n', {"rows": 1, "says": ["Infinity"]}),
        ("t.json", '[{"messages":[{"role":"user","content":"q"}],"x":NaN}]', {"repair": "nan_to_null"}),
        ("t.json", '[\n {"question":"q",\n "x":NaN}\n]', {"rows": 1, "repair": "nan_to_null"}),
        ("t.jsonl", '{"conversation":[{"prompt":"p","response":"r"}],"x":NaN}\n', {"repair": "nan_to_null"}),
        ("t.jsonl", "{'question': 'q', 'answer': None}\n", {"rows": 1, "repair": "python_literal"}),
        ("t.jsonl", "{'messages': [{'role': 'user', 'content': 'q'}]}\n", {"repair": "python_literal"}),
        ("t.jsonl", "oops\n" + lines({"question": "q"}, {"question": "r"}), {"rows": 2, "lines": [1]}),
        ("t.json", '[{"question":"q"},{"question" "r"},{"question":"s"}]', {"rows": 1, "lines": [2]}),
        ("t.jsonl", '{"question":"q","answer":"a","answer":"b"}\n', {"rows": 1, "says": ["duplicate"]}),
    ],
)
def test_what_is_nearly_json_is_read_with_a_finding(
    tmp_path: Path, name: str, content: str, expected: dict[str, Any]
) -> None:
    check(tmp_path, name, content, **expected)


def zipped(name: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, "question,answer\nq,a\n")
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.txt", "hello\nworld\n", "not a table"),
        ("t.tsv", "question\tanswer\n", "no rows"),
        ("t.csv", "prompt,response\n", "no rows"),
        ("t.csv", "\n\n", "no rows"),
        ("t.jsonl", "", "empty"),
        ("t.json", "[]", "no rows"),
        ("t.xlsx", xlsx([["question", "answer"]]), "no rows"),
        ("t.zip", zipped("t.csv"), "unpack"),
        ("t.pdf", b"%PDF-1.4 ...", "PDF"),
    ],
)
def test_where_nothing_is_usable_a_sentence_says_why(
    tmp_path: Path, name: str, content: str | bytes, says: str
) -> None:
    found = check(tmp_path, name, content, says=[says])
    assert found.get("valid_rows", 0) == 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (xlsx([["Survey"], [], ["question", "answer"], ["q", "a"]]), {"rows": 1, "lines": [1]}),
        (
            xlsx([["question", "answer"], ["q", "a"]], [["question", "answer"], ["r", "b"]]),
            {"says": ["sheet"]},
        ),
        (xlsx([["question"], ["q"], ["r"]]), {"rows": 2}),
        (xlsx([["question", "answer"], ["q", "a", "x"], ["r", "b"]]), {"rows": 1, "lines": [2]}),
    ],
)
def test_a_workbook_comes_in_whole(tmp_path: Path, content: bytes, expected: dict[str, Any]) -> None:
    check(tmp_path, "t.xlsx", content, **expected)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (parquet(question=["q", "r"], choices=[["a", "b"]] * 2, answer=[0, 1]), {"rows": 2, "references": 2}),
        (parquet(prompt=[GOOD[:1]], chosen=[GOOD[1:]], rejected=[BAD[1:]]), {"rows": 1, "answers": 2}),
        (parquet(question=["q", "r"], score=[1.0, float("inf")]), {"rows": 2, "lines": [2]}),
    ],
)
def test_parquet_comes_in_whole(tmp_path: Path, content: bytes, expected: dict[str, Any]) -> None:
    check(tmp_path, "t.parquet", content, **expected)
