"""Importing other tools' files: preview, column mapping, confirmation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from datasets.access import get_file_import, get_version
from datasets.core.imports.columns import Columns
from datasets.core.imports.key_use import UNREAD
from datasets.core.imports.model import ImportedRow, LeftOut, NotUsable, Place
from datasets.core.imports.reasons import WITH_WARNING
from datasets.core.imports.table import mapping_of
from datasets.core.imports.tables import SourceTable
from datasets.core.imports.xlsx import SheetPreview
from datasets.messages import becomes_label, left_out_reason, not_usable, not_usable_sentence, source_name
from datasets.models import FileImport, Version
from datasets.versions import file_import
from datasets.views import column_choices, encoding_choice
from evalsite import access
from evalsite.access import May
from evalsite.templatetags.show import number
from evalsite.truncation import truncate
from evalsite.web.headers import part_wanted

ROWS, PLACES, KEYS, CELLS = 5, 3, 100, 8
EXCERPT = 400
LeftOutLine = tuple[str, str, int, list[tuple[str, str]]]
"""(code, reason, number, some places with detail)."""
NOT_FIELDS = ("messages", "model_outputs", "ref_answer")


@dataclass(frozen=True, slots=True)
class RowPreview:
    """A row in the preview: its source, texts, answers as (model, text, scores) and fields."""

    place: Place
    question: str
    before: int
    reference: str
    answers: list[tuple[str, str, list[tuple[str, str]]]]
    fields: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SheetChoice:
    """A sheet of a workbook: its size ('' if it was not previewed) and its first rows as lines."""

    name: str
    size: str
    lines: list[str]


@login_required
@require_POST
def begin(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Import the file of an upload; one that no source recognises is read as a table if requested."""
    version = get_version(request, slug, dataset, number, May.UPLOAD)
    source = request.POST.get("source", "")[:40]
    draft = file_import.draft_of_version(version, access.signed_in(request), source)
    if draft is None:
        messages.error(
            request, _("This file is not a table with several columns, nor a file of a known tool.")
        )
        return redirect("datasets:version", slug, dataset, number)
    return redirect(address(draft))


def address(draft: FileImport) -> str:
    return reverse("datasets:import", args=[draft.project.slug, draft.pk])


@login_required
def draft(request: HttpRequest, slug: str, draft: int) -> HttpResponse:
    """Preview of the import; changes of the column mapping are stored and shown immediately."""
    import_draft = get_file_import(request, slug, draft)
    if import_draft.new_version is not None:
        return redirect(
            "datasets:version", slug, import_draft.new_version.dataset_id, import_draft.new_version.number
        )
    action = request.POST.get("do", "preview") if request.method == "POST" else ""
    if action == "discard":
        return _discard(request, import_draft)
    table = problem = None
    preview, chosen = file_import.Preview(), encoding_choice.Choice()
    sent = {} if encoding_choice.store(import_draft, request.POST) else request.POST.dict()
    try:
        chosen = encoding_choice.of_draft(import_draft)
        table = _table(sent, import_draft) if import_draft.source == file_import.TABLE else None
        preview = file_import.preview(import_draft)
    except NotUsable as error:
        problem = not_usable(error)
    if action == "import" and problem is None and preview.rows:
        return _commit(request, import_draft, table)
    context = {**_context(import_draft, table, preview, problem), "encoding": chosen}
    template = "datasets/_import.html" if part_wanted(request) else "datasets/import.html"
    return render(request, template, context, status=422 if action == "import" else 200)


def _table(sent: dict[str, str], draft: FileImport) -> SourceTable:
    """The table, after storing submitted choices in the draft; raises NotUsable."""
    # The chosen sheet is shown even if it cannot be read, else the guess.
    if "sheet" in sent and sent["sheet"] != (draft.sheet or file_import.sample_of(draft).sheet):
        file_import.draft_change(draft, columns="", sheet=sent["sheet"])
        sent = {}  # another sheet has other columns
    table = file_import.sample_of(draft)
    if "becomes-0" in sent:
        before = mapping_of(table, file_import.options_of(draft))
        chosen = column_choices.from_form(sent, table, before)
        file_import.draft_change(draft, columns=str(chosen) or "field=", sheet=table.sheet)
    if not draft.columns:
        draft.columns = file_import.saved_columns(draft, table.columns)
    return table


