"""The repair page over HTTP, and downloads of a version."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import closing
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import translation

from datasets import selectors, services
from datasets.importing.worker import import_version
from datasets.models import Response, Row, Version
from evalsite.accounts.models import User
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, question
from tests.datasets.core.helpers import PRINTED

pytestmark = pytest.mark.django_db
COMMENTED = jsonl(question("Why?")).replace(b"\n", b" // <note>\n")
DOWNLOADS = ["bad-rows/", "download/rows.jsonl"]


def address(version: Version) -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/"


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def page(client: Client, version: Version) -> str:
    return client.get(address(version)).content.decode()


def download(client: Client, version: Version, what: str) -> bytes:
    answer = client.get(address(version) + what, headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)  # type: ignore[arg-type]


def repaired(client: Client, version: Version, form: dict[str, Any]) -> Version:
    """Submit the repair form; return the new version, imported."""
    number = (
        client.post(address(version) + "repair/", form).headers["Location"].rstrip("/").rpartition("v")[2]
    )
    made = Version.objects.get(dataset=version.dataset, number=int(number))
    import_version(made.pk)
    made.refresh_from_db()
    return made


def test_the_printed_example_is_fixed_by_one_click(as_alice: Client, project: Any) -> None:
    file = io.BytesIO(PRINTED.encode())
    file.name = "example.json"
    as_alice.post("/p/physics/datasets/upload/", {"file": file, "name": "", "chosen_format": ""})
    version = Version.objects.get()
    import_version(version.pk)
    text = page(as_alice, version)
    names = [
        name for name in ("strip_comments", "strip_trailing_commas", "to_jsonl") if f'value="{name}"' in text
    ]
    made = repaired(as_alice, version, {"repair": names})
    assert (made.format, made.rows, made.valid_rows, made.usable) == ("judge_only", 1, 1, True)
    assert Response.objects.filter(row__version=made).count() == 4


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_of_a_printed_file_is_said_what_is_known(as_alice: Client, upload: Upload, broken: int) -> None:
    """Objects in pretty-printed JSON are not rows yet, so only incomplete ones are reported."""
    version = upload(('{\n  "messages": 1 2\n}\n' * broken + PRINTED).encode(), name="p", read=True)
    reported = page(as_alice, version).split("<dl")[0]
    assert "are not one per line" in reported
    assert "have errors" not in reported
    assert "has errors" not in reported
    assert ("1 object is incomplete" in reported, "2 objects are incomplete" in reported) == (
        broken == 1,
        broken == 2,
    )
    assert ("Incomplete objects become invalid rows" in reported) == bool(broken)
    everywhere = page(as_alice, version) + as_alice.get("/p/physics/datasets/").content.decode()
    assert re.search(r"\d invalid row", everywhere) is None
    assert everywhere.count("not one per line yet") == 2


def test_the_page_shows_a_real_row_before_and_after(as_alice: Client, upload: Upload) -> None:
    assert "<del> // &lt;note&gt;</del>" in page(as_alice, upload(COMMENTED, read=True))


def test_after_the_repair_the_page_says_what_was_fixed_and_what_remains(
    as_alice: Client, upload: Upload
) -> None:
    version = upload(COMMENTED + b"{'a': b}\n", read=True)
    text = page(as_alice, repaired(as_alice, version, {"repair": "strip_comments"}))
    assert "Repaired from version 1" in text
    assert "remains" in text
    assert re.search(r'<th scope="row">Invalid JSON: .* <code class="quiet-text">json.invalid</code>', text)
    assert "Fixes 1 of 2." in page(as_alice, version)


def test_after_the_repair_only_findings_that_changed_are_listed(as_alice: Client, upload: Upload) -> None:
    some = (
        question("How?", model_outputs=answers(lark="So.")),
        question("When?", model_outputs=answers(wren="Now.")),
    )
    version = upload(COMMENTED + jsonl(*some), read=True)
    text = page(as_alice, repaired(as_alice, version, {"repair": "strip_comments"}))
    table = text.partition('id="repaired"')[2].partition("</table>")[0]
    assert re.findall(r"<code.*?>(.*?)</code>", table) == ["json.invalid", "model_outputs.missing"]


def test_misspelt_keys_are_renamed_by_one_click(as_alice: Client, upload: Upload) -> None:
    wrong = {"mesages": [{"role": "user", "content": "Why?"}]}
    version = upload(jsonl(wrong, wrong | {"id": 1}), read=True)
    text = page(as_alice, version)
    assert "Rename in 2 rows, as a new version" in text
    assert "<code>mesages</code> → <code>messages</code>" in text
    assert repaired(as_alice, version, {"repair": "rename_key"}).valid_rows == 2


def test_while_it_is_repaired_the_page_says_so(as_alice: Client, upload: Upload) -> None:
    version = upload(COMMENTED, read=True)
    page_after = as_alice.post(
        address(version) + "repair/", {"repair": "strip_comments"}, follow=True
    ).content
    assert b"waiting to be repaired" in page_after


def test_a_cancelled_repair_says_what_was_kept(as_alice: Client, upload: Upload) -> None:
    version = upload(COMMENTED, read=True)
    as_alice.post(address(version) + "repair/", {"repair": "strip_comments"})
    made = Version.objects.get(number=2)
    text = as_alice.post(address(made) + "cancel/", follow=True).content.decode()
    assert "The repair was cancelled" in text
    assert as_alice.get(address(made) + "original/").status_code == 404


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ({"group-0": "0"}, "qwen3"),
        ({"group-0": "1"}, "Qwen-3"),
        ({"group-0": "other", "other-0": " 千问 "}, "千问"),
    ],
)
def test_alike_names_get_the_name_that_was_chosen(
    as_alice: Client, upload: Upload, form: dict[str, str], name: str
) -> None:
    rows = [question("q", model_outputs=[{"model_name": n, "responses": [{"content": "x"}]}]) for n in
            ("qwen3", "qwen3", "Qwen-3")]  # fmt: skip
    made = repaired(as_alice, upload(jsonl(*rows), read=True), {"unify": "1"} | form)
    assert list(made.models_found) == [name]


@pytest.mark.parametrize(
    "form", [{}, {"repair": "x"}, {"unify": "1"}, {"repair": "to_utf8"}, {"unify": "1", "group-0": "9"}]
)
def test_a_form_that_asks_for_nothing_makes_nothing(
    as_alice: Client, upload: Upload, form: dict[str, str]
) -> None:
    version = upload(COMMENTED, read=True)
    text = as_alice.post(address(version) + "repair/", form, follow=True).content.decode()
    assert "does not apply to this version" in text
    assert Version.objects.count() == 1


def test_who_clicks_second_is_led_to_the_same_version(as_alice: Client, client_of: ClientOf, adam: User,
                                                      upload: Upload) -> None:  # fmt: skip
    version = upload(COMMENTED, read=True)
    first = as_alice.post(address(version) + "repair/", {"repair": "strip_comments"})
    second = client_of(adam).post(address(version) + "repair/", {"repair": "strip_comments"}, follow=True)
    assert second.redirect_chain[0][0] == first.headers["Location"]
    assert "already exists" in second.content.decode()


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 302), ("adam", 302), ("bob", 403), ("rita", 403), ("charlie", 404)]
)
def test_who_may_repair(
    client_of: ClientOf, cast: dict[str, User], upload: Upload, name: str, status: int
) -> None:
    client, there = client_of(cast[name]), address(upload(COMMENTED, read=True)) + "repair/"
    assert client.post(there, {"repair": "strip_comments"}).status_code == status
    assert client.get(there).status_code == 405


def test_who_may_not_repair_sees_no_button(client_of: ClientOf, bob: User, upload: Upload) -> None:
    text = page(client_of(bob), upload(COMMENTED, read=True))
    assert "<del>" in text
    assert "Repair into a new version" not in text


@pytest.mark.parametrize(
    ("name", "status"), [("alice", 200), ("bob", 200), ("adam", 200), ("rita", 403), ("charlie", 404)]
)
@pytest.mark.parametrize("what", DOWNLOADS)
def test_who_may_download(
    client_of: ClientOf, cast: dict[str, User], upload: Upload, what: str, name: str, status: int
) -> None:
    version = upload(COMMENTED, read=True)
    with closing(client_of(cast[name]).get(address(version) + what)) as answer:
        assert answer.status_code == status


# Bad rows


def test_a_bad_object_comes_back_with_its_findings_first(as_alice: Client, upload: Upload) -> None:
    bad = '{"z":1.50,"messages":[{"role":"robot","content":"q"}],"n":123456789012345678901}'
    version = upload(jsonl(question("fine")) + bad.encode() + b"\n", read=True)
    (line,) = download(as_alice, version, "bad-rows/").decode().splitlines()
    assert line.startswith('{"findings":[{"code": ')
    assert line.endswith("," + bad[1:])
    assert {found["code"] for found in json.loads(line)["findings"]} == {"role.unknown"}


def test_what_is_no_json_comes_back_as_a_text(as_alice: Client, upload: Upload) -> None:
    (line,) = download(
        as_alice, upload(jsonl(question("a")) + b"{bad\n", read=True), "bad-rows/"
    ).splitlines()
    row = json.loads(line)
    assert (row["line"], row["raw"], row["findings"][0]["code"]) == (2, "{bad", "json.invalid")


def test_a_row_with_a_key_called_findings_keeps_it(as_alice: Client, upload: Upload) -> None:
    version = upload(jsonl({"messages": [], "findings": "mine"}), read=True)
    row = json.loads(download(as_alice, version, "bad-rows/"))
    assert (row["findings"], row["findings_2"][0]["code"]) == ("mine", "messages.empty")


def test_all_bad_rows_come_back_and_not_only_the_findings_kept(as_alice: Client, upload: Upload) -> None:
    version = upload(jsonl(*({"messages": str(n)} for n in range(1203))), read=True)
    rows = [json.loads(line) for line in download(as_alice, version, "bad-rows/").splitlines()]
    assert [row["findings"][0]["code"] for row in rows] == ["messages.not_list"] * 1203


def test_findings_are_reported_in_the_readers_language(as_alice: Client, upload: Upload) -> None:
    version = upload(jsonl({"messages": []}), read=True)
    answer = as_alice.get(address(version) + "bad-rows/", headers={"Accept-Language": "zh-hans"})
    with translation.override("en"):
        assert "空" in json.loads(b"".join(answer.streaming_content))["findings"][0]["message"]  # type: ignore[arg-type]


def test_a_row_beyond_the_limit_comes_back_as_far_as_it_is_kept(
    as_alice: Client, upload: Upload, settings: LazySettings
) -> None:
    version = upload(jsonl(question("x" * (settings.CONFIG.row_max_kb * 1024))), read=True)
    row = json.loads(download(as_alice, version, "bad-rows/"))
    assert row["findings"][0]["code"] == "row.too_large"


def test_bad_csv_records_come_after_a_column_of_findings(as_alice: Client, upload: Upload) -> None:
    source = 'prompt,response,note\n1,2,"a\nb"\n3,4\n5,6,7,8\n"never, ends\n'
    version = upload(source.encode(), read=True)
    text = download(as_alice, version, "bad-rows/").decode()
    assert text.startswith("evalsite_findings,prompt,response,note\r\n")
    rows = list(csv.reader(io.StringIO(text)))
    assert [row[1:] for row in rows[1:3]] == [["3", "4"], ["5", "6", "7", "8"]]
    assert ["csv.columns" in row[0] for row in rows[1:3]] == [True, True]
    assert rows[-1][1].rstrip("\n") == "never, ends"


def test_a_bad_csv_record_computes_nothing_in_a_spreadsheet(as_alice: Client, upload: Upload) -> None:
    source = 'prompt,response,=note\n=1+1,"x, =y"\n"@SUM(A1)","a\n+b",c,＝d\nplain,text\n'
    text = download(as_alice, upload(source.encode(), read=True), "bad-rows/").decode()
    header, *rows = csv.reader(io.StringIO(text))
    assert header[1:] == ["prompt", "response", "'=note"]
    assert [row[1:] for row in rows] == [
        ["'=1+1", "x, =y"],
        ["'@SUM(A1)", "a\n+b", "c", "'＝d"],
        ["plain", "text"],
    ]
    assert text.endswith(",plain,text\r\n")


def test_a_csvs_header_with_a_finding_is_no_bad_row(as_alice: Client, upload: Upload) -> None:
    version = upload(b"promt,response,note\n1,2,3\n4,5,6\n", read=True)
    text = page(as_alice, version)
    assert (version.rows, version.bad_rows, version.counts["csv.header"]) == (2, 2, 1)
    assert "did you mean “prompt”?" in text
    assert "rows/?line=1" not in text
    listed = as_alice.get(address(version) + "findings/csv.header/").content.decode()
    assert "Affected rows" not in listed
    rows = list(csv.reader(io.StringIO(download(as_alice, version, "bad-rows/").decode())))
    assert [row[1:] for row in rows] == [["promt", "response", "note"], ["1", "2", "3"], ["4", "5", "6"]]


@pytest.mark.parametrize(
    ("language", "hint", "fix"),
    [
        ("en", "The role is “asistant”: did you mean “assistant”?", "Correct misspelled roles"),
        ("zh-hans", "role 是“asistant”：是不是要写“assistant”？", "更正拼错的角色"),
    ],
)
def test_the_page_says_what_was_meant_and_what_the_repair_does(
    as_alice: Client, upload: Upload, language: str, hint: str, fix: str
) -> None:
    wrong = question("Why?") | {
        "messages": [{"role": "user", "content": "?"}, {"role": "asistant", "content": "4"}]
    }
    version = upload(jsonl(question("Why?"), wrong), read=True)
    text = as_alice.get(address(version), headers={"accept-language": language}).content.decode()
    assert hint in text
    assert fix in text
    assert repaired(as_alice, version, {"repair": "fix_role"}).usable


def test_a_binary_file_has_one_finding_that_says_what_to_save_instead(
    as_alice: Client, upload: Upload
) -> None:
    version = upload(bytes(range(256)) * 400, name="data.bin", read=True)
    assert (version.counts, version.rows) == ({"file.other_kind": 1}, 0)
    assert "This file is a binary file, not a dataset: save its data as JSONL or CSV (UTF-8)." in page(
        as_alice, version
    )


def test_a_version_without_bad_rows_has_no_such_file(as_alice: Client, upload: Upload) -> None:
    assert as_alice.get(address(upload(jsonl(question("a")), read=True)) + "bad-rows/").status_code == 404


# Good rows


def again(client: Client, upload: Upload, version: Version, what: str = "download/rows.jsonl") -> Version:
    return upload(download(client, version, what), name="again", read=True)


def content(version: Version) -> list[Any]:
    lines = Row.objects.filter(version=version, valid=True).order_by("line").values_list("line", flat=True)
    rows = [selectors.row_for(version, line) for line in lines]
    return [
        (
            selectors.row_values(row),
            [(r.candidate.name, r.number, r.raw) for r in selectors.responses_of(row)],
        )
        for row in rows
        if row
    ]


@pytest.mark.parametrize(
    "source",
    [
        jsonl(question("a", n=10**30, z=1, b="\u2028"), question("b", ref_answer=None)),
        jsonl(question("a", model_outputs=answers(beta="1", alpha="2"), id=1)) + b"{bad\n",
        jsonl({"conversation": [{"prompt": "p", "response": "r"}], "system": "s", "tag": ["x"]}),
        'prompt,response,system,note\r\n"a ""b""\n",答案,s,"1,2"\r\n'.encode(),
        b'{"messages":[{"role":"user","content":"q"}],"model_outputs":[{"model_name":"m","responses":[{"content":"1"},{"content":"2","x":1.50}]}]}',
    ],
)
def test_what_is_downloaded_reads_back_equal(as_alice: Client, upload: Upload, source: bytes) -> None:
    version = upload(source, read=True)
    assert content(again(as_alice, upload, version)) == content(version)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-8-sig"])
def test_a_legacy_csv_comes_back_as_csv(as_alice: Client, upload: Upload, encoding: str) -> None:
    source = 'note,Prompt,response\r\n中文,"a, ""b""","x\ny"\r\n'.encode(encoding)
    version = upload(source, read=True)
    result = again(as_alice, upload, version, "download/rows.csv")
    assert (result.format, content(result)) == ("legacy_csv", content(version))


