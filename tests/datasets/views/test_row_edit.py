"""Editing rows: the page of one row, the draft that collects edits, and the version created from it."""

from __future__ import annotations

import gzip
import html
import json
import re
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from datasets.importing.worker import import_version
from datasets.models import RowEdit, Version
from datasets.versions import row_edits
from evalsite.accounts.models import User
from evalsite.models import AuditEntry
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, answers, jsonl, numbered, question

pytestmark = pytest.mark.django_db
ODD = '{"z": 1.50, "messages": [{"role":"user","content":"Why?"}], "id": 12345678901234567890123, "a": {"k":[ 1,2 ]}}'
FILE = f'{ODD}\r\n\n{{"messages": [}}\n'.encode() + jsonl(question("What?"))


def address(version: Version, part: str) -> str:
    return f"/p/physics/datasets/{version.dataset_id}/v{version.number}/{part}"


def form_of(page: HttpResponse) -> dict[str, str]:
    """The row form's data as a browser would submit it unchanged."""
    text = page.content.decode().split('<form class="form"')[1].split("</form>")[0]
    fields = dict(re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n(.*?)</textarea>', text, re.DOTALL))
    fields |= dict(re.findall(r'<input type="hidden" name="(state|base)" value="([^"]*)"', text))
    chosen = re.findall(r'<select[^>]* name="([^"]+)">.*?<option selected>([^<]*)', text, re.DOTALL)
    found = {name: re.sub("\r?\n", "\r\n", html.unescape(value)) for name, value in fields.items()} | dict(
        chosen
    )
    return found


def edit(client: Client, version: Version, line: int, text: str, **more: str) -> HttpResponse:
    where = address(version, f"rows/{line}/edit/")
    state = form_of(client.get(where))["state"]
    return client.post(where, {"state": state, "text": text, **more})


def make(client: Client, version: Version) -> Version:
    """Create a version from the draft; return it imported."""
    seen = str(row_edits.newest(version))
    place = client.post(address(version, "edits/make/"), {"seen": seen}).headers["Location"]
    made = Version.objects.get(dataset=version.dataset, number=int(place.rstrip("/").rpartition("v")[2]))
    import_version(made.pk)
    made.refresh_from_db()
    return made


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


@pytest.fixture
def as_adam(client_of: ClientOf, adam: User) -> Client:
    return client_of(adam)


def test_edited_rows_become_a_version_and_all_else_stays_byte_for_byte(
    as_alice: Client, upload: Upload
) -> None:
    version = upload(FILE, read=True)
    assert (version.rows, version.valid_rows) == (3, 2)
    where = address(version, "rows/1/edit/")
    form = form_of(as_alice.get(where))
    (name,) = (name for name, value in form.items() if value == "Why?")
    assert as_alice.post(where, form | {name: "Why\r\n“so”?"}).status_code == 302
    assert (
        edit(as_alice, version, 3, '{"messages": [\r\n  {"role": "user", "content": "?"}\r\n]}').status_code
        == 302
    )
    made = make(as_alice, version)
    assert made.path.read_bytes() == FILE.replace(b"Why?", "Why\\n“so”?".encode()).replace(
        b'{"messages": [}', b'{"messages": [ {"role": "user", "content": "?"} ]}'
    )
    assert (made.origin, made.parent, made.rows, made.valid_rows) == ("edit", version, 3, 3)
    assert version.path.read_bytes() == FILE
    entry = AuditEntry.objects.get(action="dataset.edited")
    assert entry.detail == {"version": 2, "rows": 2, "lines": [1, 3]}
    page = as_alice.get(address(made, "")).content.decode()
    assert "Edited from version 1" in page
    assert "2 rows were edited by hand." in page
    assert "Review the edits" not in as_alice.get(address(version, "")).content.decode()


def test_a_row_can_be_added_and_another_left_out(as_alice: Client, upload: Upload) -> None:
    version = upload(jsonl(question("What?", topic="t", n=1), question("Why?")), read=True)
    new = address(version, "rows/0/edit/")
    form = form_of(as_alice.get(new))
    assert sorted(value for name, value in form.items() if name.startswith("field")) == [
        "",
        "",
        "null",
        "user",
    ]
    (content,) = (
        name for name, value in form.items() if value == "" and name != "state" and "field-1" in name
    )
    kept = as_alice.post(new, form | {content: "How?"})
    assert kept.headers["Location"] == address(version, "rows/3/edit/")
    assert "New row" in as_alice.get(kept.headers["Location"]).content.decode()
    deleted = edit(as_alice, version, 1, "", delete="1")
    page = as_alice.get(deleted.headers["Location"]).content.decode()
    assert "left out" in page
    assert (
        "The next version excludes this row."
        in as_alice.get(address(version, "rows/1/edit/")).content.decode()
    )
    made = make(as_alice, version)
    rows = [json.loads(line) for line in made.path.read_text().splitlines()]
    assert [row["messages"][0]["content"] for row in rows] == ["Why?", "How?"]
    assert (made.rows, made.valid_rows) == (2, 2)


def test_a_new_row_can_be_edited_again_and_deleted_before_it_is_in_a_version(
    as_alice: Client, upload: Upload
) -> None:
    version = upload(numbered(2), read=True)
    text = json.dumps(question("How?"))
    as_alice.post(address(version, "rows/0/edit/"), {"state": "", "text": text})
    edit(as_alice, version, 3, json.dumps(question("How then?")))
    assert [one.text for one in row_edits.open_edits(version)] == [json.dumps(question("How then?"))]
    edit(as_alice, version, 3, "", delete="1")
    assert not row_edits.open_edits(version).exists()
    assert row_edits.discarded_edits(version).get().lines == 0


def test_a_new_row_that_is_not_saved_yet_cannot_be_deleted(as_alice: Client, upload: Upload) -> None:
    version = upload(numbered(2), read=True)
    sent = as_alice.post(address(version, "rows/0/edit/"), {"state": "", "delete": "1"})
    assert sent.status_code == 404
    assert not RowEdit.objects.exists()


def test_two_who_add_a_row_at_once_both_do(as_alice: Client, as_adam: Client, upload: Upload) -> None:
    version = upload(numbered(2), read=True)
    for client, asked in ((as_alice, "Mine?"), (as_adam, "Ours?")):
        client.get(address(version, "rows/0/edit/"))
        client.post(address(version, "rows/0/edit/"), {"state": "", "text": json.dumps(question(asked))})
    made = make(as_alice, version)
    assert made.path.read_bytes().endswith(
        jsonl(question("Mine?"), question("Ours?")).replace(b'", ', b'", ')
    )
    assert made.rows == 4


def test_a_row_that_someone_edited_meanwhile_is_not_left_out(
    as_alice: Client, as_adam: Client, upload: Upload
) -> None:
    version = upload(numbered(2), read=True)
    edit(as_adam, version, 1, json.dumps(question("His")))
    refused = as_alice.post(address(version, "rows/1/edit/"), {"state": "", "delete": "1"}, follow=True)
    assert "Someone else edited line 1 in the meantime" in refused.content.decode()
    assert [one.text for one in row_edits.open_edits(version)] == [json.dumps(question("His"))]


def test_records_of_a_csv_can_be_added_and_left_out(as_alice: Client, upload: Upload) -> None:
    version = upload(b'prompt,response\r\n"a\r\nb",c\r\nd,e\r\n', name="table", file_name="t.csv", read=True)
    as_alice.post(address(version, "rows/0/edit/"), {"state": "", "text": "x,y"})
    edit(as_alice, version, 2, "", delete="1")
    assert make(as_alice, version).path.read_bytes() == b"prompt,response\r\nd,e\r\nx,y\r\n"


def test_a_form_sent_back_untouched_edits_nothing(as_alice: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    where = address(version, "rows/1/edit/")
    result = as_alice.post(where, form_of(as_alice.get(where)), follow=True).content.decode()
    assert "unchanged from the file" in result
    assert not RowEdit.objects.exists()


def test_a_row_whose_json_is_broken_opens_as_text_with_its_findings(as_alice: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    page = as_alice.get(address(version, "rows/3/edit/")).content.decode()
    assert 'name="text"' in page
    assert "json.invalid" in page
    for part in ("", "findings/json.invalid/", "rows/3/"):
        assert address(version, "rows/3/edit/") in as_alice.get(address(version, part)).content.decode()


def test_findings_are_checked_while_someone_types(as_alice: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    typed = {"text": '{"messages": [{"role": "usr", "content": "Why?"}]}', "show": "check", "state": ""}
    where = address(version, "rows/1/edit/")
    part = as_alice.post(where, typed, headers={"HX-Request": "true"}).content.decode()
    assert part.startswith('<div id="row-check"')
    assert "role.unknown" in part
    whole = as_alice.post(where, typed).content.decode()
    assert "role.unknown" in whole
    assert html.escape(typed["text"]) in whole
    assert not RowEdit.objects.exists()


def test_form_and_text_are_the_same_row(as_alice: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    where = address(version, "rows/1/edit/")
    form = form_of(as_alice.get(where))
    as_text = form_of(as_alice.post(where, form | {"show": "text", "field-0": "2.00"}))
    assert as_text["text"] == ODD.replace("1.50", "2.00")
    as_form = form_of(as_alice.post(where, as_text | {"show": "form"}))
    assert as_form["field-0"] == "2.00"
    assert json.loads(as_form["base"]) == as_text["text"]


def test_of_two_people_the_second_sees_what_the_first_wrote_and_both_texts_are_kept(
    as_alice: Client, as_adam: Client, upload: Upload
) -> None:
    version = upload(jsonl(question("What?")), read=True)
    where = address(version, "rows/1/edit/")
    hers, his = form_of(as_alice.get(where)), form_of(as_adam.get(where))
    (name,) = (name for name, value in hers.items() if value == "What?")
    as_alice.post(where, hers | {name: "What then?"})
    late = as_adam.post(where, his | {name: "What now?"})
    assert late.status_code == 409
    text = late.content.decode()
    assert "alice edited this row" in text
    assert "<del>then</del><ins>now</ins>" in text
    assert form_of(late)[name] == "What now?"
    assert [one.text for one in row_edits.open_edits(version)] == [
        jsonl(question("What then?")).decode().strip()
    ]
    as_adam.post(where, form_of(late))
    assert "now" in row_edits.open_edits(version).get().text
    page = as_adam.get(where).content.decode()
    assert f"{where}?edit=1" in page
    assert form_of(as_adam.get(f"{where}?edit=1"))[name] == "What then?"


def test_who_types_while_a_version_is_made_is_reported(
    as_alice: Client, as_adam: Client, upload: Upload
) -> None:
    version = upload(FILE, read=True)
    edit(as_alice, version, 4, jsonl(question("a")).decode())
    where = address(version, "rows/4/edit/")
    his = form_of(as_adam.get(where))
    make(as_alice, version)
    late = as_adam.post(where, {"state": his["state"], "text": jsonl(question("b")).decode()})
    assert late.status_code == 409
    assert "In the meantime, version 2 was created" in late.content.decode()
    as_adam.post(where, {"state": form_of(late)["state"], "text": jsonl(question("b")).decode()})
    assert make(as_adam, version).path.read_bytes().endswith(jsonl(question("b")))


def test_a_version_is_made_of_the_draft_as_it_was_seen(
    as_alice: Client, as_adam: Client, upload: Upload
) -> None:
    version = upload(FILE, read=True)
    edit(as_alice, version, 4, jsonl(question("a")).decode())
    seen = str(row_edits.newest(version))
    edit(as_adam, version, 1, jsonl(question("b")).decode())
    result = as_alice.post(address(version, "edits/make/"), {"seen": seen}, follow=True).content.decode()
    assert "The draft changed" in result
    assert Version.objects.count() == 1
    assert row_edits.version_edit(version=version, user=None, until=int(seen)) is not None
    assert [one.line for one in row_edits.open_edits(version)] == [1]


def test_an_edit_goes_into_one_version_only(as_alice: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    edit(as_alice, version, 4, jsonl(question("a")).decode())
    form = {"seen": str(row_edits.newest(version))}
    as_alice.post(address(version, "edits/make/"), form)
    result = as_alice.post(address(version, "edits/make/"), form, follow=True).content.decode()
    assert "has no edits" in result
    assert Version.objects.count() == 2


def test_a_discarded_edit_can_be_taken_back(as_alice: Client, as_adam: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    edit(as_alice, version, 4, jsonl(question("a")).decode())
    decide, listed = address(version, "rows/4/edit/decide/"), address(version, "edits/")
    assert "1 edit in the draft" in as_alice.get(listed).content.decode()
    as_alice.post(decide, {"state": "1-"})
    page = as_alice.get(listed).content.decode()
    assert "No edited rows" in page
    assert "Restore" in page
    assert "Someone else edited line 4" in as_adam.post(decide, {"state": "1-"}, follow=True).content.decode()
    as_adam.post(decide, {"state": "2-", "restore": "1"})
    assert [one.text for one in row_edits.open_edits(version)] == [jsonl(question("a")).decode().strip()]


def test_an_edit_back_to_what_is_in_the_file_leaves_the_draft(as_alice: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    edit(as_alice, version, 4, jsonl(question("a")).decode())
    edit(as_alice, version, 4, jsonl(question("What?")).decode())
    assert not row_edits.open_edits(version).exists()
    assert not row_edits.discarded_edits(version).exists()


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("  \r\n", "cannot be blank"),
        ('{"messages": [\r\n{', "several lines and is not valid JSON"),
        ('{"a": "\0"}', "NUL"),
        ('"' + "x" * row_edits.LONGEST + '"', "300,000 characters"),
    ],
)
def test_what_cannot_be_a_row_is_not_saved_and_not_lost(
    as_alice: Client, upload: Upload, text: str, result: str
) -> None:
    page = edit(as_alice, upload(FILE, read=True), 1, text)
    assert page.status_code == 422
    assert result in page.content.decode()
    assert form_of(page)["text"].strip() == text.strip()
    assert not RowEdit.objects.exists()


def test_a_record_of_a_csv_is_edited_by_its_columns(as_alice: Client, upload: Upload) -> None:
    source = 'Prompt,response,id\r\n"a\r\nb",c,1\r\n,"d, e",2\r\nf,g\r\n'.encode("utf-8-sig")
    version = upload(source, file_name="x.csv", read=True)
    assert (version.format, version.rows, version.valid_rows) == ("legacy_csv", 3, 1)
    for line, field, value in ((2, "field-1", 'c "x"'), (4, "field-0", "now asked")):
        where = address(version, f"rows/{line}/edit/")
        form = form_of(as_alice.get(where))
        assert as_alice.post(where, form | {field: value}).status_code == 302
    assert 'name="text"' in as_alice.get(address(version, "rows/5/edit/")).content.decode()
    assert edit(as_alice, version, 5, "f\r\ng,h").status_code == 422
    assert edit(as_alice, version, 5, 'f,"g').status_code == 422
    edit(as_alice, version, 5, "f,g,3", next="1")
    made = make(as_alice, version)
    assert made.path.read_bytes().decode("utf-8-sig") == (
        'Prompt,response,id\r\n"a\r\nb","c ""x""",1\r\nnow asked,"d, e",2\r\nf,g,3\r\n'
    )
    assert made.valid_rows == 3


def test_a_quote_that_took_in_the_rows_after_it_is_closed(as_alice: Client, upload: Upload) -> None:
    source = b'prompt,response\na,"b\nc,d\ne,f\n'
    version = upload(source, file_name="x.csv", read=True)
    form = form_of(as_alice.get(address(version, "rows/2/edit/")))
    edit(as_alice, version, 2, form["text"].replace('"b', "b"))
    assert make(as_alice, version).path.read_bytes().split() == source.replace(b'"', b"").split()


def test_a_packed_file_in_another_encoding_comes_out_in_utf8(as_alice: Client, upload: Upload) -> None:
    source = jsonl(question("问"), question("什么")).decode().encode("gb18030")
    version = upload(gzip.compress(source), file_name="x.jsonl.gz", read=True)
    edit(as_alice, version, 2, jsonl(question("好")).decode())
    made = make(as_alice, version)
    assert (made.path.read_bytes(), made.file_name) == (jsonl(question("问"), question("好")), "x.jsonl")


def test_a_row_that_is_too_long_for_a_form_says_so(
    as_alice: Client, upload: Upload, settings: LazySettings
) -> None:
    version = upload(jsonl(question("x" * row_edits.LONGEST), question("y")), read=True)
    result = as_alice.get(address(version, "rows/1/edit/"), follow=True).content.decode()
    assert "too long to edit in the browser" in result


def test_what_has_no_rows_is_not_edited(as_alice: Client, upload: Upload) -> None:
    version = upload(FILE, read=True)
    spread = upload(b'{\n"messages": []\n}\n' * 2, name="p", read=True)
    assert as_alice.get(address(version, "rows/2/edit/")).status_code == 404
    assert as_alice.get(address(spread, "rows/1/edit/")).status_code == 404
    version.path.unlink()
    assert as_alice.get(address(version, "rows/1/edit/")).status_code == 404
    assert "Edit this row" not in as_alice.get(address(version, "rows/1/")).content.decode()


def test_who_may_only_look_finds_no_way_to_edit(client_of: ClientOf, bob: User, upload: Upload) -> None:
    version, client = upload(FILE, read=True), client_of(bob)
    assert "Edit" not in client.get(address(version, "rows/1/")).content.decode()
    assert client.get(address(version, "rows/1/edit/")).status_code == 403
    assert client.post(address(version, "rows/1/edit/"), {"text": "x"}).status_code == 403


def test_queries_do_not_grow_with_rows_and_edits(as_alice: Client, upload: Upload, alice: User) -> None:
    counts = []
    for name, rows in (("few", 3), ("many", 40)):
        version = upload(numbered(rows), name=name, read=True)
        for line in range(1, rows + 1):
            row = row_edits.file_row(version, line)
            text = row.text.replace("question", "Q")
            assert row_edits.row_edit_save(row=row, text=text, state="", user=alice)
        for part in ("rows/2/edit/", "edits/", ""):
            with CaptureQueriesContext(
                connection,
            ) as queries:
                assert as_alice.get(address(version, part)).status_code == 200
            counts.append((part, len(queries)))
    assert counts[:3] == counts[3:]


def test_answers_stay_with_their_row(as_alice: Client, upload: Upload) -> None:
    version = upload(jsonl(question("q", model_outputs=answers(alpha="x", beta="y"))), read=True)
    form: dict[str, Any] = form_of(as_alice.get(address(version, "rows/1/edit/")))
    (name,) = (name for name, value in form.items() if value == "y")
    as_alice.post(address(version, "rows/1/edit/"), form | {name: "z"})
    made = make(as_alice, version)
    expected = jsonl(question("q", model_outputs=answers(alpha="x", beta="z")))
    assert made.path.read_bytes() == expected


def test_of_two_who_save_in_the_same_moment_one_is_reported(upload: Upload, alice: User, adam: User) -> None:
    version = upload(FILE, read=True)
    # Neither request had seen an edit.
    row = row_edits.FileRow(version, 4, 1, "b", None)
    row_edits.add_edit(row, None, "hers", alice, discarded=False)
    with pytest.raises(row_edits.EditConflict):
        row_edits.add_edit(row, None, "his", adam, discarded=False)
    assert row_edits.open_edits(version).get().text == "hers"
