"""The further request to a judge whose reply could not be read, and what is kept of both calls."""

from __future__ import annotations

import pytest

from judging.core.asking_again import (
    ASKED_AGAIN,
    correction,
    first_messages,
    further_request,
    with_further_call,
)
from judging.core.reading import reasons
from judging.core.reading.gives import Gives
from judging.core.reading.reader import read_reply
from judging.core.results import Failure, JudgeCall

SCORE = Gives("score", min_score=1, max_score=5)
PROMPT = {"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}]}


def call(content: str, failure: Failure | None = None, **more: object) -> JudgeCall:
    return JudgeCall(0, 0, PROMPT, {"content": content}, failure, [{"status": 200}], 1.0, **more)  # type: ignore[arg-type]


def test_the_sentence_says_what_was_wrong_and_what_is_expected() -> None:
    assert correction("Judge this.", reasons.OTHER_SCALE, "8/10", SCORE) == (
        "Your verdict could not be read: 8/10 is on another scale. Give it once more, alone on one line, in exactly "
        "this form: Score: [[n]], n being a number from 1 to 5."
    )


def test_it_is_in_the_language_of_the_prompt() -> None:
    sentence = correction("请评分", reasons.AMBIGUOUS, "7 | 8", SCORE)
    assert "其中有几个不同的判定（7 | 8）" in sentence
    assert "评分：[[n]]，其中 n 为 1 到 5 的数" in sentence


@pytest.mark.parametrize("reason", sorted(ASKED_AGAIN))
@pytest.mark.parametrize("prompt", ["Judge this.", "请评分"])
def test_every_reason_has_a_whole_sentence_without_details_too(reason: str, prompt: str) -> None:
    assert "{" not in correction(prompt, reason, "", None)


def test_a_refusal_is_not_asked_again() -> None:
    assert reasons.REFUSAL not in ASKED_AGAIN


@pytest.mark.parametrize(
    "gives",
    [
        Gives("pass_fail"),
        Gives("category", labels=("faithful", "made up")),
        Gives("comparison", both_bad=True),
    ],
)
@pytest.mark.parametrize("prompt", ["Judge this.", "请评判"])
def test_every_form_that_is_offered_can_be_read(gives: Gives, prompt: str) -> None:
    sentence = correction(prompt, reasons.NOTHING_OFFERED, "", gives)
    offered = [part.split("]]")[0] for part in sentence.split("[[")[1:]]
    assert len(offered) > 1
    assert all(read_reply(f"[[{word}]]", gives).value is not None for word in offered)


def test_the_conversation_goes_on_with_the_reply_and_the_sentence() -> None:
    assert [message["role"] for message in further_request(PROMPT, "said", "again")["messages"]] == [
        "system", "user", "assistant", "user",
    ]  # fmt: skip
    assert first_messages(further_request(PROMPT, "said", "again")) == PROMPT["messages"]


def test_after_a_reply_without_words_the_sentence_ends_the_prompt() -> None:
    assert further_request(PROMPT, " ", "again")["messages"][-1] == {"role": "user", "content": "p\n\nagain"}


def test_both_calls_are_kept_and_counted_and_the_last_reply_counts() -> None:
    first = call("hm", prompt_tokens=10, completion_tokens=1, digest="d")
    joined = with_further_call(first, call("[[4]]", prompt_tokens=20, completion_tokens=2), "nothing_offered")
    assert joined.text == "[[4]]"
    assert (joined.prompt_tokens, joined.completion_tokens, joined.seconds, joined.digest) == (30, 3, 2.0, "")
    assert joined.calls == [
        {"status": 200, "reply": {"content": "hm"}, "unread": "nothing_offered"},
        {"status": 200},
    ]


def test_a_further_call_that_fails_leaves_the_first_reply() -> None:
    joined = with_further_call(call("hm"), call("", Failure("cut")), "nothing_offered")
    assert (joined.text, joined.failure, len(joined.calls)) == ("hm", None, 2)
