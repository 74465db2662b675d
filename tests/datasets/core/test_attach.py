"""Attached answers are matched to their rows, or listed with the reason why not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from datasets.core.answer_file import ModelNameWanted, NoAnswers
from datasets.core.attach import AttachReport, AttachWork, attach
from datasets.core.formats import Format
from datasets.core.reader import read


def jsonl(*rows: Any) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {**more, "messages": [{"role": "user", "content": text}]}


def reply(text: str, model: str = "新模型", **key: Any) -> dict[str, Any]:
    return {**key, "model_name": model, "responses": [{"content": text}]}


QUESTIONS = jsonl(ask("首都是哪里?", id="a"), ask("1+1=?", id="b"), ask("为什么天空是蓝色的?", id=3))


class Attached:
    """Result of attaching: the report, the new rows and the unmatched answers."""

    def __init__(self, folder: Path, base: bytes, given: bytes, fmt: Format, **options: Any) -> None:
        paths = [folder / name for name in ("base", "answers", "target", "unmatched")]
        paths[0].write_bytes(base)
        paths[1].write_bytes(given)
        self.report: AttachReport = attach(AttachWork(paths[0], fmt, *paths[1:], **options))
        self.text = paths[2].read_text()
        self.rows = [json.loads(line) for line in self.text.splitlines() if line.startswith('{"')]
        self.unmatched = [json.loads(line) for line in paths[3].read_text().splitlines()]
        self.reading = read(paths[2], format="judge_only").summary

    @property
    def answers(self) -> list[list[tuple[str, list[str]]]]:
        return [
            [(o["model_name"], [r["content"] for r in o["responses"]]) for o in row.get("model_outputs", [])]
            for row in self.rows
        ]


class Attacher:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, given: bytes, base: bytes = QUESTIONS, fmt: Format = "infer_and_judge", **options: Any
    ) -> Attached:
        return Attached(self.folder, base, given, fmt, **options)


@pytest.fixture
def attached(tmp_path: Path) -> Attacher:
    return Attacher(tmp_path)


def reasons(found: Attached) -> list[tuple[int, str]]:
    return [(entry["line"], entry["reason"]) for entry in found.unmatched]


def test_answers_find_their_rows_by_id_a_text_or_a_number(attached: Attacher) -> None:
    found = attached(jsonl(reply("散射", id=3), reply("北京", id="a"), reply("2", id="b")))
    assert found.answers == [[("新模型", ["北京"])], [("新模型", ["2"])], [("新模型", ["散射"])]]
    assert (found.report.matched, found.report.unmatched, found.report.unanswered) == (3, 0, 0)
    assert not found.reading.errors


def test_answers_find_their_rows_by_line(attached: Attacher) -> None:
    found = attached(jsonl(reply("2", line=3)), base=b"\n" + QUESTIONS)
    assert found.answers == [[], [("新模型", ["2"])], []]
    assert found.report.unanswered == 2


def test_answers_find_their_rows_by_the_same_prompt(attached: Attacher) -> None:
    given = jsonl({**ask("1+1=? \r\n"), "model_outputs": [reply("2", "x"), reply("二", "y")]})
    assert attached(given).answers[1] == [("x", ["2"]), ("y", ["二"])]


def test_content_in_parts_is_the_same_prompt(attached: Attacher) -> None:
    parts = [{"type": "text", "text": "1+"}, {"type": "text", "text": "1=?"}]
    given = jsonl(reply("2", messages=[{"role": "user", "content": parts}]))
    assert attached(given).report.matched == 1


def test_a_line_beats_messages_and_an_id_beats_a_line_unless_chosen_otherwise(attached: Attacher) -> None:
    given = jsonl(reply("?", id="b", line=1))
    assert [len(row) for row in attached(given).answers] == [0, 1, 0]
    assert [len(row) for row in attached(given, match_by="line").answers] == [1, 0, 0]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ({"id": "z"}, "unknown_id"),
        ({"id": "3"}, "unknown_id"),
        ({"line": 9}, "unknown_line"),
        ({"line": True}, "no_key"),
        ({"line": 0}, "no_key"),
        ({"line": 1e3}, "no_key"),
        ({"id": None}, "no_key"),
        ({}, "no_key"),
        ({"messages": [{"role": "user", "content": "other"}]}, "unknown_prompt"),
        ({"messages": [{"content": 5}]}, "no_key"),
        ({"messages": "x"}, "no_key"),
    ],
)
def test_what_finds_no_row_is_listed_with_the_reason(attached: Attacher, key: Any, reason: str) -> None:
    found = attached(jsonl(reply("x", **key), reply("y", id="a")))
    assert reasons(found) == [(1, reason)]
    assert found.report.problems == {reason: 1}
    assert json.loads(found.unmatched[0]["text"]) == reply("x", **key)


def test_an_id_or_prompt_that_several_rows_have_is_ambiguous(attached: Attacher) -> None:
    base = jsonl(ask("a", id=1), ask("a", id=1), ask("b", id=2))
    found = attached(jsonl(reply("x", id=1), reply("y", messages=ask("a")["messages"])), base=base)
    assert reasons(found) == [(1, "ambiguous_id"), (2, "ambiguous_prompt")]
    assert found.unmatched[0]["rows_found"] == 2


def test_the_same_model_twice_for_a_row_keeps_the_first(attached: Attacher) -> None:
    found = attached(jsonl(reply("first", id="a"), reply("second", line=1), reply("other", "m2", id="a")))
    assert found.answers[0] == [("新模型", ["first"]), ("m2", ["other"])]
    assert reasons(found) == [(2, "twice")]


def test_answers_that_a_row_already_has_are_not_replaced(attached: Attacher) -> None:
    base = jsonl(
        ask("a", id=1, model_outputs=[reply("old", "m")]), ask("b", id=2, model_outputs=[reply("old", "k")])
    )
    given = jsonl(reply("new", "m", id=1), reply("new", "m", id=2))
    found = attached(given, base=base, fmt="judge_only")
    assert found.answers == [[("m", ["old"])], [("k", ["old"]), ("m", ["new"])]]
    assert reasons(found) == [(1, "already_answered")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{bad", "json.invalid"),
        (b'[{"id": "a"}]', "json.not_object"),
        (b'{"id": "a", "responses": [{"content": "x"}]}', "model_name.missing"),
        (b'{"id": "a", "model_name": 5, "responses": [{"content": "x"}]}', "model_name.not_text"),
        (b'{"id": "a", "model_name": " ", "responses": [{"content": "x"}]}', "model_name.blank"),
        (b'{"id": "a", "model_name": "m"}', "responses.missing"),
        (b'{"id": "a", "model_name": "m", "responses": []}', "responses.empty"),
        (b'{"id": "a", "model_name": "m", "responses": "x"}', "responses.not_list"),
        (b'{"id": "a", "model_name": "m", "responses": ["x"]}', "response.not_object"),
        (b'{"id": "a", "model_name": "m", "responses": [{"content": 5}]}', "response.content_not_text"),
        (
            b'{"id": "a", "model_name": "m", "model_name": "n", "responses": [{"content": "x"}]}',
            "json.duplicate_key",
        ),
        (b'{"id": "a", "model_name": "m", "responses": [{"content": "\\ud800"}]}', "json.lone_surrogate"),
        (b'{"id": "a", "model_name": "m", "responses": [{"content": "\\u0000"}]}', "json.nul"),
        (b'{"id": "a", "model_name": "m", "responses": [{"content": "\xff"}]}', "file.encoding"),
        (b'{"id": "a", "model_outputs": 5}', "model_outputs.not_list"),
        (
            b'{"id":"a","model_outputs":[{"model_name":"m","responses":[{"content":"x"}]},'
            b'{"model_name":"m","responses":[{"content":"y"}]}]}',
            "model_name.twice_in_row",
        ),
    ],
)
def test_a_malformed_line_has_the_usual_finding(attached: Attacher, line: bytes, code: str) -> None:
    found = attached(line + b"\n" + jsonl(reply("y", id="b")))
    assert (reasons(found), found.report.counts) == ([(1, "bad_line")], {code: 1})
    assert found.unmatched[0]["finding"] == code
    assert found.report.matched == 1


def test_findings_are_at_the_place_in_the_line_itself(attached: Attacher) -> None:
    (found,) = attached(b'{"id": "a", "model_name": "m", "responses": [{"content": 5}]}\n').report.findings
    assert (found.line, found.column, found.path) == (1, 58, "responses[0].content")


def test_a_blank_answer_is_attached_with_a_warning(attached: Attacher) -> None:
    found = attached(jsonl(reply(" ", id="a")))
    assert (found.answers[0], found.report.counts) == ([("新模型", [" "])], {"response.blank": 1})


def test_rows_and_answers_keep_their_spelling(attached: Attacher) -> None:
    base = b'{"z": 1.10, "messages": [{"role":"user","content":"\\u9996"}], "id": 12345678901234567890123}\n'
    given = b'{"id": 12345678901234567890123, "model_name": "m", "responses": [{"content": "\\u90fd", "n": 1.0}]}\n'
    text = attached(given, base=base).text
    assert '"z":1.10' in text
    assert '"content":"\\u9996"' in text
    assert '[{"content": "\\u90fd", "n": 1.0}]' in text
    assert '"id":12345678901234567890123' in text


def test_rows_without_new_answers_stay_byte_for_byte(attached: Attacher) -> None:
    assert attached(jsonl(reply("x", id="a"))).text.splitlines()[1:] == QUESTIONS.decode().splitlines()[1:]


def test_bad_rows_of_the_version_stay_as_they_are_and_take_no_answers(attached: Attacher) -> None:
    found = attached(jsonl(reply("x", line=4), reply("y", line=1)), base=QUESTIONS + b"{bad\n")
    assert reasons(found) == [(1, "bad_row")]
    assert found.text.splitlines()[3] == "{bad"
    assert (found.report.rows, found.report.good_rows) == (4, 3)


LEGACY = jsonl(
    {
        "system": "简短回答",
        "conversation": [{"prompt": "你好", "response": "你好!"}, {"prompt": "再见", "response": "旧"}],
    },
    {"topic": "数学", "conversation": [{"prompt": "1+1=?", "response": "2"}]},
)


def test_a_legacy_row_with_answers_becomes_a_row_of_messages(attached: Attacher) -> None:
    found = attached(jsonl(reply("x", line=1), reply("y", line=2)), base=LEGACY, fmt="legacy_jsonl")
    assert [m["role"] for m in found.rows[0]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert list(found.rows[1]) == ["messages", "topic", "model_outputs"]
    assert not found.reading.errors


def test_a_legacy_file_of_the_same_prompts_holds_one_models_answers(attached: Attacher) -> None:
    given = LEGACY.replace("旧".encode(), "新".encode())
    found = attached(given, base=LEGACY, fmt="legacy_jsonl", model_name="qwen")
    assert found.answers == [[("qwen", ["新"])], [("qwen", ["2"])]]
    assert found.rows[0]["messages"][-1]["content"] == "旧"


def two_turns(first: str, second: str, asked: str = "and then?") -> dict[str, Any]:
    return {"conversation": [{"prompt": "what?", "response": first}, {"prompt": asked, "response": second}]}


def test_legacy_files_whose_models_differ_in_earlier_turns_too_ask_the_same(attached: Attacher) -> None:
    base = jsonl(two_turns("a", "b"), two_turns("a", "b", "why?"))
    given = jsonl(two_turns("c", "d", "why?"), two_turns("e", "f"), two_turns("g", "h", "when?"))
    found = attached(given, base=base, fmt="legacy_jsonl", model_name="m")
    assert found.answers == [[("m", ["f"])], [("m", ["d"])]]
    assert reasons(found) == [(3, "unknown_prompt")]


def said(*answers: str) -> list[dict[str, str]]:
    """The messages of `two_turns` before its last question, with these answers."""
    turns = [("user", "what?"), *(("assistant", one) for one in answers)]
    return [{"role": role, "content": content} for role, content in turns]


def own_turns(found: Attached, row: int = 0) -> Any:
    """The `earlier_messages` of the row's first attached response."""
    return found.rows[row]["model_outputs"][0]["responses"][0].get("earlier_messages")


