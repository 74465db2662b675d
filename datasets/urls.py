"""URLs of data sets, below /p/<project>/datasets/."""

from __future__ import annotations

from django.urls import path

from datasets.views import attach, compare, dataset_list, file_import, repair, row_edit, rows, upload, version

app_name = "datasets"
_VERSION = "<int:dataset>/v<int:number>/"

urlpatterns = [
    path("", dataset_list.datasets, name="list"),
    path("upload/", upload.upload, name="upload"),
    path("formats/", upload.formats, name="formats"),
    path("import/<int:draft>/", file_import.draft, name="import"),
    path("samples/<str:name>", upload.sample, name="sample"),
    path("<int:dataset>/", dataset_list.dataset, name="dataset"),
    path("<int:dataset>/archive/", dataset_list.archive, name="archive"),
    path("<int:dataset>/restore/", dataset_list.restore, name="restore"),
    path(_VERSION, version.version, name="version"),
    path(_VERSION + "cancel/", version.cancel, name="cancel"),
    path(_VERSION + "again/", version.again, name="again"),
    path(_VERSION + "read-as/", version.read_as, name="read_as"),
    path(_VERSION + "leave-out/", version.leave_out, name="leave_out"),
    path(_VERSION + "import/", file_import.begin, name="import_begin"),
    path(_VERSION + "original/", version.original, name="original"),
    path(_VERSION + "original/<int:part>/", version.part, name="part"),
    path(_VERSION + "repair/", repair.repair, name="repair"),
    path(_VERSION + "bad-rows/", repair.bad, name="bad_rows"),
    path(_VERSION + "download/rows.jsonl", repair.jsonl, name="rows_jsonl"),
    path(_VERSION + "download/rows.csv", repair.csv, name="rows_csv"),
    path(_VERSION + "download/table.csv", repair.table, {"form": "csv"}, name="table_csv"),
    path(_VERSION + "download/table.xlsx", repair.table, {"form": "xlsx"}, name="table_xlsx"),
    path(_VERSION + "download/table.parquet", repair.table, {"form": "parquet"}, name="table_parquet"),
    path(_VERSION + "changes/", compare.choose, name="changes"),
    path(_VERSION + "changes/v<int:old>/", compare.changes, name="changes_since"),
    path(_VERSION + "findings/<str:code>/", version.findings, name="findings"),
    path(_VERSION + "attach/", attach.answers, name="attach"),
    path(_VERSION + "attach/<int:attachment>/", attach.attachment, name="attachment"),
    path(_VERSION + "attach/<int:attachment>/use/", attach.use, name="attachment_use"),
    path(_VERSION + "attach/<int:attachment>/name/", attach.name, name="attachment_name"),
    path(_VERSION + "attach/<int:attachment>/discard/", attach.discard, name="attachment_discard"),
    path(_VERSION + "attach/<int:attachment>/unmatched/", attach.unmatched, name="attachment_unmatched"),
    path(_VERSION + "rows/", rows.rows, name="rows"),
    path(_VERSION + "rows/random/", rows.random, name="random_row"),
    path(_VERSION + "rows/<int:line>/", rows.row, name="row"),
    path(_VERSION + "rows/<int:line>/edit/", row_edit.edit, name="edit_row"),
    path(_VERSION + "rows/<int:line>/edit/decide/", row_edit.decide, name="edit_decide"),
    path(_VERSION + "edits/", row_edit.edits, name="edits"),
    path(_VERSION + "edits/make/", row_edit.make, name="edits_make"),
    path(_VERSION + "rows/<int:line>/raw/", rows.raw, name="raw_row"),
    path(_VERSION + "rows/<int:line>/original/", rows.original, name="original_row"),
]
