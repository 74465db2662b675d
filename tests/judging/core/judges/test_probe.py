from judging.core.judges.scripted import Answer, ScriptedJudge, server_error
from tests.judging.core.judges.helpers import probed


def test_a_working_endpoint_shows_all_that_it_can() -> None:
    with ScriptedJudge(Answer(content="OK", reasoning="hm"), models=("b", "a")) as judge:
        found = probed(judge.url)
    assert (found.ok, found.streams, found.reasoning, found.usage) == (True, True, True, True)
    assert (found.models, found.refuses, found.code) == (("a", "b"), (), "")


def test_what_is_refused_is_found_out() -> None:
    refuses = frozenset({"temperature", "max_tokens", "separate_reasoning", "stream_options"})
    with ScriptedJudge("OK", refuses=refuses) as judge:
        assert set(probed(judge.url).refuses) == refuses


def test_an_endpoint_that_does_not_stream_is_found_out() -> None:
    with ScriptedJudge("OK", refuses=frozenset({"stream"})) as judge:
        found = probed(judge.url)
    assert (found.ok, found.streams, found.refuses) == (True, False, ("stream",))


def test_what_was_refused_once_is_tried_again() -> None:
    with ScriptedJudge("OK") as judge:
        assert probed(judge.url, refuses=frozenset({"stream"})).streams


def test_a_model_that_spent_its_tokens_on_thinking_is_there() -> None:
    with ScriptedJudge(Answer(reasoning="hm", finish_reason="length")) as judge:
        found = probed(judge.url)
    assert (found.ok, found.reasoning, found.code) == (True, True, "")


def test_a_wrong_key_is_an_error() -> None:
    with ScriptedJudge(api_key="another") as judge:
        found = probed(judge.url)
    assert (found.ok, found.code, found.models) == (False, "bad_key", ())


def test_a_wrong_address_is_an_error() -> None:
    found = probed("ftp://h")
    assert (found.ok, found.code) == (False, "bad_url")


def test_a_wrong_certificate_authority_is_an_error() -> None:
    assert probed("https://h", ca_pem="x").code == "bad_ca"


def test_a_failing_endpoint_is_tried_twice() -> None:
    with ScriptedJudge(server_error()) as judge:
        assert not probed(judge.url).ok
    assert len(judge.requests) == 2