def test_an_answer_of_a_legacy_file_keeps_its_own_earlier_turns(attached: Attacher) -> None:
    base, given = jsonl(two_turns("a", "b")), jsonl(two_turns("e", "f"))
    found = attached(given, base=base, fmt="legacy_jsonl", model_name="m")
    assert own_turns(found) == said("e")
    assert found.rows[0]["messages"][1]["content"] == "a"
    assert (found.report.own_turns, found.report.last_only) == (1, 0)


@pytest.mark.parametrize("first", ["a", " a\r\n"])
def test_earlier_turns_that_are_the_rows_are_not_kept_twice(attached: Attacher, first: str) -> None:
    base, given = jsonl(two_turns("a", "b")), jsonl(two_turns(first, "f"))
    found = attached(given, base=base, fmt="legacy_jsonl", model_name="m")
    assert own_turns(found) is None
    assert (found.report.own_turns, found.report.last_only) == (0, 0)


def test_own_earlier_turns_come_with_messages_or_with_the_response_too(attached: Attacher) -> None:
    base = jsonl({"id": 1, "messages": [*said("a"), {"role": "user", "content": "and then?"}]})
    own = [*said("c"), {"role": "user", "content": "and then?"}]
    by_messages = attached(jsonl(reply("d", messages=own)), base=base)
    by_id = attached(jsonl(reply("d", messages=own, id=1)), base=base)
    responses = [{"content": "d", "earlier_messages": said("c")}]
    in_response = attached(jsonl({"id": 1, "model_name": "m", "responses": responses}), base=base)
    assert [own_turns(one) for one in (by_messages, by_id, in_response)] == [said("c")] * 3
    assert [one.report.own_turns for one in (by_messages, by_id, in_response)] == [1, 1, 1]


