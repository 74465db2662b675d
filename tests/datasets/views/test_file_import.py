"""Importing files of other tools over HTTP: from the upload to the version, and which records are skipped."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from datasets.importing.worker import import_version
from datasets.models import Candidate, FileImport, SavedColumns, Version
from datasets.versions import file_import
from evalsite.accounts.models import Project, User
from evalsite.storage import files
from tests.conftest import ClientOf
from tests.datasets.conftest import Upload, jsonl, question
from tests.datasets.core.imports.tabular import xlsx

pytestmark = pytest.mark.django_db
UPLOAD = "/p/physics/datasets/upload/"
TABLE = b"question;answer_a;answer_b;topic\nq1;x;y;t\nq2;;z;\n;1;2;u\n"
SCORED = b"question,model,answer,score\nq1,a,x,4\nq1,b,y,2\nq2,a,z,oops\n"


@pytest.fixture
def as_alice(client_of: ClientOf, alice: User) -> Client:
    return client_of(alice)


def send(client: Client, *contents: bytes, name: str = "table.csv", **fields: Any) -> str:
    """Upload files; return the redirect's path."""
    sent = [SimpleUploadedFile(name if n == 1 else f"{n}-{name}", one) for n, one in enumerate(contents, 1)]
    return client.post(UPLOAD, {"file": sent, **fields}).headers["Location"]


