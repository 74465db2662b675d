"""Good rows as CSV: one format can be re-uploaded unchanged, the other is safe from formula injection."""

from __future__ import annotations

import csv
import json
from io import BytesIO, StringIO
from typing import Any

import pandas as pd
import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from datasets import selectors
from datasets.models import Row, Version
from datasets.versions import downloads
from evalsite.accounts.models import User
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, question
from tests.datasets.helpers import CELLS, SETTINGS

pytestmark = pytest.mark.django_db


def turn(prompt: str, response: str, **more: Any) -> dict[str, Any]:
    return {"conversation": [{"prompt": prompt, "response": response}], **more}


def values(version: Version) -> list[dict[str, Any]]:
    rows = Row.objects.filter(version=version, valid=True).order_by("line").select_related("version")
    return [selectors.row_values(row) for row in rows]


def table(version: Version) -> list[dict[str, str]]:
    text = b"".join(downloads.table_csv(version)).decode("utf-8-sig")
    return list(csv.DictReader(StringIO(text, newline="")))


def address(version: Version, file: str = "") -> str:
    below = f"download/{file}" if file else ""
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/{below}"


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


PROMPTS = CELLS.map(lambda text: f"问{text}")
ONE_TURN = st.builds(turn, PROMPTS, CELLS, note=CELLS) | st.builds(
    turn, PROMPTS, CELLS, system=CELLS, note=CELLS
)


@SETTINGS
@given(st.lists(ONE_TURN, min_size=1, max_size=3))
def test_single_turns_upload_again_to_the_same_rows(upload: Upload, rows: list[Any]) -> None:
    version = upload(jsonl(*rows), read=True)
    again = upload(b"".join(downloads.legacy_csv(version)), read=True, name="again")
    assert (again.format, values(again)) == ("legacy_csv", values(version))


def test_messages_that_are_one_turn_upload_again_too(upload: Upload) -> None:
    asked = [{"role": "system", "content": "s"}, {"role": "user", "content": "=1+1"}]
    version = upload(
        jsonl({"messages": [*asked, {"role": "assistant", "content": "2"}], "id": "a"}), read=True
    )
    again = upload(b"".join(downloads.legacy_csv(version)), read=True, name="again")
    assert values(again) == values(version)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"conversation": [{"prompt": "p", "response": "r"}] * 2}, "turns"),
        (question("p"), "turns"),
        (
            {"messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "r", "x": 1}]},
            "turns",
        ),
        (turn("p", "r", id=7), "field"),
        (turn("p", "r", note="n", Prompt="q"), "field"),
        (turn("p", "r"), "field"),
    ],
)
def test_what_would_be_lost_keeps_a_version_from_being_a_plain_csv(
    upload: Upload, row: dict[str, Any], why: str
) -> None:
    kind = "messages" in row
    fit = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "note": "n"}
    version = upload(jsonl(fit if kind else turn("q", "a", note="n"), row), read=True)
    found = downloads.unfit(version)
    assert found
    assert (found.line, found.why) == (2, why)


def test_answers_of_models_would_be_lost_too(upload: Upload) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    found = downloads.unfit(upload(jsonl({"messages": messages, "model_outputs": answers(m="x")}), read=True))
    assert found
    assert found.why == "answers"


def test_the_page_says_which_row_does_not_fit(as_alice: Client, upload: Upload) -> None:
    version = upload(jsonl(turn("q", "a"), turn("q", "a", id=1)), read=True)
    page = as_alice.get(address(version, "rows.csv"), follow=True).content.decode()
    assert "Row at line 2 cannot be exported as legacy CSV without loss: “id”" in page


def test_such_a_csv_is_offered_where_the_first_good_row_fits(as_alice: Client, upload: Upload) -> None:
    fit, other = upload(b"{bad\n" + jsonl(turn("q", "a")), read=True), upload(jsonl(question("q")), read=True)
    pages = [as_alice.get(address(one)).content.decode() for one in (fit, other)]
    assert [address(one, "rows.csv") in page for one, page in zip((fit, other), pages, strict=True)] == [
        True,
        False,
    ]


def test_a_table_has_a_record_for_each_answer(upload: Upload) -> None:
    given = [
        {"content": "1"},
        {"content": None, "reasoning_content": "hm", "tool_calls": [{"id": 1}], "x": 2},
    ]
    outputs = [{"model_name": "甲", "responses": given}, {"model_name": "b", "responses": [{"content": "3"}]}]
    found = table(upload(jsonl(question("问", model_outputs=outputs, id="k")), read=True))
    asked = {"line": "1", "question": "问", "gt": "", "id": "k", "bad_rows": "0"}
    assert all(asked.items() <= record.items() for record in found)
    shown = [(r["model"], r["number"], r["content"], r["reasoning_content"]) for r in found]
    assert shown == [("甲", "1", "1", ""), ("甲", "2", "", "hm"), ("b", "1", "3", "")]
    assert (found[1]["tool_calls"], found[1]["other_keys"]) == ('[{"id": 1}]', '{"x": 2}')


def test_a_table_of_questions_has_a_record_for_each_row(upload: Upload) -> None:
    found = table(
        upload(jsonl(question("a", ref_answer={"x": 1}), question("b", ref_answer="是")), read=True)
    )
    assert [(r["question"], r["ref_answer"]) for r in found] == [("a", '{"x": 1}'), ("b", "是")]
    assert "model" not in found[0]


def test_a_row_without_answers_among_others_has_a_record_too(upload: Upload) -> None:
    found = table(
        upload(
            jsonl(question("a"), question("b", model_outputs=answers(m="x"))),
            chosen_format="judge_only",
            read=True,
        )
    )
    assert [(r["question"], r["model"]) for r in found] == [("b", "m")]


