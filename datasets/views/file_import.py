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

from datasets import import_messages
from datasets.access import get_file_import, get_version
from datasets.core.imports.columns import Columns
from datasets.core.imports.model import ImportedRow, LeftOut, NotUsable, Place
from datasets.core.imports.table import mapping_of
from datasets.core.imports.tables import SourceTable
from datasets.core.imports.xlsx import SheetPreview
from datasets.models import FileImport, Version
from datasets.versions import file_import
from datasets.views import column_choices
from evalsite import access
from evalsite.access import May
from evalsite.templatetags.show import number
from evalsite.web.headers import part_wanted

ROWS, PLACES, CELLS = 5, 3, 8
EXCERPT = 400
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
    found = get_file_import(request, slug, draft)
    if found.made is not None:
        return redirect("datasets:version", slug, found.made.dataset_id, found.made.number)
    action = request.POST.get("do", "preview") if request.method == "POST" else ""
    if action == "discard":
        return _discard(request, found)
    table = problem = None
    preview = file_import.Preview()
    try:
        table = _table(request, found) if found.source == file_import.TABLE else None
        preview = file_import.preview(found)
    except NotUsable as error:
        problem = import_messages.not_usable(error)
    if action == "import" and problem is None and preview.rows:
        return _commit(request, found, table)
    context = _context(found, table, preview, problem)
    template = "datasets/_import.html" if part_wanted(request) else "datasets/import.html"
    return render(request, template, context, status=422 if action == "import" else 200)


def _table(request: HttpRequest, draft: FileImport) -> SourceTable:
    """The table, after storing submitted choices in the draft; raises NotUsable."""
    sent = request.POST.dict()
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
    made = file_import.import_commit(draft=draft, user=access.signed_in(request))
    return redirect("datasets:version", draft.project.slug, made.dataset_id, made.number)


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
    return {
        "draft": draft,
        "source": import_messages.source_name(draft.source),
        "size": sum(one["size"] for one in draft.files),
        "table": table,
        "sheets": _sheets(draft, table) if draft.source == file_import.TABLE else [],
        "chosen_sheet": table.sheet if table else draft.sheet,
        "choices": column_choices.choices(table, columns) if table else [],
        "roles": column_choices.roles(),
        "models": [model for model, _column in columns.answers],
        "with_model": bool(columns.model),
        "hidden_columns": max(0, len(table.columns) - column_choices.SHOWN) if table else 0,
        "problem": problem,
        "notes": [(import_messages.becomes_label(one.becomes), one.origin) for one in imported.notes],
        "rows": rows,
        "without_answers": bool(table and rows) and not any(row.answers for row in rows),
        "of_files": len({row.place.file for row in preview.rows}) > 1,
        "looked_at": len(preview.rows),
        "whole": preview.whole,
        "verdicts": len(preview.verdicts),
        "left_out": left_out(imported.left_out, imported.left_out_counts),
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
    found = []
    for at, row in enumerate(rows, 1):
        files[row.place.file] += 1
        if files[row.place.file] <= most:
            found.append((at, row))
    return found[:ROWS]


def of_version(version: Version) -> dict[str, Any]:
    """The import shown on a version's page: one waiting for confirmation, or the one that created the version."""
    found = FileImport.objects.filter(Q(made=version) | Q(version=version, made=None)).first()
    if found is None:
        return {}
    listed = [
        LeftOut(Place(file, line, sheet), code, detail) for file, line, sheet, code, detail in found.left_out
    ]
    pages = file_import.verdict_pages if found.verdicts else []
    return {
        "import_draft": found if found.made_id is None else None,
        "imported": found if found.made_id is not None else None,
        "source": import_messages.source_name(found.source),
        "left_out": left_out(listed, found.left_out_counts),
        "problem": import_messages.not_usable_sentence(**found.problem) if found.problem else "",
        "verdicts_page": next((page(version) for page in pages), ""),
    }


def _mapping(table: SourceTable | None, draft: FileImport) -> Columns:
    try:
        return mapping_of(table, file_import.options_of(draft)) if table else Columns()
    except NotUsable:
        return Columns()


def left_out(
    listed: list[LeftOut], counts: dict[str, int]
) -> list[tuple[str, str, int, list[tuple[str, str]]]]:
    """(code, reason, number, some places with detail) of what was left out, most frequent first."""
    found = []
    for code, count in Counter(counts).most_common():
        places = [(place_label(one.place), one.detail) for one in listed if one.code == code][:PLACES]
        found.append((code, import_messages.left_out_reason(code), count, places))
    return found


def place_label(place: Place) -> str:
    """The label of a source location."""
    where = " · ".join(part for part in (place.file, place.sheet) if part)
    return _("%(where)s, row %(line)s") % {"where": where, "line": place.line} if place.line else where


def _preview(number: int, row: ImportedRow, verdicts: list[dict[str, Any]]) -> RowPreview:
    data = row.data
    asked = [one for one in data["messages"] if isinstance(one, dict)]
    questions = [one for one in asked if one.get("role") == "user"]
    of_row = [one for one in verdicts if one.get("line") == number]
    return RowPreview(
        place=row.place,
        question=_excerpt(questions[-1].get("content")) if questions else "",
        before=len(asked) - bool(questions),
        reference=_excerpt(data.get("ref_answer")),
        answers=[
            (output["model_name"], _excerpt(answer.get("content")), _scores(of_row, output["model_name"], n))
            for output in data.get("model_outputs", ())
            for n, answer in enumerate(output["responses"], 1)
        ],
        fields=[(name, _excerpt(value)) for name, value in data.items() if name not in NOT_FIELDS],
    )


def _scores(verdicts: list[dict[str, Any]], model: str, response: int) -> list[tuple[str, str]]:
    own = (one for one in verdicts if (one.get("model"), one.get("response", 1)) == (model, response))
    return [(str(one.get("metric", "score")), _score(one)) for one in own]


def _score(verdict: dict[str, Any]) -> str:
    """A value; for a comparison, also the name of B (A is the model of the verdict)."""
    value, other = _value(verdict.get("value")), verdict.get("other_model")
    return f"{value} (B: {other})" if other else value


def _value(value: Any) -> str:
    counts = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if counts else column_choices.as_text(value)[:EXCERPT]


def _excerpt(value: Any) -> str:
    return "" if value is None else column_choices.as_text(value)[:EXCERPT]