def test_texts_like_formulas_in_a_csv_of_bad_rows_read_back_equal(as_alice: Client, upload: Upload) -> None:
    """Also from the bad rows of that file, and where it has such a column itself."""
    texts = ["=1+1", "'=2", "''-3", " +4", "'quoted'"]
    source = "prompt,response,evalsite_findings\r\n" + "".join(
        f"{text},answer,@5,extra\r\n" for text in texts
    )
    for _time in range(2):
        version = upload(source.encode(), read=True)
        source = download(as_alice, version, "bad-rows/").decode()
    rows = content(upload(source.replace(",extra", "").encode(), read=True))
    assert [(values["question"], values["evalsite_findings"]) for values, _ in rows] == [
        (text, "@5") for text in texts
    ]


def test_an_apostrophe_in_another_csv_belongs_to_the_text(upload: Upload) -> None:
    for first in (b"note", b"findings", b"line"):
        source = first + b",prompt,response\r\nx,'=1,answer\r\n"
        ((values, _answers),) = content(upload(source, read=True))
        assert values["question"] == "'=1"


def test_bad_rows_left_out_are_stated_on_every_page(as_alice: Client, upload: Upload, alice: User) -> None:
    version = upload(jsonl(question("a")) + COMMENTED, read=True)
    services.version_leave_bad_rows_out(version=version, user=alice)
    text = page(as_alice, version)
    assert "1 invalid row of 2 is excluded from every run." in text
    assert "1 invalid row excluded" in text
    assert "1 invalid row excluded" in as_alice.get("/p/physics/datasets/").content.decode()