def shown(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def chosen(*roles: str, **more: str) -> dict[str, str]:
    """Form data that assigns these roles to the columns."""
    return {f"becomes-{number}": role for number, role in enumerate(roles)} | more


def done(client: Client, address: str, **fields: str) -> Version:
    """Confirm an import; return the new version, imported."""
    client.post(address, {"do": "import", **fields})
    version = Version.objects.get(origin="import")
    import_version(version.pk)
    version.refresh_from_db()
    return version


def test_an_upload_of_no_native_format_leads_to_its_columns_with_a_guess(as_alice: Client) -> None:
    page = shown(as_alice, send(as_alice, TABLE))
    assert '<option value="question" selected>' in page
    assert 'name="name-1" id="name-1" value="a"' in page
    assert "q1" in page
    assert "no_question" in page


def test_an_upload_of_a_native_format_leads_to_its_version(as_alice: Client) -> None:
    assert send(as_alice, jsonl(question("Why?")), name="a.jsonl").endswith("/v1/")


def test_an_upload_whose_keys_are_misspelt_leads_to_its_repair(as_alice: Client) -> None:
    wrong = {"mesages": [{"role": "user", "content": "Why?"}], "model_ouputs": [{"model_name": "lark"}]}
    assert send(as_alice, jsonl(wrong, wrong), name="a.jsonl").endswith("/v1/")


def test_nothing_is_made_of_a_table_before_it_is_confirmed(as_alice: Client) -> None:
    send(as_alice, TABLE)
    assert not Version.objects.exists()


def test_a_confirmed_import_is_the_first_version_with_answers_and_fields(as_alice: Client) -> None:
    version = done(as_alice, send(as_alice, TABLE))
    assert (version.dataset.name, version.number, version.parent) == ("table", 1, None)
    assert version.format == "judge_only"
    assert (version.rows, version.valid_rows, version.fields_found) == (2, 2, {"topic": 1})
    assert set(Candidate.objects.values_list("name", "responses")) == {("a", 1), ("b", 2)}


def test_the_table_is_the_original_of_the_version(as_alice: Client) -> None:
    version = done(as_alice, send(as_alice, TABLE))
    address = f"/p/physics/datasets/{version.dataset_id}/v1/"
    page = shown(as_alice, address)
    assert "The original, byte for byte<small>table.csv," in page
    assert "All parts as one file" not in page
    answer = as_alice.get(f"{address}original/")
    assert b"".join(answer.streaming_content) == TABLE  # type: ignore[arg-type]
    assert 'filename="table.csv"' in answer.headers["Content-Disposition"]


def test_what_was_left_out_is_on_the_versions_page(as_alice: Client) -> None:
    version = done(as_alice, send(as_alice, TABLE))
    page = shown(as_alice, f"/p/physics/datasets/{version.dataset_id}/v1/")
    assert "no_question" in page
    assert "table.csv, row 4" in page


def test_each_key_that_is_not_imported_is_on_the_page(as_alice: Client) -> None:
    output = {"instruction": "Why?", "output": "So.", "generator": "a"}
    given = [output, output | {f"key_{number}": "x" for number in range(9)}]
    version = done(as_alice, send(as_alice, jsonl(*given), name="outputs.jsonl"))
    page = shown(as_alice, f"/p/physics/datasets/{version.dataset_id}/v1/")
    assert all(f"key_{number} × 1" in page for number in range(9))


def test_a_changed_column_shows_at_once_and_is_kept(as_alice: Client) -> None:
    address = send(as_alice, TABLE)
    form = chosen("question", "left_out", "answer", "reference", **{"name-2": "Bee"})
    part = as_alice.post(address, form, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "<strong>Bee</strong>" in part
    assert 'value="Bee"' in shown(as_alice, address)


def test_a_draft_can_be_found_again_on_the_upload_page(as_alice: Client) -> None:
    assert send(as_alice, TABLE) in shown(as_alice, UPLOAD)


def test_a_discarded_draft_leaves_nothing(as_alice: Client) -> None:
    address = send(as_alice, TABLE)
    path = files.local(FileImport.objects.get().files[0]["stored_as"])
    assert as_alice.post(address, {"do": "discard"}).headers["Location"] == UPLOAD
    assert not FileImport.objects.exists()
    assert not path.exists()


def read_first(upload: Upload, client: Client) -> tuple[Version, str]:
    """A table that was read as a version before it is imported, and the address of its draft."""
    version = upload(TABLE, name="table", file_name="table.csv", read=True)
    begin = f"/p/physics/datasets/{version.dataset_id}/v1/import/"
    return version, client.post(begin, {}).headers["Location"]


def test_the_import_of_a_version_is_a_further_version(as_alice: Client, upload: Upload) -> None:
    version, address = read_first(upload, as_alice)
    assert address in shown(as_alice, f"/p/physics/datasets/{version.dataset_id}/v1/")
    made = done(as_alice, address)
    assert (made.number, made.parent) == (2, version)


def test_a_discarded_draft_of_a_version_leaves_the_version(as_alice: Client, upload: Upload) -> None:
    version, address = read_first(upload, as_alice)
    as_alice.post(address, {"do": "discard"})
    assert not FileImport.objects.exists()
    assert version.path.read_bytes() == TABLE


@pytest.mark.parametrize(("second", "name"), [("table.csv", "table"), ("table.tsv", "table.tsv")])
def test_a_draft_joins_the_data_set_of_its_own_file_only(as_alice: Client, second: str, name: str) -> None:
    drafts = [send(as_alice, TABLE), send(as_alice, TABLE, name=second)]
    made = [as_alice.post(address, {"do": "import"}).headers["Location"] for address in drafts]
    assert Version.objects.order_by("pk")[1].dataset.name == name
    assert made[1].endswith("/v2/") is (second == "table.csv")


def test_a_name_that_was_chosen_decides_the_data_set(as_alice: Client) -> None:
    as_alice.post(send(as_alice, TABLE), {"do": "import"})
    sent = {"file": SimpleUploadedFile("table.tsv", TABLE), "name": "table"}
    as_alice.post(as_alice.post(UPLOAD, sent).headers["Location"], {"do": "import"})
    assert list(Version.objects.order_by("pk").values_list("dataset__name", "number")) == [
        ("table", 1),
        ("table", 2),
    ]


def test_a_mapping_is_taken_again_for_the_next_table_with_the_same_columns(as_alice: Client) -> None:
    form = chosen("question", "left_out", "answer", "reference", **{"name-2": "Bee"})
    as_alice.post(send(as_alice, TABLE), {"do": "import", **form})
    assert SavedColumns.objects.count() == 1
    assert 'value="Bee"' in shown(as_alice, send(as_alice, TABLE, name="other.csv"))


def test_a_mapping_is_not_taken_over_from_another_project(
    as_alice: Client, client_of: ClientOf, charlie: User
) -> None:
    other = Project.objects.exclude(slug="physics").get()
    form = chosen("question", "answer", "left_out", "left_out", **{"name-1": "Secret"})
    as_alice.post(send(as_alice, TABLE), {"do": "import", **form})
    client = client_of(charlie)
    address = client.post(f"/p/{other.slug}/datasets/upload/", {"file": SimpleUploadedFile("t.csv", TABLE)})
    assert "Secret" not in shown(client, address.headers["Location"])


def test_without_a_question_the_page_says_so_and_imports_nothing(as_alice: Client) -> None:
    address = send(as_alice, b"a,b\n1,2\n")
    answer = as_alice.post(address, {"do": "import"})
    assert answer.status_code == 422
    assert "No column is chosen for the question" in answer.content.decode()
    assert not Version.objects.filter(origin="import").exists()


def test_columns_of_which_none_is_an_answer_are_warned_of(as_alice: Client) -> None:
    address = send(as_alice, b"question,wren,lark\nq1,a1,b1\n")
    assert "No column is an answer." in shown(as_alice, address)
    chosen_page = as_alice.post(address, chosen("question", "answer", "field", do="preview")).content.decode()
    assert "No column is an answer." not in chosen_page


def test_another_sheet_has_its_own_columns(as_alice: Client) -> None:
    book = xlsx([["question", "answer"], ["q", "a"]], [["Frage", "prompt"], ["r", "s"]])
    address = send(as_alice, book, name="book.xlsx")
    part = as_alice.post(address, {"sheet": "Sheet2", **chosen("question", "answer")}).content.decode()
    assert 'value="Sheet2" checked' in part
    assert "Frage" in part


def test_columns_of_the_sheet_that_was_guessed_can_be_chosen(as_alice: Client) -> None:
    address = send(as_alice, xlsx([["Read me"]], [["question", "robin"], ["q", "a"]]), name="book.xlsx")
    part = as_alice.post(address, {"sheet": "Sheet2", **chosen("question", "answer")}).content.decode()
    assert "<strong>robin</strong>" in part


def test_two_who_confirm_at_once_make_one_version(as_alice: Client, alice: User) -> None:
    send(as_alice, TABLE)
    draft = FileImport.objects.get()
    made = {file_import.import_commit(draft=draft, user=alice).pk for _time in range(2)}
    assert len(made) == 1


def test_scores_are_kept_as_a_results_file_and_handed_over(
    as_alice: Client, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    taken: list[FileImport] = []
    monkeypatch.setattr(file_import, "take_verdicts", [lambda given, _user: taken.append(given)])
    form = chosen("question", "model", "answer", "verdict", **{"name-3": "quality"})
    version = done(as_alice, send(as_alice, SCORED), **form)
    (given,) = taken
    lines = (Path(settings.DATA_DIR) / given.verdicts_as).read_text().splitlines()
    assert given.new_version == version
    said = [(one["line"], one["model"], one["metric"], one["value"]) for one in map(json.loads, lines)]
    assert said == [(1, "a", "quality", 4), (1, "b", "quality", 2)]
    assert given.left_out_counts == {"score_not_number": 1}


def test_an_import_whose_file_is_gone_says_so_and_can_be_tried_again(as_alice: Client) -> None:
    send(as_alice, TABLE)
    draft = FileImport.objects.get()
    made = file_import.import_commit(draft=draft, user=None)
    path = files.local(draft.files[0]["stored_as"])
    path.unlink()
    import_version(made.pk)
    page = shown(as_alice, f"/p/physics/datasets/{made.dataset_id}/v1/")
    assert "“table.csv” is missing on the server" in page
    path.write_bytes(TABLE)
    as_alice.post(f"/p/physics/datasets/{made.dataset_id}/v1/again/")
    import_version(made.pk)
    made.refresh_from_db()
    assert made.valid_rows == 2


def test_parts_of_one_table_are_imported_together_and_can_be_downloaded(as_alice: Client) -> None:
    address = send(
        as_alice, TABLE, TABLE.replace(b"q", b"r").replace(b"ruestion", b"question"), together="parts"
    )
    version = done(as_alice, address)
    page = shown(as_alice, f"/p/physics/datasets/{version.dataset_id}/v1/")
    first = as_alice.get(f"/p/physics/datasets/{version.dataset_id}/v1/original/1/")
    assert version.valid_rows == 4
    assert "Made from 2 files" in page
    assert b"r1" in b"".join(first.streaming_content)  # type: ignore[arg-type]


def test_files_that_nobody_decides_on_are_forgotten_in_time_but_no_version_is(
    as_alice: Client, upload: Upload
) -> None:
    read_first(upload, as_alice)
    send(as_alice, TABLE, TABLE.replace(b"q1", b"r1"), together="parts")
    alone, several = FileImport.objects.order_by("pk")
    kept = [files.local(one["stored_as"]) for one in several.files]
    file_import.delete_old()
    assert all(path.exists() for path in kept)
    FileImport.objects.update(created_at=timezone.now() - file_import.KEPT_FOR - timedelta(days=1))
    file_import.delete_old()
    assert list(FileImport.objects.all()) == [alone]
    assert alone.version is not None
    assert alone.version.path.exists()
    assert not any(path.exists() for path in kept)


CHATS = jsonl({"conversations": [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]})
OUTPUTS = jsonl({"task": "Why?", "all": {"lark": "So.", "wren": "Or so."}, "note": "{x"})


def preview_of(client: Client, address: str, *roles: str, **more: str) -> str:
    return client.post(address, chosen(*roles, do="preview", **more)).content.decode()


def test_the_last_reply_of_a_conversation_becomes_the_answer_of_a_model(as_alice: Client) -> None:
    address = send(as_alice, CHATS * 2, name="chats.jsonl")
    assert "last assistant message = answer of model" in shown(as_alice, address)
    page = preview_of(as_alice, address, "reply", **{"name-0": "gpt-4"})
    assert '<option value="reply" selected>' in page
    assert "<strong>gpt-4</strong> So." in page
    version = done(as_alice, address)
    assert (version.number, version.models_found) == (1, {"gpt-4": {"rows": 2, "responses": 2}})


def test_conversations_that_end_with_an_answer_lead_to_its_role(as_alice: Client) -> None:
    said = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
    address = send(as_alice, jsonl({"id": "1", "conversations": said}), name="chats.jsonl")
    assert "The conversations end with an answer." in shown(as_alice, address)


def test_outputs_of_several_models_are_one_column(as_alice: Client) -> None:
    address = send(as_alice, OUTPUTS, name="outputs.jsonl")
    page = preview_of(as_alice, address, "question", "outputs", "field")
    assert "<strong>lark</strong> So." in page
    assert "<strong>wren</strong> Or so." in page


@pytest.mark.parametrize(
    ("role", "warned"), [("answer", True), ("outputs", False), ("field", False), ("reference", False)]
)
def test_a_column_of_json_is_warned_of_where_text_is_wanted(
    as_alice: Client, role: str, warned: bool
) -> None:
    page = preview_of(as_alice, send(as_alice, OUTPUTS, name="o.jsonl"), "question", role, "answer")
    assert ("“all” holds JSON where text is wanted." in page) is warned
    assert "“note” holds JSON" not in page


def test_json_in_the_cells_of_a_csv_is_warned_of_too(as_alice: Client) -> None:
    address = send(as_alice, b'question,answer\nWhy?,"[{""role"": ""user""}]"\n')
    assert "“answer” holds JSON where text is wanted." in shown(as_alice, address)


BOOK = xlsx([["question", "answer"], ["q1", "a"], [None, None], ["q1", "a"]])


@pytest.mark.parametrize(
    ("body", "name", "place"),
    [
        (b"question,answer\n,skipped\nq1,a\nq1,a\n", "table.csv", "table.csv, line 4"),
        (BOOK, "book.xlsx", "book.xlsx · Sheet1, line 4"),
    ],
)
def test_findings_of_an_imported_version_name_the_line_of_the_source_file(
    as_alice: Client, body: bytes, name: str, place: str
) -> None:
    version = done(as_alice, send(as_alice, body, name=name))
    page = shown(as_alice, f"/p/physics/datasets/{version.dataset_id}/v1/findings/row.duplicate/")
    assert place in page


def test_several_tables_show_rows_of_each(as_alice: Client) -> None:
    first = b"question,answer\n" + b"".join(b"first %d,a\n" % number for number in range(300))
    page = shown(as_alice, send(as_alice, first, b"question,answer\nsecond,b\n", together="parts"))
    assert "first 0" in page
    assert "second" in page
    assert "2-table.csv" in page


def test_requests_of_a_batch_and_their_answers_are_shown_together_before_anything_is_made(
    as_alice: Client,
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Why?"}]}
    reply = {"model": "m-1", "choices": [{"message": {"role": "assistant", "content": "So."}}]}
    asked = jsonl({"custom_id": "r-1", "method": "POST", "url": "/v1/chat/completions", "body": body})
    batch = jsonl(
        {"id": "b", "custom_id": "r-1", "response": {"status_code": 200, "body": reply}, "error": None}
    )
    address = send(as_alice, asked, batch, name="batch.jsonl", together="each")
    page = shown(as_alice, address)
    assert "Why?" in page
    assert "<strong>m-1</strong> So." in page
    assert not Version.objects.exists()
    version = done(as_alice, address)
    assert (version.valid_rows, version.models_found) == (1, {"m-1": {"rows": 1, "responses": 1}})


def test_separate_tables_stay_separate(as_alice: Client) -> None:
    assert send(as_alice, TABLE, TABLE, together="each") == UPLOAD
    assert list(FileImport.objects.order_by("name").values_list("name", flat=True)) == ["2-table", "table"]
    assert "2 files are imports to confirm: 2-table.csv, table.csv." in shown(as_alice, UPLOAD)


def test_of_several_files_those_in_a_format_of_ours_are_read_at_once(as_alice: Client) -> None:
    send(as_alice, TABLE, jsonl(question("Why?")), name="some", together="each")
    assert list(FileImport.objects.values_list("name", flat=True)) == ["some"]
    assert list(Version.objects.values_list("file_name", flat=True)) == ["2-some"]


def test_an_upload_may_be_called_a_table_by_hand(as_alice: Client) -> None:
    send(as_alice, jsonl({**question("Why?"), "extra": "x"}), name="a.jsonl")
    version = Version.objects.get()
    begin = f"/p/physics/datasets/{version.dataset_id}/v1/import/"
    assert "Messages" in shown(as_alice, as_alice.post(begin, {"source": "table"}).headers["Location"])


def test_a_page_about_many_columns_and_rows_asks_the_database_no_more(
    as_alice: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    header = ",".join(["question", *(f"c{n}" for n in range(300))])
    rows = "\n".join(",".join([f"q{n}", *["x"] * 300]) for n in range(50))
    address = send(as_alice, f"{header}\n{rows}\n".encode())
    shown(as_alice, address)
    with django_assert_max_num_queries(12):
        assert "201 other columns" in shown(as_alice, address)


BOOK = xlsx([["Notes"]], [["question", "answer"], ["q1", "x"], ["q2", "y"]], [])


def test_every_sheet_is_shown_with_its_size_and_first_rows(as_alice: Client) -> None:
    page = shown(as_alice, send(as_alice, BOOK, name="book.xlsx"))
    assert 'value="Sheet2" checked' in page
    assert all(text in page for text in ("3 rows × 2 columns", "q1 · x", "1 row × 1 column", "empty"))


def test_another_sheet_can_be_chosen_after_one_that_cannot_be_read(as_alice: Client) -> None:
    address = send(as_alice, BOOK, name="book.xlsx")
    part = as_alice.post(address, {"sheet": "Sheet3"}).content.decode()
    assert "has no rows" in part
    assert 'value="Sheet3" checked' in part
    assert "<strong>answer</strong> x" in as_alice.post(address, {"sheet": "Sheet2"}).content.decode()


def test_a_workbook_of_one_sheet_offers_no_choice(as_alice: Client) -> None:
    page = shown(as_alice, send(as_alice, xlsx([["question", "answer"], ["q1", "x"]]), name="book.xlsx"))
    assert 'name="sheet"' not in page


BIG5 = "question,answer\n首都在哪裡,臺北\n".encode("big5")


def test_an_encoding_that_was_guessed_can_be_chosen(as_alice: Client) -> None:
    address = send(as_alice, BIG5)
    assert "which is not certain" in shown(as_alice, address)
    page = as_alice.post(address, chosen("question", "answer", encoding="big5hkscs")).content.decode()
    assert "臺北" in page
    assert "which is not certain" not in page


def test_the_encoding_of_a_native_file_can_be_chosen_where_its_finding_says(as_alice: Client) -> None:
    address = send(as_alice, BIG5.replace(b"question,answer", b"prompt,response"))
    version = Version.objects.get()
    import_version(version.pk)
    page = shown(as_alice, address)
    assert "“Is the format wrong?” → “Import as a table”" in page
    assert f'action="{address}import/"' in page
    begun = as_alice.post(f"{address}import/", {"source": "table"}).headers["Location"]
    assert '<select class="input" name="encoding"' in shown(as_alice, begun)
    assert "臺北" in as_alice.post(begun, {"encoding": "big5hkscs"}).content.decode()


def test_several_lists_of_records_are_read_and_told(as_alice: Client) -> None:
    splits = {name: [{"question": name, "answer": "a"}] for name in ("train", "test")}
    address = send(as_alice, json.dumps(splits).encode(), name="splits.json")
    assert "Several lists of records" in shown(as_alice, address)
    version = done(as_alice, address)
    assert (version.rows, version.fields_found["split"]) == (2, 2)


def test_lists_of_records_that_differ_are_named(as_alice: Client) -> None:
    lists = {"pairs": [{"question": "q", "answer": "a"}], "documents": [{"text": "t"}]}
    page = shown(as_alice, send(as_alice, json.dumps(lists).encode(), name="lists.json"))
    assert "holds several lists of records that differ: pairs, documents" in page


def test_an_encoding_that_is_certain_is_folded_away(as_alice: Client) -> None:
    page = shown(as_alice, send(as_alice, TABLE))
    assert '<summary id="encoding-title">Encoding: UTF-8</summary>' in page


def test_a_chosen_encoding_is_that_of_the_import(as_alice: Client) -> None:
    address = send(as_alice, BIG5)
    as_alice.post(address, {"encoding": "big5hkscs"})
    version = done(as_alice, address, encoding="big5hkscs")
    assert "首都在哪裡" in version.data_rows.get().raw


def test_an_unknown_encoding_is_not_stored(as_alice: Client) -> None:
    as_alice.post(send(as_alice, BIG5), {"encoding": "nonsense"})
    assert FileImport.objects.get().encoding == ""


def test_what_was_decoded_by_a_guess_is_a_warning_on_the_version(as_alice: Client) -> None:
    version = done(as_alice, send(as_alice, BIG5))
    page = shown(as_alice, f"/p/physics/datasets/{version.dataset_id}/v{version.number}/")
    assert "Imported with a warning" in page
