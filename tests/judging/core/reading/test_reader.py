"""How judges' replies are read. `seen.jsonl` and `cases.jsonl` hold replies and what each states (null: nothing)."""

import json
import re
import sys
import unicodedata
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.core.reading.clean import without_format_characters
from judging.core.reading.edits import EditedText
from judging.core.reading.gives import Gives
from judging.core.reading.reader import MOST_CANDIDATES, Reading, read_reply
from tests.deadlines import slowness
from tests.real_data import real_data

HERE = Path(__file__).parent
GIVES_FIELDS = ("name", "min_score", "max_score", "whole", "step", "labels", "both_bad")

Case = dict[str, Any]


def cases(file: str) -> list[Case]:
    return [json.loads(line) for line in HERE.joinpath(file).read_text().splitlines()]


def read_case(case: Case) -> Reading:
    options = {name: case[name] for name in GIVES_FIELDS if name in case}
    if "labels" in options:
        options["labels"] = tuple(options["labels"])
    return read_reply(case["reply"], Gives(case["gives"], **options), case.get("finish_reason"))


def score(reply: str, finish_reason: str | None = None) -> Reading:
    return read_reply(reply, Gives("score"), finish_reason)


@pytest.mark.parametrize("file", ["seen.jsonl", "cases.jsonl"])
def test_replies_are_read_as_what_they_state(file: str) -> None:
    """All in one test: a thousand tests would take a hundred times as long as reading."""
    wrong = []
    for case in cases(file):
        reading, expected = read_case(case), case["expected"]
        is_same = reading.value == expected and (type(reading.value) is bool) == (type(expected) is bool)
        if not is_same or (reading.value is None) != bool(reading.reason):
            wrong.append((case["reply"], reading.value, reading.reason, expected))
    assert wrong == []


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<think>8</think>", "empty"),
        ("Very good.", "nothing_offered"),
        ("[[7]] or [[8]]", "ambiguous"),
        ("Score: 11", "out_of_range"),
        ("Score: 1234567890123456", "out_of_range"),
        ("Score: 3/5", "other_scale"),
        ("Score: 3. Max score: 5", "other_scale"),
        ('{"score": 3, "max_score": 5}', "other_scale"),
        ("满分5，评分：3", "other_scale"),
        ("Score: 7-8", "range"),
        ("Score: 7 to 8", "range"),
        ("Score: 8+", "range"),
        ("Score: 1,000", "not_a_number"),
        ("Score: 3, 4, 5", "not_a_number"),
        ("Score: about 7", "not_a_number"),
        ("Score: 8 tests", "not_a_number"),
        ("Score: 8. Score: 7-8", "ambiguous"),
    ],
)
def test_a_reply_without_a_score_has_the_reason(reply: str, reason: str) -> None:
    assert score(reply).reason == reason


@pytest.mark.parametrize(
    ("gives", "reply", "finish_reason", "reason"),
    [
        (Gives("score", whole=True), "Score: 3.5", None, "not_whole"),
        (Gives("score", step=0.5), "Score: 3.2", None, "off_step"),
        (Gives("pass_fail"), "Verdict: maybe", None, "unknown_label"),
        (Gives("category", labels=("a",)), "[[b]]", None, "unknown_label"),
        (Gives("score"), "Score: 1", "length", "cut_off"),
        (Gives("score"), "Score: 8", "content_filter", "refusal"),
    ],
)
def test_reasons_of_other_kinds_and_servers(
    gives: Gives, reply: str, finish_reason: str | None, reason: str
) -> None:
    assert read_reply(reply, gives, finish_reason).reason == reason


@pytest.mark.parametrize(
    ("reply", "evidence", "form"),
    [
        ("Well. **Score**: 8/10, fine.", "Score**: 8/10", "label"),
        ("<think>7</think>&nbsp;So:  [[８]] ", "[[８]]", "brackets"),
        ('See {"why": "x", "score": 8}.', '"score": 8', "json"),
        ("<score>8</score>", "<score>8", "tag"),
        ("好。\n8分", "8分", "bare"),
        ("Good. I'd give it 8/10.", "8/10", "prose"),
    ],
)
def test_the_words_that_were_read_are_marked(reply: str, evidence: str, form: str) -> None:
    reading = score(reply)
    assert reading.evidence is not None
    assert (reply[slice(*reading.evidence)], reading.form) == (evidence, form)


def test_detail_says_what_stood_there() -> None:
    assert (score("Score: 7-8, I think").detail, score("[[7]] [[8]]").detail) == ("7-8", "[[7]] | [[8]]")


def test_candidates_are_the_first_statements() -> None:
    candidates = score(" ".join(f"[[{number % 10 + 1}]]" for number in range(50))).candidates
    assert [candidate.value for candidate in candidates[:3]] == [1, 2, 3]
    assert len(candidates) == MOST_CANDIDATES


def test_integers_stay_integers_and_decimals_floats() -> None:
    assert [type(score(reply).value) for reply in ("Score: 8", "Score: 8.0")] == [int, float]


def test_every_format_character_is_left_out() -> None:
    everything = map(chr, range(sys.maxunicode + 1))
    text = "".join(character for character in everything if unicodedata.category(character) == "Cf")
    assert without_format_characters(EditedText(text)).text == ""