def test_answers_of_which_only_the_last_turn_is_known_are_counted(attached: Attacher) -> None:
    base = jsonl(
        {"id": 1, **two_turns("a", "b")}, {"id": 2, "conversation": [{"prompt": "x", "response": "y"}]}
    )
    found = attached(jsonl(reply("c", id=1), reply("z", id=2)), base=base, fmt="legacy_jsonl")
    assert (found.report.matched, found.report.last_only, found.report.own_turns) == (2, 1, 0)
    assert own_turns(found) is None


def test_a_response_that_names_its_earlier_turns_wrongly_is_left_as_it_is(attached: Attacher) -> None:
    responses = [{"content": "d", "earlier_messages": "?"}]
    given = jsonl(
        {
            "messages": [*said("c"), {"role": "user", "content": "and then?"}],
            "model_name": "m",
            "responses": responses,
        }
    )
    found = attached(given, base=jsonl(two_turns("a", "b")), fmt="legacy_jsonl")
    assert own_turns(found) == "?"
    assert not found.reading.errors


def test_the_same_prompt_word_by_word_goes_before_what_is_only_similar(attached: Attacher) -> None:
    base = jsonl(two_turns("a", "b"), two_turns("c", "d"))
    found = attached(jsonl(two_turns("c", "e")), base=base, fmt="legacy_jsonl", model_name="m")
    assert found.answers == [[], [("m", ["e"])]]
    unsure = attached(jsonl(two_turns("x", "e")), base=base, fmt="legacy_jsonl", model_name="m")
    assert reasons(unsure) == [(1, "ambiguous_prompt")]


