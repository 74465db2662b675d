"""*Test connection* against servers that mean ill: always a page with a sentence, on both databases."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from django.urls import reverse

from evalsite.accounts.models import Project, User
from evalsite.secrets import encrypt
from judging.core.judges.scripted import Answer, ScriptedJudge
from judging.endpoints.models import Endpoint
from tests.conftest import ClientOf
from tests.judging.core.judges.hostile import ANSWERS, LIST_WITH_NUL, LISTS, NUL
from tests.judging.endpoints.make import FORM

pytestmark = pytest.mark.django_db(transaction=True)
MOST_MEMORY = 30 * 2**20  # bytes
Tested = Callable[[ScriptedJudge], str]


@pytest.fixture
def tested(project: Project, adam: User, client_of: ClientOf) -> Tested:
    """Test the connection to a server, of a stored endpoint and of the form; return both pages."""

    def test(judge: ScriptedJudge) -> str:
        endpoint = Endpoint.objects.create(
            project=project, name="Judge", url=judge.url, model="m", key_encrypted=encrypt("sk-secret-key")
        )
        client = client_of(adam)
        stored = client.post(reverse("endpoints:test", args=(project.slug, endpoint.pk)), follow=True)
        form = {**FORM, "url": judge.url, "key": "sk-secret-key"}
        typed = client.post(reverse("endpoints:try", args=(project.slug,)), form)
        assert (stored.status_code, typed.status_code) == (200, 200)
        return stored.content.decode() + typed.content.decode()

    return test


@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_answer_is_a_failed_test(name: str, tested: Tested) -> None:
    with ScriptedJudge(ANSWERS[name][0]) as judge:
        assert tested(judge).count("Connection failed") == 2
    assert "\0" not in str(Endpoint.objects.values().get())


@pytest.mark.parametrize("name", [name for name in ANSWERS if "gzip" in name])
def test_a_test_takes_little_memory(name: str, tested: Tested) -> None:
    with ScriptedJudge(ANSWERS[name][0], listing=LISTS.get(name)) as judge:
        tracemalloc.start()
        tested(judge)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.parametrize("name", LISTS)
def test_a_broken_list_of_models_is_named(name: str, tested: Tested) -> None:
    with ScriptedJudge("OK", listing=LISTS[name]) as judge:
        page = tested(judge)
    assert "The server&#x27;s list of models can&#x27;t be read" in page


def test_nul_in_a_model_or_a_list_of_models_is_replaced(tested: Tested) -> None:
    with ScriptedJudge(Answer(body=NUL), listing=Answer(body=LIST_WITH_NUL)) as judge:
        tested(judge)
    probe = Endpoint.objects.get().probe
    assert (probe["model"], probe["models"]) == ("m\ufffd", ["a\ufffd"])


def test_nul_in_generation_parameters_is_replaced(project: Project, adam: User, client_of: ClientOf) -> None:
    form = {**FORM, "params": '{"stop": "a\\u0000"}'}
    client_of(adam).post(reverse("endpoints:new", args=(project.slug,)), form)
    assert Endpoint.objects.get().params == {"stop": "a\ufffd"}
