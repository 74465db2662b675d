"""Repairs fix what they name, change nothing else, and are idempotent."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from datasets.core.decode import Unreadable
from datasets.core.reader import Summary, read
from datasets.core.repair.kinds import REPAIRS, WITHOUT_VALUE
from tests.datasets.core.helpers import ANSWER, DEFAULT, PRINTED, USER, jsonl, judged, repaired, row

TRICKY = row(
    url="http://x//y", note="a, ]", sign="# not a comment", sep="a\u2028b", big=12345678901234567890123
)


def validated(folder: Path, source: bytes) -> Summary:
    file = folder / "validated"
    file.write_bytes(source)
    return read(file).summary


def test_the_example_of_the_documentation_comes_out_right(tmp_path: Path) -> None:
    assert validated(tmp_path, PRINTED.encode()).counts == {"file.not_jsonl": 1}
    (line,) = repaired(tmp_path, PRINTED.encode()).decode().splitlines()
    repaired_row = json.loads(line)
    assert list(repaired_row) == [
        *("messages", "ref_answer", "id", "max_tokens", "temperature", "top_p", "top_k", "model_outputs")
    ]
    assert [len(output["responses"]) for output in repaired_row["model_outputs"]] == [2, 2]


def test_the_fixed_example_is_valid_and_judge_only(tmp_path: Path) -> None:
    result = validated(tmp_path, repaired(tmp_path, PRINTED.encode()))
    assert (result.format, result.rows, result.valid_rows, result.counts) == ("judge_only", 1, 1, {})


@pytest.mark.parametrize("name", REPAIRS)
def test_a_fine_file_comes_out_byte_for_byte(name: str, tmp_path: Path) -> None:
    source = b"\xef\xbb\xbf" + jsonl(TRICKY, judged(url="http://x", n=1.50)) + b"\r\n" + jsonl(row(a=1))[:-1]
    assert repaired(tmp_path, source, name, value="lark") == source


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("strip_comments", '// note\n{"a": "//"} // note\n', '{"a": "//"}\n'),
        ("strip_comments", '{"a": 1} # note\r\n', '{"a": 1}\r\n'),
        ("strip_comments", '{"a": 1 /* one */, "b": "/* text */"} // x\n', '{"a": 1 , "b": "/* text */"}\n'),
        ("strip_comments", "/* note */\n[1/* x */2]\n", "[1 2]\n"),
        ("strip_comments", '{"a": 1} /* unfinished // x\n', '{"a": 1} /* unfinished // x\n'),
        (
            "strip_comments",
            '{ /* a\n// b\n{"c": 1}\n*/ "d": 1\n, "e": 2}\n',
            '{\n "d": 1\n, "e": 2}\n',
        ),
        ("strip_comments", '{\r\n/* a\n b */ "c": 1\r\n}\n/* d', '{\r\n "c": 1\r\n}\n/* d'),
        ("to_jsonl", '/* a\n" ] */ {"a": /* b\n{ */ 1\n}\n', '{"a": 1}\n'),
        ("strip_comments", "{'a': 'http://x'}\n", "{'a': 'http://x'}\n"),
        ("strip_comments", '{"a": "unfinished // x\n', '{"a": "unfinished // x\n'),
        ("strip_trailing_commas", '{"a": [1, 2, ], }\n', '{"a": [1, 2 ] }\n'),
        ("strip_trailing_commas", '{"a": ",]"},\n{"b": 1},\n', '{"a": ",]"}\n{"b": 1}\n'),
        ("strip_trailing_commas", '{"a": [1,,]}\n', '{"a": [1,,]}\n'),
        ("strip_comments", "{\"a\": /* x */ 'b'}\n", "{\"a\":  'b'}\n"),
        ("strip_trailing_commas", "{\"a\": [1,], 'b': [1,]}\n", "{\"a\": [1], 'b': [1,]}\n"),
        (
            "fix_role",
            '{"messages": [{"role": "Usr", "content": "?"}]}\n',
            '{"messages": [{"role": "user", "content": "?"}]}\n',
        ),
        (
            "fix_role",
            '{"messages": [{"role": "bot", "content": "usr"}]}\n',
            '{"messages": [{"role": "bot", "content": "usr"}]}\n',
        ),
        ("strip_trailing_commas", "{'a': ',]',}\n", "{'a': ',]',}\n"),
        ("strip_trailing_commas", '{"a": [1,\n]\n}\n', '{"a": [1\n]\n}\n'),
        ("to_jsonl", '[{"a":  1.0},\n{"b": 2}]', '{"a":  1.0}\n{"b": 2}\n'),
        ("to_jsonl", '{\n "a": [1,\n 2]}\n{"b":3}', '{"a": [1, 2]}\n{"b":3}\n'),
        ("to_jsonl", '{"a": // x\n1,\n}', '{"a": 1}\n'),
    ],
)
def test_a_repair_does_what_it_says(name: str, before: str, after: str, tmp_path: Path) -> None:
    assert repaired(tmp_path, before.encode(), name).decode() == after


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            "rename_key",
            '{"mesages":[ {"rol": "user", "contents": "\\u0061"} ], "ref_anwser":1.50}',
            '{"messages":[ {"role": "user", "content": "\\u0061"} ], "ref_answer":1.50}',
        ),
        (
            "rename_key",
            '{"messages": [], "model_ouputs": [{"model_nmae": "m", "respones": [{"contnt": "a"}]}]}',
            '{"messages": [], "model_outputs": [{"model_name": "m", "responses": [{"content": "a"}]}]}',
        ),
        ("rename_key", '{"conversations": [{"Prompt": "?"}]}', '{"conversation": [{"prompt": "?"}]}'),
        ("rename_key", '{"mesages": [1], "a": [}', '{"mesages": [1], "a": [}'),
        (
            "messages_to_list",
            '{"messages": "How \\ud83d many?", "n": 1.50}',
            '{"messages": [{"role": "user", "content": "How \\ud83d many?"}], "n": 1.50}',
        ),
        (
            "messages_to_list",
            r'{"messages": "[{\"role\":\n\"user\", \"content\": \"?\", \"n\": 1.50}]"}',
            '{"messages": [{"role":"user","content":"?","n":1.50}]}',
        ),
        (
            "messages_to_list",
            r'{"messages": "{\"role\": \"user\", \"content\": \"?\"}"}',
            '{"messages": [{"role":"user","content":"?"}]}',
        ),
        (
            "messages_to_list",
            '{"messages": "[1, 2]"}',
            '{"messages": [{"role": "user", "content": "[1, 2]"}]}',
        ),
        (
            "model_outputs_to_list",
            '{"messages": [], "model_outputs": {"m1": "a\\n", "千问": ["b", {"content": "c", "x": 1.0}]}}',
            '{"messages": [], "model_outputs": [{"model_name": "m1", "responses": [{"content": "a\\n"}]}, '
            '{"model_name": "千问", "responses": [{"content": "b"}, {"content": "c", "x": 1.0}]}]}',
        ),
        (
            "model_outputs_to_list",
            '{"messages": [], "model_outputs": {"model_name": "m", "responses": [{"content": "a"}]}}',
            '{"messages": [], "model_outputs": [{"model_name": "m", "responses": [{"content": "a"}]}]}',
        ),
        (
            "rubric_from_text",
            '{"messages": [], "rubric": "1. Names a dose\\n\\n- 3.5 mg at most", "n": 1.50}',
            '{"messages": [], "rubric": ["Names a dose", "3.5 mg at most"], "n": 1.50}',
        ),
        (
            "rubric_from_text",
            r'{"messages": [], "rubric": "[{\"criterion\": \"a\", \"points\": 2}]"}',
            '{"messages": [], "rubric": [{"criterion": "a", "points": 2}]}',
        ),
        (
            "rubric_points",
            '{"messages": [], "rubric": [{"criterion": "a", "points": "-2.5"}, {"children": [{"weight": "3 分"}]}]}',
            '{"messages": [], "rubric": [{"criterion": "a", "points": -2.5}, {"children": [{"weight": 3}]}]}',
        ),
    ],
)
def test_keys_and_lists_are_mended_and_all_else_stays(
    name: str, before: str, after: str, tmp_path: Path
) -> None:
    assert repaired(tmp_path, f"{before}\n".encode(), name).decode() == f"{after}\n"


@pytest.mark.parametrize(
    "unclear",
    [
        {"messages": ""},
        {"messages": 7},
        {"messages": USER},
        {"messages": '[{"from": "human", "value": "?"}]'},
        {"model_outputs": {}},
        {"model_outputs": {"m": 5}},
        {"model_outputs": {"m": "a", "n": None}},
        {"model_outputs": {" ": "a"}},
        {"model_outputs": {"model_name": "m", "response": "a"}},
    ],
)
def test_what_is_no_list_and_unclear_is_offered_no_repair(unclear: dict[str, Any], tmp_path: Path) -> None:
    source = jsonl(judged(), judged(), judged() | unclear)
    wrong = [one.repair for one in validated(tmp_path, source).findings if one.code.endswith("not_list")]
    assert wrong in ([None], []), "an empty object is no list either"
    assert repaired(tmp_path, source) == source


def test_a_file_of_misspelt_keys_is_judged_after_the_repair(tmp_path: Path) -> None:
    wrong = {"mesages": "How many?", "ref_anwser": 4, "model_ouputs": {"lark": "Four.", "wren": "Five."}}
    after = validated(tmp_path, repaired(tmp_path, jsonl(wrong, wrong | {"id": 2})))
    assert (after.format, after.valid_rows, after.fields) == ("judge_only", 2, {"ref_answer": 2, "id": 1})
    assert after.models == {name: {"rows": 2, "responses": 2} for name in ("lark", "wren")}


@pytest.mark.parametrize("encoding", ["utf-16", "gb18030"])
def test_other_encodings_become_utf8(encoding: str, tmp_path: Path) -> None:
    source = jsonl(row(note="问题,答案与历史"))
    assert repaired(tmp_path, source.decode().encode(encoding), "to_utf8") == source


def test_an_archive_comes_out_unpacked(tmp_path: Path) -> None:
    assert repaired(tmp_path, gzip.compress(jsonl(row()))) == jsonl(row())


def test_a_csv_with_what_looks_like_comments_is_left_alone(tmp_path: Path) -> None:
    source = b"prompt,response\n# one,two // three\n"
    assert repaired(tmp_path, source) == source


def outputs(*entries: dict[str, Any]) -> bytes:
    return jsonl(judged(model_outputs=list(entries), n=10**30))


def entry(name: str, *contents: str, **more: Any) -> dict[str, Any]:
    return {"model_name": name, "responses": [{"content": content} for content in contents], **more}


def merge(folder: Path, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    repaired_row = json.loads(repaired(folder, outputs(*entries), "merge_models"))
    assert repaired_row["n"] == 10**30
    return repaired_row["model_outputs"]  # type: ignore[no-any-return]


def test_two_entries_of_a_model_become_one_with_all_answers(tmp_path: Path) -> None:
    given_entries = (entry("lark", "a"), entry("wren", "b"), entry("lark", "c", "d"), entry("lark"))
    assert merge(tmp_path, *given_entries) == [entry("lark", "a", "c", "d"), entry("wren", "b")]


def test_further_keys_are_kept_unless_they_contradict(tmp_path: Path) -> None:
    assert merge(tmp_path, entry("lark", "a"), entry("lark", "b", t=1)) == [entry("lark", "a", "b", t=1)]
    apart = (entry("lark", "a", t=2), entry("lark", "b", t=1))
    assert merge(tmp_path, *apart) == list(apart)


def test_names_that_are_similar_become_the_chosen_one(tmp_path: Path) -> None:
    source = outputs(entry("Qwen-3", "a"), entry("lark", "Qwen-3"))
    after = repaired(tmp_path, source, "unify_model_names", value="qwen 3")
    assert after == source.replace(b'"model_name": "Qwen-3"', b'"model_name": "qwen 3"')


def test_a_name_is_written_as_it_is_spelt(tmp_path: Path) -> None:
    source = outputs(entry("千问-3", "a"))
    after = repaired(tmp_path, source, "unify_model_names", value="千问 3")
    assert '"model_name": "千问 3"'.encode() in after


def test_what_ends_early_is_one_line_and_what_follows_is_split_too(tmp_path: Path) -> None:
    after = repaired(tmp_path, b'[{"a":\n1},\n{"b": 2}, {"c": 3\n{"d": 4}]\n', "to_jsonl")
    assert after == b'{"a": 1}\n{"b": 2}\n{"c": 3\n{"d": 4}\n'


def test_a_broken_object_is_one_line_with_what_is_passed_over_after_it(tmp_path: Path) -> None:
    flat = b'{\n"a": [\n{\n"b": 1\n}\n]\n}\n'
    after = repaired(tmp_path, flat + flat.replace(b"1", b"1 2") + flat, "to_jsonl")
    assert after.count(b"\n") == 2
    assert after.startswith(b'{"a": [{"b": 1}]}\n{"a": [{"b": 1\t2\t}')


def test_what_follows_a_broken_object_at_its_indentation_is_split_too(tmp_path: Path) -> None:
    after = repaired(tmp_path, b'[\n {\n  "a": 1 2\n },\n {\n  "b": 3\n }\n]\n', "to_jsonl")
    assert after == b'{"a": 1\t2\t}\n{"b": 3}\n'


def test_what_was_left_in_lines_is_repaired_line_by_line(tmp_path: Path) -> None:
    whole = jsonl(row())
    once = repaired(tmp_path, b"[\n]\n" + whole[:-1] + b", // x\n" + whole)
    assert once == whole + whole
    assert repaired(tmp_path, once) == once


def test_entries_beside_something_that_is_no_entry_are_merged_and_renamed_too(tmp_path: Path) -> None:
    source = jsonl(judged(model_outputs=[entry("lark", "a"), 7, entry("lark", "b")]))
    merged = json.loads(repaired(tmp_path, source, "merge_models"))["model_outputs"]
    assert merged == [entry("lark", "a", "b"), 7]
    assert b"Lark" in repaired(tmp_path, source, "unify_model_names", value="Lark")


BROKEN_LINES = [
    *('{"a": /* x */ "b", /* y */ c: 1}', "{'a': 1, // x", '{"a": 1 // it\'s', "# x", '{"a": [1,], “b”: 2}'),
    *('{"a": 1,} // x', "{'a': (1,), 'b': True,}", '{"a": /* x', '{"a": 1}, /* x', '[{"a": 1,}]', "{'a': b}"),
    json.dumps(row(messages=[{"role": "Usr", "content": "?"}, {"role": "bot", "content": "?"}])),
    json.dumps(judged(model_outputs=[ANSWER, ANSWER, {**ANSWER, "model_name": "wren"}, 7])),
    json.dumps(judged(model_outputs=[{**ANSWER, "t": 1}, {**ANSWER, "t": 2}])),
    json.dumps(judged(model_outputs=[ANSWER, {"model_name": "lark"}])),
]


@pytest.mark.parametrize("line", BROKEN_LINES)
def test_a_finding_promises_a_repair_if_and_only_if_it_changes_the_line(line: str, tmp_path: Path) -> None:
    source = jsonl(judged(), judged(id=1), line)
    findings = validated(tmp_path, source).findings
    promised = {one.repair for one in findings if one.line == 3 and one.repair}
    changing = {name for name in LINE_REPAIRS if repaired(tmp_path, source, name) != source}
    assert promised <= changing
    assert bool(promised) == bool(changing)


LINE_REPAIRS = ("strip_comments", "strip_trailing_commas", "python_literal", "fix_role", "merge_models")


lines = st.lists(
    st.sampled_from(
        [
            *(
                "{",
                "}",
                "[",
                "]",
                '"a": 1,',
                '"a": [1, 2,],',
                "// note",
                "# x",
                "/* x */",
                "/* x",
                "x */",
                '{"a": /* , */ 1, "/*": 2}',
                '{"a": "// x, ]"},',
                "\u2028",
                "\r",
            ),
            *(
                "'",
                "“",
                '"',
                ",",
                " ,",
                "",
                json.dumps(row()),
                json.dumps(judged()),
                json.dumps(judged()) + ", // x",
            ),
            json.dumps(judged(model_outputs=[ANSWER, ANSWER])),
            json.dumps(row(messages=[{"role": "Usr", "content": "?"}, 7])),
            *("{'a': (1,), 'b': None}", "{'a': True} # x"),
            *("prompt,response", "é,\xff"),
        ]
    ),
    max_size=7,
)


UNSPLIT = """{
  "model_outputs": [
    {
      "responses": []
    }
,
  ],
  "x": "%s"
}}, {""" % ("y" * 120)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines,
    st.sampled_from([*((name,) for name in REPAIRS), WITHOUT_VALUE]),
    st.sampled_from(["utf-8", "latin-1", "utf-16"]),
    st.sampled_from([DEFAULT, DEFAULT, 16, 40, 100, 400]),
)
@example(["[", '{"a": 1},', "[", '{"a": 1},'], ("to_jsonl",), "utf-8", DEFAULT)
@example(["[", "[{", "}]"], ("strip_trailing_commas", "to_jsonl"), "utf-8", DEFAULT)
@example(["{", "{", "prompt,response", '"a": [1, 2,],', ","], ("to_jsonl",), "utf-8", 40)
@example([UNSPLIT], ("strip_trailing_commas", "to_jsonl"), "utf-8", 300)
def test_a_repair_of_a_repaired_file_changes_nothing(
    tmp_path: Path, parts: list[str], names: tuple[str, ...], encoding: str, row_bytes: int
) -> None:
    source = "\n".join(parts).encode(encoding, "ignore")
    try:
        once = repaired(tmp_path, source, *names, value="Lark", row_bytes=row_bytes)
    except Unreadable:  # a row is longer than the limit, so its end is unknown
        return
    assert repaired(tmp_path, once, *names, value="Lark", row_bytes=row_bytes) == once


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())), min_size=1, max_size=3
    )
)
def test_what_is_printed_over_lines_reads_back_equal(tmp_path: Path, fields: list[dict[str, Any]]) -> None:
    given_rows = [{**one, **row()} for one in fields]
    source = json.dumps(given_rows, indent=1).encode()
    repaired_row = repaired(tmp_path, source).decode("utf-8", "surrogatepass").split("\n")[:-1]
    assert [list(json.loads(line).items()) for line in repaired_row] == [
        list(one.items()) for one in given_rows
    ]