def _commit(request: HttpRequest, draft: FileImport, table: SourceTable | None) -> HttpResponse:
    if table is not None:
        columns = str(mapping_of(table, file_import.options_of(draft)))
        file_import.draft_change(draft, columns=columns, sheet=draft.sheet or table.sheet)
        file_import.columns_save(draft, table.columns)
    new_version = file_import.import_commit(draft=draft, user=access.signed_in(request))
    return redirect("datasets:version", draft.project.slug, new_version.dataset_id, new_version.number)


def _discard(request: HttpRequest, draft: FileImport) -> HttpResponse:
    version = draft.version
    if file_import.import_discard(draft):
        messages.info(request, _("Import discarded."))
    if version is not None:
        return redirect("datasets:version", draft.project.slug, version.dataset_id, version.number)
    return redirect("datasets:upload", draft.project.slug)


def _context(
    draft: FileImport, table: SourceTable | None, preview: file_import.Preview, problem: str | None
) -> dict[str, Any]:
    imported, columns = preview.imported, _mapping(table, draft)
    rows = [_preview(number, row, preview.verdicts) for number, row in _first_rows(preview.rows)]
    choices = column_choices.choices(table, columns) if table else []
    return {
        "draft": draft,
        "source": source_name(draft.source),
        "size": sum(entry["size"] for entry in draft.files),
        "table": table,
        "sheets": _sheets(draft, table) if draft.source == file_import.TABLE else [],
        "chosen_sheet": table.sheet if table else draft.sheet,
        "choices": choices,
        "in_json": [choice.column for choice in choices if choice.in_json],
        "roles": column_choices.roles(),
        "models": [model for model, _column in columns.answers],
        "with_model": bool(columns.model),
        "hidden_columns": max(0, len(table.columns) - column_choices.SHOWN) if table else 0,
        "problem": problem,
        "notes": [(becomes_label(note.becomes), note.origin) for note in imported.notes],
        "rows": rows,
        "without_answers": bool(table and rows) and not any(row.answers for row in rows),
        "end_in_answers": any(row.data["messages"][-1]["role"] == "assistant" for row in preview.rows),
        "reply_label": becomes_label("reply"),
        "of_files": len({row.place.file for row in preview.rows}) > 1,
        "looked_at": len(preview.rows),
        "whole": preview.whole,
        "verdicts": len(preview.verdicts),
        **left_out(imported.left_out, imported.left_out_counts),
    }


def _sheets(draft: FileImport, table: SourceTable | None) -> list[SheetChoice]:
    """All sheets, so that a readable one can be chosen; [] if there is only one."""
    looks = {look.name: look for look in file_import.sheets_of(draft)}
    names = table.sheets if table else list(looks)
    return [_sheet(name, looks.get(name)) for name in names] if len(names) > 1 else []


def _sheet(name: str, look: SheetPreview | None) -> SheetChoice:
    if look is None:
        return SheetChoice(name, "", [])
    if not look.rows:
        return SheetChoice(name, _("empty"), [])
    rows = ngettext("%(n)s row", "%(n)s rows", look.rows)
    if look.more:
        rows = ngettext("more than %(n)s row", "more than %(n)s rows", look.rows)
    columns = ngettext("%(n)s column", "%(n)s columns", look.columns)
    size = " × ".join([rows % {"n": number(look.rows)}, columns % {"n": number(look.columns)}])
    return SheetChoice(name, size, [_line(cells) for cells in look.first])


def _line(cells: list[Any]) -> str:
    """The first non-empty cells of a sheet's row."""
    held = [cell for cell in cells if cell not in (None, "")][:CELLS]
    return " · ".join(column_choices.excerpt(cell) for cell in held)


