"""Every protocol, against the scripted judge, which answers as servers of each do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judging.core.judges.errors import Interrupted, Refused, Unusable
from judging.core.judges.protocols import PROTOCOLS
from judging.core.judges.protocols.protocol import END
from judging.core.judges.reply import CONTENT_FILTER
from judging.core.judges.scripted import Answer, Received, ScriptedJudge, refusal
from judging.core.judges.scripted_protocols import dialect_of, encoded
from judging.core.judges.settings import build_request
from judging.core.judges.structured import JSON_SCHEMA, TOOL, parameters
from tests.judging.core.judges.helpers import ask_once, ask_until_done, failure_of, probed, settings_for

SCHEMA = {"type": "object", "properties": {"verdict": {"type": "string"}}, "additionalProperties": False}
ALL = pytest.mark.parametrize("protocol", PROTOCOLS)
STREAMED = pytest.mark.parametrize("stream", [True, False])

EVENTS = (("content-type", "text/event-stream"),)
DOCUMENT = (("content-type", "application/json"),)


def body_of(protocol: str, **params: Any) -> dict[str, Any]:
    """What is sent for a request with a system prompt and these parameters."""
    settings = settings_for("http://h", protocol=protocol, params=params, system_prompt="Be strict.")
    return PROTOCOLS[protocol].body(build_request(settings, "Judge this."))


@ALL
@STREAMED
def test_text_reasoning_and_tokens_are_read(protocol: str, stream: bool) -> None:
    answer = Answer("Verdict: 通过 🎉 [[8]]", reasoning="It is right.", tokens=(12, 34), model="m-2")
    with ScriptedJudge(answer) as judge:
        reply = ask_once(judge.url, protocol=protocol, params={"stream": stream})
    assert (reply.content, reply.reasoning_content) == ("Verdict: 通过 🎉 [[8]]", "It is right.")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (12, 34)
    assert (reply.model, reply.finish_reason, reply.streamed) == ("m-2", "stop", stream)


@ALL
@STREAMED
def test_a_tool_call_is_read(protocol: str, stream: bool) -> None:
    with ScriptedJudge(Answer(arguments='{"verdict":"PASS"}')) as judge:
        reply = ask_once(judge.url, protocol=protocol, params={"stream": stream})
    assert reply.tool_calls is not None
    [call] = reply.tool_calls
    assert call["function"] == {"name": "give_verdict", "arguments": '{"verdict":"PASS"}'}


@ALL
@STREAMED
def test_a_reply_cut_off_by_its_limit_says_so(protocol: str, stream: bool) -> None:
    with ScriptedJudge(Answer("It is", finish_reason="length")) as judge:
        reply = ask_once(judge.url, protocol=protocol, params={"stream": stream})
    assert (reply.content, reply.finish_reason) == ("It is", "length")


@ALL
@STREAMED
def test_a_refusal_without_text_is_one_of_the_content_filter(protocol: str, stream: bool) -> None:
    with ScriptedJudge(Answer("", finish_reason="content_filter")) as judge:
        error = failure_of(judge.url, protocol=protocol, params={"stream": stream})
    assert (type(error), error.code, error.retry) == (Refused, CONTENT_FILTER, False)


@ALL
def test_the_key_stands_in_the_header_of_the_protocol(protocol: str) -> None:
    with ScriptedJudge(api_key="sk-secret-key") as judge:
        assert ask_once(judge.url, protocol=protocol).content
        assert failure_of(judge.url, protocol=protocol, api_key="another").code == "bad_key"


@pytest.mark.parametrize("path", ["/messages", "/responses", ":streamGenerateContent"])
def test_a_stream_without_its_end_is_cut(path: str) -> None:
    dialect = dialect_of(path)
    assert dialect is not None
    whole = encoded(dialect, Answer("Score: [[7]]" * 50), True)
    half = Answer(body=whole[: len(whole) // 2], headers=EVENTS)
    protocol = {"/messages": "anthropic", "/responses": "responses"}.get(path, "gemini")
    with ScriptedJudge(half) as judge:
        assert isinstance(failure_of(judge.url, protocol=protocol), Interrupted)


@ALL
def test_another_document_is_no_reply(protocol: str) -> None:
    with ScriptedJudge(Answer(body=b'{"hello": "world"}', headers=DOCUMENT)) as judge:
        error = failure_of(judge.url, protocol=protocol)
    assert (type(error), error.code) == (Unusable, "bad_reply")


@pytest.mark.parametrize(
    ("protocol", "body", "code"),
    [
        (
            "anthropic",
            '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
            "overloaded",
        ),
        (
            "anthropic",
            '{"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}}',
            "rate_limited",
        ),
        (
            "gemini",
            '{"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}',
            "overloaded",
        ),
        (
            "responses",
            '{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Sorry"}}}',
            "server_error",
        ),
    ],
)
def test_an_error_in_a_stream_keeps_its_meaning(protocol: str, body: str, code: str) -> None:
    with ScriptedJudge(Answer(body=f"data: {body}\n\n".encode(), headers=EVENTS)) as judge:
        assert failure_of(judge.url, protocol=protocol).code == code


def test_a_prompt_that_gemini_blocks_is_refused_and_not_an_error_of_the_server() -> None:
    body = b'{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}'
    with ScriptedJudge(Answer(body=body, headers=DOCUMENT)) as judge:
        error = failure_of(judge.url, protocol="gemini")
    assert (error.code, error.message, error.retry) == (CONTENT_FILTER, "SAFETY", False)
    assert error.reply is not None
    assert error.reply.usage.prompt_tokens == 9


def test_a_key_that_gemini_does_not_accept_is_named() -> None:
    wrong = refusal(400, "API key not valid. Please pass a valid API key.", reason="API_KEY_INVALID")
    with ScriptedJudge(wrong) as judge:
        assert failure_of(judge.url, protocol="gemini").code == "bad_key"


def test_words_of_a_refusal_in_a_response_are_kept() -> None:
    events = [
        {"type": "response.refusal.delta", "delta": "I can't "},
        {"type": "response.refusal.delta", "delta": "judge that."},
        {"type": "response.completed", "response": {"output": [], "usage": {"input_tokens": 3}}},
    ]
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    with ScriptedJudge(Answer(body=body, headers=EVENTS)) as judge:
        error = failure_of(judge.url, protocol="responses")
    assert (error.code, error.message) == (CONTENT_FILTER, "I can't judge that.")


def test_thoughts_of_gemini_count_as_output_tokens() -> None:
    chunk = PROTOCOLS["gemini"].as_chunk
    assert chunk is not None
    usage = chunk(
        {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "thoughtsTokenCount": 30}}
    )
    assert usage["usage"] == {"prompt_tokens": 5, "completion_tokens": 37}


def test_tokens_that_anthropic_reads_from_its_cache_count_as_input() -> None:
    chunk = PROTOCOLS["anthropic"].as_chunk
    assert chunk is not None
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    start = chunk({"type": "message_start", "message": {"model": "m", "usage": usage}})
    assert start["usage"] == {"prompt_tokens": 125}
    assert chunk({"type": "message_stop"}) == END


@pytest.mark.parametrize(
    ("protocol", "address", "url"),
    [
        ("chat", "https://api.example/v1", "https://api.example/v1/chat/completions"),
        ("responses", "https://api.example", "https://api.example/v1/responses"),
        ("anthropic", "https://api.example/v1", "https://api.example/v1/messages"),
        ("anthropic", "https://api.example/v1/messages", "https://api.example/v1/messages"),
        (
            "gemini",
            "https://g.example",
            "https://g.example/v1beta/models/m%2F1:streamGenerateContent?alt=sse",
        ),
        (
            "azure",
            "https://r.example",
            "https://r.example/openai/deployments/m%2F1/chat/completions?api-version=2024-10-21",
        ),
        (
            "azure",
            "https://r.example/openai/deployments/d?api-version=2025-01-01-preview",
            "https://r.example/openai/deployments/d/chat/completions?api-version=2025-01-01-preview",
        ),
    ],
)
def test_calls_go_to_the_address_of_the_protocol(protocol: str, address: str, url: str) -> None:
    assert PROTOCOLS[protocol].url(address, {"model": "m/1", "stream": True}) == url


def test_what_is_sent_to_anthropic() -> None:
    structure = parameters(TOOL, SCHEMA)
    assert body_of("anthropic", temperature=0, stop="END", **structure) == {
        "model": "m",
        "max_tokens": 4096,
        "stream": True,
        "temperature": 0,
        "system": "Be strict.",
        "messages": [{"role": "user", "content": "Judge this."}],
        "stop_sequences": ["END"],
        "tools": [{"name": "give_verdict", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "give_verdict"},
    }
    assert body_of("anthropic", max_tokens=9)["max_tokens"] == 9


def test_a_schema_is_sent_to_anthropic_without_the_keywords_that_it_lacks() -> None:
    score = {"type": "integer", "minimum": 1, "maximum": 5}
    schema = {"type": "object", "properties": {"verdict": score}, "additionalProperties": False}
    sent = body_of("anthropic", output_config={"effort": "low"}, **parameters(JSON_SCHEMA, schema))
    told = {"type": "integer", "description": "minimum: 1, maximum: 5"}
    form = {"type": "json_schema", "schema": {**schema, "properties": {"verdict": told}}}
    assert sent["output_config"] == {"effort": "low", "format": form}
    assert "response_format" not in sent


@pytest.mark.parametrize("form", [JSON_SCHEMA, TOOL])
def test_the_connection_test_finds_the_structured_output_of_anthropic(form: str) -> None:
    def reply(received: Received) -> Answer:
        if "output_config" in received.body:
            return Answer('{"colour": "teal"}' if form == JSON_SCHEMA else "OK")
        return Answer(None, arguments='{"colour": "teal"}') if "tools" in received.body else Answer("OK")

    with ScriptedJudge(reply) as judge:
        assert probed(judge.url, protocol="anthropic").structured == form
        asked = [request.body for request in judge.requests]
    assert not any("response_format" in body for body in asked)


def test_what_is_sent_to_gemini() -> None:
    assert body_of(
        "gemini", temperature=0, max_tokens=9, stop=["END"], **parameters(JSON_SCHEMA, SCHEMA)
    ) == {
        "systemInstruction": {"parts": [{"text": "Be strict."}]},
        "contents": [{"role": "user", "parts": [{"text": "Judge this."}]}],
        "generationConfig": {
            "temperature": 0,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseSchema": {"type": "object", "properties": {"verdict": {"type": "string"}}},
            "thinkingConfig": {"includeThoughts": True},
        },
    }


def test_what_is_sent_to_responses() -> None:
    assert body_of("responses", temperature=0, max_tokens=9, **parameters(JSON_SCHEMA, SCHEMA)) == {
        "model": "m",
        "stream": True,
        "store": False,
        "temperature": 0,
        "max_output_tokens": 9,
        "instructions": "Be strict.",
        "input": [{"role": "user", "content": "Judge this."}],
        "reasoning": {"summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "give_verdict", "strict": True, "schema": SCHEMA}},
    }


@pytest.mark.parametrize("protocol", ["anthropic", "gemini", "responses"])
def test_turns_with_tool_calls_are_sent_in_the_form_of_the_protocol(protocol: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"q":"甲"}'}}
    messages = [
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "look_up", "content": "seven"},
    ]
    body = PROTOCOLS[protocol].body({"model": "m", "messages": messages})
    turns = {
        "anthropic": [
            {"role": "user", "content": "Find it."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "look_up", "input": {"q": "甲"}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "seven"}],
            },
        ],
        "gemini": [
            {"role": "user", "parts": [{"text": "Find it."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look_up", "args": {"q": "甲"}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "look_up", "response": {"result": "seven"}}}],
            },
        ],
        "responses": [
            {"role": "user", "content": "Find it."},
            {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"q":"甲"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "seven"},
        ],
    }
    assert (
        body[{"anthropic": "messages", "gemini": "contents", "responses": "input"}[protocol]]
        == turns[protocol]
    )


@ALL
def test_the_connection_test_asks_in_the_protocol(protocol: str) -> None:
    with ScriptedJudge(Answer("OK", reasoning="Short.")) as judge:
        result = probed(judge.url, protocol=protocol)
        assert all(request.path != "/v1/chat/completions" for request in judge.requests) or protocol == "chat"
    assert (result.ok, result.streams, result.reasoning, result.usage) == (True, True, True, True)


@ALL
def test_a_parameter_that_the_server_rejects_is_left_out(protocol: str) -> None:
    def script(request: Received) -> Answer | str:
        return (
            refusal(400, "seed: Extra inputs are not permitted")
            if b'"seed"' in request.raw
            else "Score: [[7]]"
        )

    with ScriptedJudge(script) as judge:
        result = ask_until_done(judge.url, protocol=protocol, params={"seed": 1})
    assert result.error is None
    assert result.refuses == {"seed"}


PICTURES = [
    {"type": "text", "text": "Which?"},
    {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}},
    {"type": "image_url", "image_url": "https://h/b.png"},
]
AS_PARTS = {
    "gemini": [
        {"text": "Which?"},
        {"inlineData": {"mimeType": "image/jpeg", "data": "AAAA"}},
        {"fileData": {"fileUri": "https://h/b.png"}},
    ],
    "anthropic": [
        {"type": "text", "text": "Which?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://h/b.png"}},
    ],
    "responses": [
        {"type": "input_text", "text": "Which?"},
        {"type": "input_image", "image_url": "data:image/jpeg;base64,AAAA"},
        {"type": "input_image", "image_url": "https://h/b.png"},
    ],
    "chat": PICTURES,
}


@pytest.mark.parametrize("protocol", AS_PARTS)
def test_images_of_a_message_are_sent_in_the_protocol_s_form(protocol: str) -> None:
    sent = PROTOCOLS[protocol].body({"model": "m", "messages": [{"role": "user", "content": PICTURES}]})
    (message,) = sent.get("contents") or sent.get("input") or sent["messages"]
    assert message.get("parts", message.get("content")) == AS_PARTS[protocol]
