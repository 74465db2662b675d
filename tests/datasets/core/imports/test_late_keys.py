"""Keys that only a late record of a tool's file has: imported as a custom field, or listed as left out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from datasets.core.imports.key_use import MOST_KEYS, REST, KeyUse, whole
from datasets.core.imports.model import Options, Place
from datasets.core.imports.registry import SOURCES, recognise
from tests.datasets.core.imports import (
    fastchat,
    inspect_logs,
    test_alpaca_eval,
    test_annotations,
    test_arena_hard,
    test_every_eval_ever,
    test_healthbench,
    test_lm_eval,
    test_openai_evals,
    test_promptfoo,
)
from tests.datasets.core.imports.reading import Taken, files, lines, taken

RECORDS = 30
"""More than any source looks at to recognise its files or to guess what their parts are."""


def late(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Copies of the record, the last of which has one more key."""
    return [record] * (RECORDS - 1) + [record | {"late_key": "x"}]


def arrays(record: dict[str, Any]) -> str:
    return json.dumps(late(record))


def json_lines(record: dict[str, Any]) -> str:
    return lines(*late(record))


def page(record: dict[str, Any]) -> str:
    return json.dumps({"object": "list", "data": late(record)})


def promptfoo_yaml(record: dict[str, Any]) -> str:
    return yaml.safe_dump({"results": {"version": 3, "results": late(record)}}, sort_keys=False)


def samples() -> list[dict[str, Any]]:
    given = [inspect_logs.sample(f"s{number}") for number in range(RECORDS)]
    return [*given[:-1], given[-1] | {"late_key": "x"}]


def table() -> str:
    written = io.StringIO()
    rows = [{"question": "Why?", "answer": "So.", "late_key": ""}] * (RECORDS - 1)
    writer = csv.DictWriter(written, rows[0])
    writer.writeheader()
    writer.writerows([*rows, rows[0] | {"late_key": "x"}])
    return written.getvalue()


QUESTION = lines(fastchat.QUESTION)
MINIMAL = {
    **{"prompt": "Why?", "response": "So.", "id": 7, "quality": {"rating": 4}, "annotator": 1},
    **{"annotation_id": 1, "created_at": "c", "updated_at": "u", "lead_time": 1.0},
}
ARGILLA = {"id": "r", "fields": {"prompt": "Why?", "response": "So."}, "responses": {}}
FLAT = {"id": "r", "_server_id": "s", "prompt": "Why?", "response": "So."}
FILES: list[tuple[str, dict[str, str | bytes]]] = [
    ("table", {"rows__csv": table()}),
    ("table", {"rows__jsonl": json_lines({"question": "Why?", "answer": "So."})}),
    ("lm_eval", {"samples__jsonl": json_lines(test_lm_eval.sample())}),
    ("inspect", {"log__json": json.dumps(inspect_logs.log(*samples()))}),
    ("inspect", {"log__eval": inspect_logs.archive(inspect_logs.log(*samples()))}),
    ("promptfoo", {"out__json": test_promptfoo.export(*late(test_promptfoo.result()))}),
    ("promptfoo", {"out__jsonl": json_lines(test_promptfoo.result())}),
    ("promptfoo", {"out__yaml": promptfoo_yaml(test_promptfoo.result())}),
    ("mt_bench", {"question__jsonl": json_lines(fastchat.QUESTION)}),
    ("mt_bench", {"q__jsonl": QUESTION, "answers__jsonl": json_lines(fastchat.answer("a"))}),
    ("mt_bench", {"q__jsonl": QUESTION, "judged__jsonl": json_lines(fastchat.single("a", 1, 5.0))}),
    ("mt_bench", {"q__jsonl": QUESTION, "judged__jsonl": json_lines(fastchat.PAIR)}),
    ("alpaca_eval", {"model_outputs__json": arrays(test_alpaca_eval.OUTPUTS[0])}),
    ("alpaca_eval", {"annotations__json": arrays(test_alpaca_eval.annotation(1.0))}),
    ("arena_hard", {"question__jsonl": json_lines(test_arena_hard.QUESTION)}),
    ("arena_hard", {"question__jsonl": json_lines(test_arena_hard.QUESTION_2)}),
    ("arena_hard", {"answers__jsonl": json_lines(test_arena_hard.answer("m"))}),
    ("arena_hard", {"answers__jsonl": json_lines(test_arena_hard.answer_2("m"))}),
    ("arena_hard", {"judged__jsonl": json_lines(test_arena_hard.judged("A>B", "A>B"))}),
    ("openai_evals", {"run__jsonl": json_lines(test_openai_evals.item())}),
    ("openai_evals", {"run__json": page(test_openai_evals.item())}),
    ("label_studio", {"tasks__json": arrays(test_annotations.task())}),
    ("label_studio", {"minimal__json": arrays(MINIMAL)}),
    ("argilla", {"records__json": arrays(ARGILLA)}),
    ("argilla", {"flat__json": arrays(FLAT)}),
    ("every_eval_ever", {"samples__jsonl": json_lines(test_every_eval_ever.sample())}),
    ("healthbench", {"examples__jsonl": json_lines(test_healthbench.EXAMPLE)}),
    ("healthbench", {"meta__jsonl": json_lines(test_healthbench.LABEL)}),
]