def test_a_legacy_csv_answers_questions_of_a_newer_format(attached: Attacher) -> None:
    given = 'prompt,response\r\n首都是哪里?,"北京\r\n。"\r\n没有的,x\r\n,y\r\n'.encode("gb18030")
    found = attached(given, model_name="m")
    assert found.answers[0] == [("m", ["北京\r\n。"])]
    assert reasons(found) == [(4, "unknown_prompt"), (5, "bad_line")]


def test_a_legacy_file_needs_the_models_name(attached: Attacher) -> None:
    with pytest.raises(ModelNameWanted):
        attached(LEGACY)


def test_a_bad_record_of_a_csv_cannot_be_carried_over_and_is_listed(attached: Attacher) -> None:
    base = "prompt,response\n你好,好\na,b,c\n".encode()
    found = attached(jsonl(reply("x", line=2)), base=base, fmt="legacy_csv")
    assert found.answers == [[("新模型", ["x"])]]
    assert [(entry["line"], entry["reason"], entry["text"].strip()) for entry in found.unmatched] == [
        (3, "row_not_carried", "a,b,c")
    ]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (b"", "file.empty"),
        (b"%PDF-1.7", "file.other_kind"),
        (b'[{"id": 1}]', "file.not_jsonl"),
        (b"hello\nthere\n", "file.unknown_format"),
        (gzip.compress(QUESTIONS * 50, mtime=0)[:-20], "file.encoding"),
    ],
)
def test_a_file_that_holds_no_answers_says_why(attached: Attacher, given: bytes, code: str) -> None:
    with pytest.raises(NoAnswers) as raised:
        attached(given)
    assert raised.value.findings[0].code == code


def test_a_compressed_file_in_utf16_is_read(attached: Attacher) -> None:
    given = gzip.compress(jsonl(reply("北京", id="a")).decode().encode("utf-16"))
    assert attached(given).answers[0] == [("新模型", ["北京"])]


def test_examples_show_question_and_answer(attached: Attacher) -> None:
    (example,) = attached(jsonl(reply("北京", id="a"))).report.examples
    assert (example.line, example.question, example.answer) == (1, "首都是哪里?", "北京")


def test_progress_ends_where_it_says(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    (tmp_path / "base").write_bytes(QUESTIONS)
    (tmp_path / "answers").write_bytes(jsonl(reply("x", id="a")))
    work = AttachWork(
        tmp_path / "base", "infer_and_judge", tmp_path / "answers", tmp_path / "t", tmp_path / "u"
    )
    attach(work, lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