def _first_rows(rows: list[ImportedRow]) -> list[tuple[int, ImportedRow]]:
    """The first rows with their numbers, some from each file."""
    files = Counter[str]()
    most = max(1, ROWS // len({row.place.file for row in rows})) if rows else 0
    first_rows = []
    for at, row in enumerate(rows, 1):
        files[row.place.file] += 1
        if files[row.place.file] <= most:
            first_rows.append((at, row))
    return first_rows[:ROWS]


def of_version(version: Version) -> dict[str, Any]:
    """The import shown on a version's page: one waiting for confirmation, or the one that created the version."""
    file_import_row = FileImport.objects.filter(
        Q(new_version=version) | Q(version=version, new_version=None)
    ).first()
    if file_import_row is None:
        return {}
    listed = [
        LeftOut(Place(file, line, sheet), code, detail)
        for file, line, sheet, code, detail in file_import_row.left_out
    ]
    pages = list(file_import.verdict_pages) if file_import_row.verdicts else []
    return {
        "import_draft": file_import_row if file_import_row.new_version_id is None else None,
        "imported": file_import_row if file_import_row.new_version_id is not None else None,
        "source": source_name(file_import_row.source),
        **left_out(listed, file_import_row.left_out_counts),
        "problem": not_usable_sentence(**file_import_row.problem) if file_import_row.problem else "",
        "verdicts_page": next((page(version) for page in pages), ""),
    }


def _mapping(table: SourceTable | None, draft: FileImport) -> Columns:
    try:
        return mapping_of(table, file_import.options_of(draft)) if table else Columns()
    except NotUsable:
        return Columns()


def left_out(listed: list[LeftOut], counts: dict[str, int]) -> dict[str, list[LeftOutLine]]:
    """What was left out, and what was imported with a warning, most frequent first."""
    lines: dict[str, list[LeftOutLine]] = {"left_out": [], "warned": []}
    for code, count in Counter(counts).most_common():
        most = KEYS if code == UNREAD else PLACES
        places = [(place_label(entry.place), entry.detail) for entry in listed if entry.code == code][:most]
        kind = "warned" if code in WITH_WARNING else "left_out"
        lines[kind].append((code, left_out_reason(code), count, places))
    return lines


def place_label(place: Place) -> str:
    """The label of a source location."""
    where = " · ".join(part for part in (place.file, place.sheet) if part)
    return _("%(where)s, row %(line)s") % {"where": where, "line": place.line} if place.line else where


def _preview(number: int, row: ImportedRow, verdicts: list[dict[str, Any]]) -> RowPreview:
    data = row.data
    messages = [message for message in data["messages"] if isinstance(message, dict)]
    questions = [message for message in messages if message.get("role") == "user"]
    of_row = [verdict for verdict in verdicts if verdict.get("line") == number]
    return RowPreview(
        place=row.place,
        question=_excerpt(questions[-1].get("content")) if questions else "",
        before=len(messages) - bool(questions),
        reference=_excerpt(data.get("ref_answer")),
        answers=[
            (output["model_name"], _excerpt(answer.get("content")), _scores(of_row, output["model_name"], n))
            for output in data.get("model_outputs", ())
            for n, answer in enumerate(output["responses"], 1)
        ],
        fields=[(name, _excerpt(value)) for name, value in data.items() if name not in NOT_FIELDS],
    )


def _scores(verdicts: list[dict[str, Any]], model: str, response: int) -> list[tuple[str, str]]:
    own = (
        verdict
        for verdict in verdicts
        if (verdict.get("model"), verdict.get("response", 1)) == (model, response)
    )
    return [(str(verdict.get("metric", "score")), _score(verdict)) for verdict in own]


def _score(verdict: dict[str, Any]) -> str:
    """A value; for a comparison, also the name of B (A is the model of the verdict)."""
    value, other = _value(verdict.get("value")), verdict.get("other_model")
    return f"{value} (B: {other})" if other else value


def _value(value: Any) -> str:
    counts = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if counts else truncate(column_choices.as_text(value), EXCERPT)


def _excerpt(value: Any) -> str:
    return "" if value is None else truncate(column_choices.as_text(value), EXCERPT)