def test_a_row_of_the_download_is_the_line_as_it_was_uploaded(as_alice: Client, upload: Upload) -> None:
    lines = [
        b'{"b": 1.50, "model_outputs": [{"model_name": "x", "seed": 7, "responses": [{"content": "1"}], "z": {}}], '
        b'"messages": [{"role": "user", "content": "q"}], "a": 123456789012345678901234567890}',
        '{"messages":[{"content":"\u2028 //","role":"user"}],"model_outputs":[{"responses":[{"content":"2"}],'
        '"model_name":"x"}]}'.encode(),
    ]
    version = upload(b"\n" + lines[0] + b"\r\n{bad}\n" + lines[1], read=True)
    assert download(as_alice, version, "download/rows.jsonl") == lines[0] + b"\n" + lines[1] + b"\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_the_download_of_another_encoding_is_utf8(as_alice: Client, upload: Upload, encoding: str) -> None:
    source = jsonl(question("北京"), question("首都"))
    version = upload(source.decode().encode(encoding), read=True)
    assert download(as_alice, version, "download/rows.jsonl") == source


def test_where_the_file_is_gone_the_rows_are_put_together_again(as_alice: Client, upload: Upload) -> None:
    rows = [question("a", model_outputs=answers(x="1")), question("b", model_outputs=answers(x="2"))]
    version = upload(jsonl(*rows), read=True)
    version.path.unlink()
    text = download(as_alice, version, "download/rows.jsonl").decode()
    assert [json.loads(line) for line in text.splitlines()] == rows


def test_the_first_bad_rows_are_sent_without_waiting_for_the_others(as_alice: Client, upload: Upload) -> None:
    version = upload(b"{bad\n" * 700 + jsonl(question("a")), read=True)
    parts = list(as_alice.get(address(version) + "bad-rows/").streaming_content)  # type: ignore[arg-type]
    assert [part.count(b"\n") for part in parts] == [20, 500, 180]


def test_what_a_repair_does_to_a_row_is_shown_at_its_finding_and_only_there(
    as_alice: Client, upload: Upload
) -> None:
    row = jsonl(question("Why?"))
    text = page(as_alice, upload(row.replace(b"}\n", b",}\n") + row.replace(b"}\n", b"\n"), read=True))
    table, _, rest = text.partition('id="findings"')[2].partition("</table>")
    assert table.count("<del>,</del>") == 1
    assert "<del>" not in rest