def test_more_than_one_turn_is_stored_as_history_and_as_messages(upload: Upload) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    long, short = table(upload(jsonl({"messages": messages}, question("q")), read=True))
    assert (long["history"], json.loads(long["messages"])) == ("[SYSTEM] s", messages)
    assert (short["history"], short["messages"]) == ("", "")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_no_cell_of_a_table_begins_like_a_formula(upload: Upload, text: str) -> None:
    outputs = [{"model_name": text, "responses": [{"content": text, "reasoning_content": text}]}]
    source = jsonl(question(text, **{text: text, "ref_answer": text}, model_outputs=outputs))
    (record,) = table(upload(source, read=True))
    result = [record[name] for name in ("question", "ref_answer", "model", "content", "reasoning_content")]
    assert [*result, record[f"'{text}"]] == [f"'{text}"] * 6


def test_a_field_called_like_a_column_has_one_of_its_own(upload: Upload) -> None:
    (record,) = table(upload(jsonl(question("q", question="custom", line="x")), read=True))
    assert [record[name] for name in ("line", "question", "line_2", "question_2")] == [
        "1",
        "q",
        "x",
        "custom",
    ]


def test_beyond_so_many_fields_the_others_share_a_column(upload: Upload) -> None:
    more = {f"f{number:03}": number for number in range(downloads.FIELDS + 2)}
    (record,) = table(upload(jsonl(question("q", **more)), read=True))
    assert json.loads(record["other_fields"]) == {"f100": 100, "f101": 101}


def test_a_text_longer_than_a_cell_says_how_much_is_left_out(upload: Upload) -> None:
    (record,) = table(upload(jsonl(question("长" * 40_000)), read=True))
    assert record["question"].endswith("长… [+8000]")


@pytest.mark.parametrize("file", ["rows.csv", "table.csv"])
def test_excel_reads_its_chinese(as_alice: Client, upload: Upload, file: str) -> None:
    body = as_alice.get(address(upload(jsonl(turn("问", "答")), read=True), file)).getvalue()
    assert body.startswith("\ufeff".encode())
    assert "问" in body.decode()


@pytest.mark.parametrize("file", ["rows.csv", "table.csv", "rows.jsonl"])
def test_a_download_says_what_it_leaves_out(as_alice: Client, upload: Upload, file: str) -> None:
    version = upload(b"{bad\n" + jsonl(turn("q", "a")), read=True)
    assert "rows-without-1-bad." in as_alice.get(address(version, file))["Content-Disposition"]


def test_every_line_of_a_table_says_what_is_left_out(upload: Upload) -> None:
    assert [r["bad_rows"] for r in table(upload(b"{bad\n" + jsonl(turn("q", "a")), read=True))] == ["1"]


@pytest.mark.parametrize(("name", "status"), [("alice", 200), ("bob", 200), ("rita", 403), ("charlie", 404)])
@pytest.mark.parametrize("file", ["rows.csv", "table.csv", "rows.jsonl"])
def test_who_may_download(
    client_of: ClientOf, cast: dict[str, User], upload: Upload, name: str, status: int, file: str
) -> None:
    version = upload(jsonl(turn("q", "a")), read=True)
    assert client_of(cast[name]).get(address(version, file)).status_code == status


def test_a_repaired_version_leads_to_the_original(as_alice: Client, upload: Upload) -> None:
    first = upload(jsonl(turn("q", "a")), read=True)
    made = Version.objects.create(
        dataset=first.dataset, number=2, parent=first, origin="repair", state="ready"
    )
    page = as_alice.get(address(made)).content.decode()
    assert f'<a href="{address(first)}original/">The original, byte for byte' in page


def test_an_answer_with_earlier_turns_of_its_own_has_them_in_its_record(upload: Upload) -> None:
    asked = [{"role": "user", "content": "one?"}, {"role": "assistant", "content": "theirs"}]
    own = [asked[0], {"role": "assistant", "content": "mine"}]
    outputs = answers(alpha="a", beta="b")
    outputs[1]["responses"][0]["earlier_messages"] = own
    messages = [*asked, {"role": "user", "content": "two?"}]
    found = table(upload(jsonl({"messages": messages, "model_outputs": outputs}), read=True))
    assert [one["history"] for one in found] == ["[USER] one?\n[BOT] theirs", "[USER] one?\n[BOT] mine"]
    assert ["mine" in one["messages"] for one in found] == [False, True]
    assert [one["other_keys"] for one in found] == ["", ""]


def test_the_table_is_the_same_in_excel_and_parquet(as_alice: Client, upload: Upload) -> None:
    given = {**question("=1+1"), "id": 7, "tags": ["a"], "note": "x" * 40_000}
    version = upload(jsonl({**given, "model_outputs": answers(m="A \x01")}), read=True)
    (kept,) = table(version)
    book = pd.read_excel(BytesIO(as_alice.get(address(version, "table.xlsx")).getvalue()), dtype=str)
    found = pd.read_parquet(BytesIO(as_alice.get(address(version, "table.parquet")).getvalue()))
    assert list(book.columns) == list(found.columns) == list(kept)
    assert (book["question"][0], book["content"][0]) == ("=1+1", "A \N{REPLACEMENT CHARACTER}")
    assert book["note"][0] == kept["note"]
    assert (found["question"][0], found["content"][0], found["note"][0]) == ("=1+1", "A \x01", "x" * 40_000)
    assert (found["line"][0], found["id"][0], found["tags"][0]) == (1, "7", '["a"]')
