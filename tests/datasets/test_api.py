"""Data sets in the API: other tools' files, repairs, and answers of further models."""

from __future__ import annotations

import io
import json
from typing import Any

from datasets.importing.worker import import_version
from datasets.models import FileImport, Version
from evalsite.accounts.models import Project, User
from tests.api import Api, code_of
from tests.datasets.conftest import Upload, answers, jsonl, question, upload
from tests.working import do_jobs

__all__ = ["upload"]  # a fixture
PATH = "projects/physics/datasets"


def file(content: bytes, name: str) -> io.BytesIO:
    sent = io.BytesIO(content)
    sent.name = name
    return sent


def read(reply: Any) -> Version:
    """The version that an upload's reply names, read as a worker reads it."""
    version = Version.objects.get(pk=reply.json()["id"])
    import_version(version.pk)
    version.refresh_from_db()
    return version


def test_a_table_comes_in_with_its_columns(alice: User, project: Project) -> None:
    table = file(b"ask,said\n1+1?,2\n2+2?,4\n", "sums.csv")
    reply = Api(alice).upload(PATH, file=table, columns="question=ask,answer:alpha=said")
    assert reply.status_code == 202, reply.text
    version = read(reply)
    assert (version.valid_rows, list(version.models_found)) == (2, ["alpha"])


def test_columns_that_are_not_there_are_refused_and_nothing_is_kept(alice: User, project: Project) -> None:
    table = file(b"ask,said\n1+1?,2\n", "sums.csv")
    reply = Api(alice).upload(PATH, file=table, columns="question=nothing")
    assert reply.status_code == 422
    assert "columns" in reply.json()["error"]["fields"]
    assert not FileImport.objects.exists()


def test_a_file_of_another_tool_comes_in(alice: User, project: Project) -> None:
    api = Api(alice)
    outputs = [{"instruction": "1+1?", "output": "2", "generator": "alpha"}]
    reply = api.upload(PATH, file=file(json.dumps(outputs).encode(), "outputs.json"), name="alpaca")
    version = read(reply)
    assert api.get(f"{PATH}/{version.dataset_id}/versions/1").json()["source"] == "alpaca_eval"


def test_several_files_are_parts_of_one_data_set(alice: User, project: Project) -> None:
    parts = [file(jsonl(question(text)), f"{text}.jsonl") for text in ("one", "two")]
    assert read(Api(alice).upload(PATH, file=parts, name="sums")).valid_rows == 2


def test_a_repair_makes_a_version_once(alice: User, upload: Upload) -> None:
    version = upload(jsonl(question("1+1?")) + b'{"messages": [],}\n', read=True, user=alice)
    api, path = Api(alice), f"{PATH}/{version.dataset_id}/versions/1/repairs"
    replies = [api.post(path, {"repairs": ["strip_trailing_commas"]}) for _time in range(2)]
    assert [(reply.status_code, reply.json()["version"]) for reply in replies] == [(202, 2), (200, 2)]


def test_a_repair_that_does_not_apply_is_refused(alice: User, upload: Upload) -> None:
    version = upload(jsonl(question("1+1?")), read=True, user=alice)
    path = f"{PATH}/{version.dataset_id}/versions/1/repairs"
    assert code_of(Api(alice).post(path, {"repairs": ["strip_comments"]})) == (422, "invalid")


def sent_answers(api: Api, version: Version, *lines: Any, **fields: str) -> dict[str, Any]:
    """What the API says about added answers once they were matched."""
    path = f"{PATH}/{version.dataset_id}/versions/1/answers"
    reply = api.upload(path, file=file(jsonl(*lines), "beta.jsonl"), **fields)
    assert reply.status_code == 202, reply.text
    do_jobs("match_answers")
    document: dict[str, Any] = api.get(f"{path}/{reply.json()['id']}").json()
    return document


def test_answers_that_match_become_a_version(alice: User, upload: Upload) -> None:
    version = upload(jsonl(question("1+1?"), question("2+2?")), read=True, user=alice)
    lines = [{"line": line, "model_outputs": answers(beta=text)} for line, text in ((1, "2"), (9, "4"))]
    document = sent_answers(Api(alice), version, *lines)
    assert (document["state"], document["version"], document["matched"]) == ("used", 2, 1)
    assert sum(document["unmatched"].values()) == 1


def test_answers_to_unknown_turns_wait_for_a_decision(alice: User, upload: Upload) -> None:
    turns = [
        {"role": role, "content": text} for role, text in (("user", "a"), ("assistant", "b"), ("user", "c"))
    ]
    version = upload(jsonl({"messages": turns}), read=True, user=alice)
    line = {"messages": turns[-1:], "model_outputs": answers(beta="d"), "line": 1}
    document = sent_answers(Api(alice), version, line, match_by="line")
    assert (document["state"], document["version"]) == ("matched", None)
    assert document["confirm_turns"] == 1
    assert sent_answers(Api(alice), version, line, match_by="line", same_turns="1")["version"] == 2