def test_published_judgements_are_read_as_published() -> None:
    published = real_data("mtbench_llama2_gpt4_judgments.jsonl")
    rows = [json.loads(line) for line in published.read_text().splitlines()]
    assert [score(row["judgment"]).value for row in rows] == [row["score"] for row in rows]


# --- properties --------------------------------------------------------------------------------------------------

SIGNS = st.text(alphabet="[]<>think/分评:：{}\"'*-#`~|()$\\ \n.,=scoreSCORE给我得是否", max_size=80)
THINKING = ["<think>{}</think>", "<reasoning>\n{}\n</reasoning>\n", "[THINK]{}[/THINK]", "◁think▷{}◁/think▷"]
QUOTATIONS = ["> {}\n\n", "```text\nIt says {}\n```\n", "~~~\nIt says {}\n~~~\n", "<!-- {} -->"]
IN_LINE = ['"{}" ', "“{}” ", "「{}」", "`{}` ", "«{}» ", "‘{}’ "]
QUOTED = ["Score: 3", "[[2]]", "Verdict: FAIL", "评分：2", "[[A>>B]]", "Label: made up"]
REPLIES = [
    case
    for case in cases("cases.jsonl")
    if case["reply"] and "finish_reason" not in case and not case["reply"].startswith(("<|", "analysis"))
]


def changed_by(replies: list[Case], before: list[str]) -> list[tuple[str, str]]:
    """The replies that are read otherwise with one of the texts before them."""
    return [
        (text, case["reply"])
        for case in replies
        for text in before
        if read_case({**case, "reply": text + case["reply"]}).value != case["expected"]
    ]


NUMBER_WORDS = re.compile("one|three|nine|ten", re.I)  # those that can be spelled with the signs


@given(SIGNS.filter(lambda text: not NUMBER_WORDS.search(text)))
def test_without_a_digit_or_number_word_there_is_no_score(reply: str) -> None:
    assert score(reply).value is None


@given(SIGNS, st.sampled_from(["score", "pass_fail", "comparison"]))
def test_no_reply_breaks_the_reading(reply: str, kind: str) -> None:
    reading = read_reply(f"{reply}8{reply}", Gives(kind))
    assert (reading.value is None) == bool(reading.reason)


@pytest.mark.parametrize("text", QUOTED)
def test_text_in_thinking_changes_nothing(text: str) -> None:
    assert changed_by(REPLIES, [thinking.format(text) for thinking in THINKING]) == []


@pytest.mark.parametrize("text", QUOTED)
def test_text_in_quotations_fences_and_comments_changes_nothing(text: str) -> None:
    without_fence = [case for case in REPLIES if "```" not in case["reply"]]
    stating = [case for case in without_fence if read_case(case).reason != "empty"]
    assert changed_by(stating, [quotation.format(text) for quotation in QUOTATIONS]) == []


@pytest.mark.parametrize(("text", "quotation"), list(zip(QUOTED, IN_LINE, strict=True)))
def test_a_quotation_within_a_line_changes_nothing(text: str, quotation: str) -> None:
    lines = [case for case in REPLIES if case["reply"][0].isalnum() and "{" not in case["reply"]]
    assert changed_by(lines, [quotation.format(text)]) == []


def test_a_reply_twice_reads_the_same() -> None:
    twice = [{**case, "reply": f"{case['reply']}\n\n{case['reply']}"} for case in REPLIES]
    assert [case["reply"] for case in twice if read_case(case).value != case["expected"]] == []


DELIMITERS = [
    *(
        "[",
        "[[",
        "]]",
        "[[8]]",
        "{",
        '{"',
        '{"a":',
        '{"a":1,',
        "{a:[",
        '{"score":1,',
        '{"\\"',
        '[{"a":',
        "{'a':'",
    ),
    *(
        '"',
        "'",
        "“",
        "「",
        "`",
        "```\n",
        "~~",
        "~~a",
        "*",
        "1*",
        "_",
        "a_",
        "$a",
        "\\[",
        "\\boxed{",
        "&",
        "&lt;",
    ),
    *(
        "<",
        "<think>",
        "</think>",
        "<!--",
        "<b ",
        "<score>",
        "<|channel|>",
        "◁think▷",
        "[think]",
        "> \n",
        "#",
        "1. ",
    ),
    *(
        "score",
        "score:",
        "score: ",
        "评分：",
        "final ",
        "总",
        "满分10分",
        "max score: ",
        "5-5 scale ",
        "scale 1-",
        "|",
        "|a|b|\n",
        "|\n",
        "--",
    ),
    *(
        "-",
        " -",
        " ",
        "\n",
        "\t",
        ",",
        ". ",
        "，",
        "！",
        "?",
        "not ",
        "if ",
        "because",
        "8/",
        "8 ",
        "0",
        "８",
        "😀",
    ),
    *("8, ", "no, 6", "or 6 ", "score: 5 — no, 6 ", "Yes. ", "I give ", "我给", "(no) "),
    *("(", "()", "【", "A>", "Yes, ", "\u200b", "：", "<br>", "\r\n"),
]


@pytest.mark.timed
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_a_megabyte_of_a_delimiter_is_read_in_a_second(delimiter: str) -> None:
    """In twice that beside other tests. What takes longer than in proportion to its length would take minutes."""
    reply = delimiter * (1_000_000 // len(delimiter))
    started = process_time()
    score(reply)
    assert process_time() - started < 2 * slowness()