OWN = {"evidence"}  # written by evalsite itself: what it holds beside data and verdicts is listed as a whole


def test_each_source_has_a_file_with_a_late_key() -> None:
    assert {source.name for source in SOURCES} - OWN == {name for name, _files in FILES}


@pytest.mark.parametrize(
    ("source", "given"), FILES, ids=[f"{name}-{'-'.join(given)}" for name, given in FILES]
)
def test_a_key_of_the_last_record_is_a_field_or_listed(
    tmp_path: Path, source: str, given: dict[str, str | bytes]
) -> None:
    found = taken(tmp_path, **given)
    is_field = any(row.get("late_key") == "x" for row in found.rows)
    assert (found.source, is_field or "late_key × 1" in found.keys) == (source, True)


class Planted:
    """A copy of a record with one more key in each of its objects, at any depth: {key: the objects around it}."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.around: dict[str, list[str]] = {}
        self.record: dict[str, Any] = self._copy(record, [])

    def _copy(self, value: Any, around: list[str]) -> Any:
        if isinstance(value, list):
            of_items = [*around, f"{around[-1]}[]"]
            return [self._copy(item, of_items) for item in value]
        if not isinstance(value, dict):
            return value
        key = f"late{len(self.around)}key"
        self.around[key] = around
        before = f"{around[-1]}." if around else ""
        inner = {name: self._copy(held, [*around, f"{before}{name}"]) for name, held in value.items()}
        return inner | {key: "x"}

    def untold(self, found: Taken) -> list[str]:
        """The keys that are neither imported nor listed, nor in an object that is listed."""
        told = json.dumps([found.rows, found.verdicts, found.keys])
        listed = tuple(f".{key.partition(' × ')[0]}" for key in found.keys)
        return [
            key
            for key, around in self.around.items()
            if key not in told and not any(f".{one}".endswith(listed) for one in around)
        ]


DEEP = inspect_logs.sample(
    input=[{"role": "user", "content": [{"type": "text", "text": "Why?"}]}],
    error={"message": "none"},
    metadata={"level": {"of": "school"}},
)
BATCH = {
    "custom_id": "r",
    "url": "/v1",
    "body": {"model": "m", "messages": [{"role": "user", "content": "Q"}]},
}
BODY = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "A"}}],
    "usage": {"n": 1},
}
ANSWERED = {"custom_id": "r", "response": {"status_code": 200, "body": BODY}}
CHAT: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}],
    "source": {"site": "a", "page": {"n": 1}},
}
LOG = {"id": "l", "request": {"messages": CHAT["messages"][:1], "options": {"n": 2}}, "response": BODY}
TWO = {
    "question": "Why?",
    "outputs": [{"model": "a", "answer": {"content": "So."}}, {"model": "b", "answer": "No."}],
}
OBJECTS = {
    "question": "Why?",
    "answer": {"content": "So.", "usage": {"tokens": 2}},
    "about": {"level": {"n": 1}},
}
ARGILLA_ANSWERED = ARGILLA | {
    "responses": {"rating": [{"value": 4, "user_id": "u"}]},
    "suggestions": {"rating": {"value": 3, "agent": "a"}},
    "metadata": {"level": {"of": "school"}},
}
CHATTED = test_annotations.chosen(
    "chatmessage", {"chatmessage": {"role": "user", "content": "Why?"}}, "chat", "chat"
)
ANNOTATED = test_annotations.task(
    test_annotations.annotation(test_annotations.chosen("rating", {"rating": 4})),
    prompt="Why?",
    response="So.",
) | {"predictions": [{"model_version": "j", "result": [test_annotations.chosen("rating", {"rating": 2})]}]}
NESTED: list[tuple[str, Callable[[dict[str, Any]], dict[str, str | bytes]], dict[str, Any]]] = [
    ("table", lambda one: {"rows__jsonl": lines(one)}, OBJECTS),
    ("table", lambda one: {"rows__jsonl": lines(one)}, TWO),
    ("table", lambda one: {"rows__jsonl": lines(one)}, LOG),
    ("table", lambda one: {"in__jsonl": lines(BATCH), "out__jsonl": lines(one)}, ANSWERED),
    ("lm_eval", lambda one: {"samples__jsonl": lines(one)}, test_lm_eval.sample()),
    (
        "lm_eval",
        lambda one: {"s__jsonl": lines(test_lm_eval.sample()), "results__json": json.dumps(one)},
        {"results": {"task": {}}, "model_name": "m"},
    ),
    ("inspect", lambda one: {"log__json": json.dumps(inspect_logs.log(one))}, DEEP),
    ("inspect", lambda one: {"log__eval": inspect_logs.archive(inspect_logs.log(one))}, DEEP),
    ("inspect", lambda one: {"log__json": json.dumps(one)}, inspect_logs.log(DEEP, plan={"steps": []})),
    (
        "promptfoo",
        lambda one: {"out__json": json.dumps(one)},
        json.loads(test_promptfoo.export(test_promptfoo.result())),
    ),
    ("promptfoo", lambda one: {"out__jsonl": lines(one)}, test_promptfoo.result()),
    (
        "promptfoo",
        lambda one: {"out__yaml": yaml.safe_dump(one, sort_keys=False)},
        {
            "results": {"version": 3, "results": [test_promptfoo.result()], "stats": {"n": 1}},
            "config": {"a": 1},
        },
    ),
    ("mt_bench", lambda one: {"question__jsonl": lines(one)}, fastchat.QUESTION),
    ("mt_bench", lambda one: {"q__jsonl": QUESTION, "answers__jsonl": lines(one)}, fastchat.answer("a")),
    (
        "mt_bench",
        lambda one: {"q__jsonl": QUESTION, "judged__jsonl": lines(one)},
        fastchat.single("a", 1, 5.0),
    ),
    ("alpaca_eval", lambda one: {"outputs__json": json.dumps([one])}, test_alpaca_eval.OUTPUTS[0]),
    (
        "alpaca_eval",
        lambda one: {"annotations__json": json.dumps([one])},
        test_alpaca_eval.annotation(1.0)
        | {"raw_completion": {"message": {"content": "1"}, "logprobs": {"n": 1}}},
    ),
    ("arena_hard", lambda one: {"question__jsonl": lines(one)}, test_arena_hard.QUESTION),
    ("arena_hard", lambda one: {"answers__jsonl": lines(one)}, test_arena_hard.answer("m")),
    ("arena_hard", lambda one: {"answers__jsonl": lines(one)}, test_arena_hard.answer_2("m")),
    ("arena_hard", lambda one: {"judged__jsonl": lines(one)}, test_arena_hard.judged("A>B", "A>B")),
    ("openai_evals", lambda one: {"run__jsonl": lines(one)}, test_openai_evals.item()),
    (
        "openai_evals",
        lambda one: {"run__json": json.dumps(one)},
        {"object": "list", "data": [test_openai_evals.item()]},
    ),
    ("label_studio", lambda one: {"tasks__json": json.dumps([one])}, ANNOTATED),
    (
        "label_studio",
        lambda one: {"tasks__json": json.dumps([one])},
        test_annotations.task(test_annotations.annotation(CHATTED)),
    ),
    ("label_studio", lambda one: {"minimal__json": json.dumps([one])}, MINIMAL),
    ("argilla", lambda one: {"records__json": json.dumps([one])}, ARGILLA_ANSWERED),
    ("every_eval_ever", lambda one: {"samples__jsonl": lines(one)}, test_every_eval_ever.sample()),
    ("healthbench", lambda one: {"examples__jsonl": lines(one)}, test_healthbench.EXAMPLE),
    ("healthbench", lambda one: {"meta__jsonl": lines(one)}, test_healthbench.LABEL),
]


def test_each_source_has_a_file_with_keys_in_its_objects() -> None:
    assert {source.name for source in SOURCES} - OWN == {name for name, _files, _record in NESTED}


@pytest.mark.parametrize(("source", "written", "record"), NESTED, ids=[name for name, *_rest in NESTED])
def test_a_key_inside_any_object_is_imported_or_listed(
    tmp_path: Path,
    source: str,
    written: Callable[[dict[str, Any]], dict[str, str | bytes]],
    record: dict[str, Any],
) -> None:
    planted = Planted(record)
    found = taken(tmp_path, **written(planted.record))
    assert (found.source, planted.untold(found)) == (source, [])


def first_unread(folder: Path, **contents: str | bytes) -> list[tuple[int | None, str]]:
    """(record, key and number of records) of each key that is listed."""
    given = files(folder, **contents)
    source = recognise(given)
    assert source is not None
    imported = source.read(given, Options())
    assert list(imported.rows)
    return [(one.place.line, one.detail) for one in imported.left_out if one.code == "key_unread"]


def test_a_key_is_listed_once_with_its_first_record_and_their_number(tmp_path: Path) -> None:
    output = test_alpaca_eval.OUTPUTS[0]
    given = [output, output | {"tone": "dry"}, output | {"tone": ""}, output | {"tone": "kind", "n": 0}]
    assert first_unread(tmp_path, outputs__jsonl=lines(*given)) == [(2, "tone × 2"), (4, "n × 1")]


@pytest.mark.parametrize("written", [json.dumps, inspect_logs.archive])
def test_samples_of_inspect_list_the_keys_that_hold_something(
    tmp_path: Path, written: Callable[[Any], str | bytes]
) -> None:
    given = inspect_logs.log(inspect_logs.sample(uuid="u", store={}), inspect_logs.sample("s2", limit=None))
    listed = first_unread(tmp_path, log=written(given))
    assert {(1, "events × 2"), (1, "uuid × 1"), (1, "output.choices[].stop_reason × 2")} <= {*listed}
    assert not [key for _line, key in listed if key.startswith(("store", "limit"))]


def test_the_task_of_a_chat_has_no_unread_id(tmp_path: Path) -> None:
    message = {"chatmessage": {"role": "user", "content": "Why?"}}
    spoken = test_annotations.chosen("chatmessage", message, "chat", "chat")
    tasks = [test_annotations.task(test_annotations.annotation(spoken), topic="physics")]
    assert "id × 1" not in [key for _line, key in first_unread(tmp_path, chat__json=json.dumps(tasks))]


def test_an_object_that_is_passed_on_whole_has_no_unread_keys() -> None:
    use = KeyUse()
    record = use.record(Place("f", 1), {"data": {"a": 1}, "part": {"b": 1, "c": [{"d": 1}, {"d": 2}]}})
    assert record["data"]
    assert record["part"].get("b")
    assert [one.get("e") for one in record["part"]["c"]] == [None, None]
    assert list(use.unread()) == [(Place("f", 1), "part.c[].d", 1)]


def test_a_key_inside_an_object_that_is_stored_after_all_counts_as_read() -> None:
    use = KeyUse()
    record = use.record(Place("f", 1), {"part": {"a": 1, "b": [{"c": 1}]}})
    assert record["part"].get("other") is None
    whole({"field": record["part"]})
    assert list(use.unread()) == []


def test_more_keys_than_can_be_listed_are_counted_together() -> None:
    use = KeyUse()
    use.record(Place("f", 1), {f"k{number}": 1 for number in range(MOST_KEYS + 5)})
    *_listed, rest = use.unread()
    assert rest == (Place("f", 1), REST, 5)
