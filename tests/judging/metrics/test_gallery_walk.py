"""The gallery walked in both languages: on files of a RAG system, a chat, code and translations, and on real data."""

from __future__ import annotations

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.core.gallery import gallery
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import imported
from tests.real_data import real_data

ANSWER = "the answer of ant"
LANGUAGES = pytest.mark.parametrize("language", ["en", "zh-hans"])
REAL_ROWS = 20


def row(*turns: str, answer: str = ANSWER, **fields: Any) -> dict[str, Any]:
    """A row with these messages, the user's first, and an answer."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(turns)]
    return {"messages": messages, "model_outputs": [output("ant", answer)], **fields}


def output(name: str, answer: str) -> dict[str, Any]:
    return {"model_name": name, "responses": [{"content": answer}]}


CODE = "```python\ndef add(a, b):\n    return a + b\n```"
FILES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "rag": (
        row("几点开门？", retrieved_passages=["我们九点开门。"], source_url="http://a"),
        {"context": "retrieved_passages"},
    ),
    "chat": (
        row("I'm Ann.", "Hello Ann!", "What is my name?", tone_guide="Polite.", persona_id=3),
        {"guide": "tone_guide"},
    ),
    "code": (
        row("Write add(a, b).", answer=CODE, test_list=["assert add(1, 2) == 3"], prompt_id="x"),
        {"tests": "test_list"},
    ),
    "translation": (
        row("翻译成英文。", source_text="你好", 参考译文="Hello", lang="zh-en"),
        {"source": "source_text"},
    ),
}
"""{task: (a row, the guessed columns)}"""


@pytest.fixture
def client(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


@pytest.fixture
def endpoint(live: Endpoint) -> Endpoint:
    live.probe = {"ok": True}
    live.save()
    return live


def shown(client: Client, card: str, language: str) -> Any:
    return client.get(f"/p/physics/metrics/gallery/{card}/", headers={"accept-language": language})


@LANGUAGES
@pytest.mark.parametrize("task", FILES)
def test_all_metrics_of_a_task_can_be_used_on_its_file(
    task: str, language: str, client: Client, project: Project, endpoint: Endpoint
) -> None:
    sample, columns = FILES[task]
    imported(project, task, [sample])
    for card in gallery().values():
        if card.task != task:
            continue
        answer = shown(client, card.id, language)
        page = answer.context["page"]
        guessed = {name: column for name, column in columns.items() if name in card.needs}
        assert guessed.items() <= page.mapping.items(), card.id
        assert page.can_use, card.id
        assert card.name.text("zh" if language == "zh-hans" else "en") in unescape(answer.text)
        if card.asks_judge:
            assert all(text in page.preview.prompt.text for text in _texts(sample, guessed)), card.id
        elif page.script_run is not None:
            assert page.script_run.outcome.failure is None, card.id
    used = client.post(f"/p/physics/metrics/gallery/{_first(task)}/", {"use": "1", "endpoint": endpoint.pk})
    assert used.status_code == 302
    assert Metric.objects.count() == 1


def _texts(sample: dict[str, Any], guessed: dict[str, str]) -> list[str]:
    """What a prompt shows of the guessed columns."""
    values = [sample[column] for column in guessed.values()]
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _first(task: str) -> str:
    return next(card.id for card in gallery().values() if card.task == task)


@LANGUAGES
@pytest.mark.parametrize(
    ("file", "cards"),
    [
        ("arena_hard_v01_upload.jsonl", ("follows_instruction", "concise", "language_fits", "helpful_pair")),
        ("belle_zh_upload.jsonl", ("correct", "code_correct", "complete", "rouge_l")),
        ("llmbar_pairs_dev.jsonl", ("helpful_pair", "follows_instruction", "single_turn_pair")),
        ("mtbench_llama2_upload.jsonl", ("single_turn_score", "not_toxic", "length")),
        (
            "mtbench_llama2_legacy_2turn.llama2_chat_7b.jsonl",
            ("consistent_turns", "goal_reached_chat", "multi_turn_score"),
        ),
    ],
)
def test_metrics_can_be_used_on_real_files(
    file: str, cards: tuple[str, ...], language: str, client: Client, project: Project, endpoint: Endpoint
) -> None:
    lines = real_data(file).read_text(encoding="utf-8").splitlines()[:REAL_ROWS]
    imported(project, file, [json.loads(line) for line in lines])
    for card in cards:
        page = shown(client, card, language).context["page"]
        assert page.can_use, (card, page.missing, page.mapping)
        if page.card.asks_judge:
            assert page.preview.prompt.text
        else:
            assert page.script_run.outcome.failure is None
