import pytest

from judging.core.judges.addresses import chat_url
from judging.core.judges.errors import Unreachable
from judging.core.judges.protocols.chat import models_url
from judging.core.judges.settings import JudgeSettings, build_request, without


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/v1", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/v1//", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/v1/chat/completions/", "http://h:8000/v1/chat/completions"),
        ("  http://h/v1 ", "http://h/v1/chat/completions"),
        ("h:8000", "http://h:8000/v1/chat/completions"),
        ("localhost/v1", "http://localhost/v1/chat/completions"),
        ("10.0.0.7", "http://10.0.0.7/v1/chat/completions"),
        ("api.example.com", "https://api.example.com/v1/chat/completions"),
        ("http://[::1]:8000", "http://[::1]:8000/v1/chat/completions"),
        ("https://x.cn/api/paas/v4", "https://x.cn/api/paas/v4/chat/completions"),
        ("https://x.com/v1beta/openai", "https://x.com/v1beta/openai/chat/completions"),
        ("https://x.com/api", "https://x.com/api/v1/chat/completions"),
        (
            "https://x/d/gpt/chat/completions?api-version=2",
            "https://x/d/gpt/chat/completions?api-version=2",
        ),
    ],
)
def test_an_address_is_completed(given: str, asked: str) -> None:
    assert chat_url(given) == asked


@pytest.mark.parametrize(
    "given", ["", "  ", "ftp://h/v1", "http://", "http://h:99999", "http://h:x", "a b", "http://u:p@h/v1"]
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(Unreachable) as caught:
        chat_url(given)
    assert caught.value.code == "bad_url"


def test_the_models_are_listed_beside_the_completions() -> None:
    assert models_url("http://h:8000/v1") == "http://h:8000/v1/models"


def test_a_request_streams_with_usage_and_reasoning_apart() -> None:
    assert build_request(JudgeSettings(url="h:1", model="m"), "hi") == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "separate_reasoning": True,
    }


def test_a_system_prompt_comes_first() -> None:
    request = build_request(JudgeSettings(url="h:1", model="m", system_prompt="Be strict."), "hi")
    assert request["messages"][0] == {"role": "system", "content": "Be strict."}


def test_parameters_are_sent_but_replace_neither_model_nor_messages() -> None:
    settings = JudgeSettings(url="h:1", model="m", params={"top_p": 0.5, "model": "x", "messages": []})
    request = build_request(settings, "hi")
    assert (request["top_p"], request["model"], len(request["messages"])) == (0.5, "m", 1)


def test_what_the_server_refuses_is_left_out() -> None:
    refuses = frozenset({"separate_reasoning", "temperature"})
    settings = JudgeSettings(url="h:1", model="m", params={"temperature": 0}, refuses=refuses)
    assert not refuses & set(build_request(settings, "hi"))


def test_a_refused_max_tokens_goes_by_its_newer_name() -> None:
    changed = without({"max_tokens": 9, "stream": True}, frozenset({"max_tokens"}))
    assert changed == {"max_completion_tokens": 9, "stream": True}


def test_without_streaming_there_are_no_stream_options() -> None:
    assert without({"stream": True, "stream_options": {}}, frozenset({"stream"})) == {}


def test_the_key_is_never_shown() -> None:
    settings = JudgeSettings(
        url="h:1", model="m", api_key="sk-1", headers={"x": "sk-1"}, proxy="http://u:sk-1@p"
    )
    assert "sk-1" not in repr(settings)
