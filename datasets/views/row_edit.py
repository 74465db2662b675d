"""Editing one row, as a form or as text, with its findings; and the list of edits for the next version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from datasets.access import get_ready_version
from datasets.core.formats import ROLES
from datasets.models import Row, RowEdit, Version
from datasets.selectors import line_after
from datasets.versions import invalid_rows, row_edits
from datasets.versions.row_edits import EditConflict, FileRow
from datasets.versions.row_fields import RowField, fields_of, with_fields
from datasets.views import number_asked
from datasets.views.findings_view import finding_view
from evalsite import access
from evalsite.access import May
from evalsite.names import join_sentences
from evalsite.text_diff import Passage, excerpts, pieces
from evalsite.truncation import truncate
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole

EDITS_PER_PAGE = 20
EARLIER_SHOWN = 20
LONGEST_FORM = 100_000  # characters of a row shown as a form, which sends the original row and its fields
LONGEST_PIECE = 20_000
AROUND = 120
FINDINGS_SHOWN = 100


@dataclass(frozen=True, slots=True)
class FieldView:
    """A field with its form name, height in lines, and the choices for a role."""

    name: str
    field: RowField
    rows: int
    choices: list[str]


@dataclass(frozen=True, slots=True)
class EditView:
    """An edit in the list: its difference, and the number of errors its row would have."""

    edit: RowEdit
    difference: list[Passage]
    errors: int


@login_required
def edit(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> HttpResponse:
    """Edit one row. A POST checks the input, switches between form and text, or saves it."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    if not row_edits.can_edit(version):
        raise Http404
    try:
        row = row_edits.file_row(version, line)
    except Row.DoesNotExist:
        raise Http404 from None
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
        return redirect("datasets:row", slug, dataset, number, line)
    if request.method != "POST":
        return _opened(request, row)
    text, show = _typed(request.POST, row), request.POST.get("show", "")
    if part_wanted(request):
        return render(request, "datasets/_edit_check.html", {"version": version, **_check_context(row, text)})
    if show:
        as_form = show == "form" or (show == "check" and "base" in request.POST)
        return _page(request, row, text, state=request.POST.get("state", ""), as_form=as_form)
    return _delete(request, row) if "delete" in request.POST else _save(request, row, text)


def _opened(request: HttpRequest, row: FileRow) -> HttpResponse:
    """Show the row with its last open edit, or the edit in the query, else as in the file."""
    last = row_edits.last_edit(row.version, row.line)
    number = number_asked(request, "edit")
    if number:
        shown = RowEdit.objects.filter(version=row.version, line=row.line, number=number).first()
    else:
        shown = last if last and last.is_open else None
    text = (shown.text if shown else "") or row.text
    if row.line == row_edits.NEW:
        text = row_edits.blank_row(row)
    return _page(
        request, row, text, state=last.state if last else "", as_form=request.GET.get("as") != "text"
    )


def _typed(posted: QueryDict, row: FileRow) -> str:
    """The submitted row: its text, or the original text with the submitted fields."""
    if "base" not in posted:
        return posted.get("text", row.text)
    try:
        base = json.loads(str(posted["base"]))
    except ValueError:
        raise Http404 from None
    fields = fields_of(base, row.table) or [] if isinstance(base, str) else []
    values = {field.path: posted.get(f"field-{n}", field.value) for n, field in enumerate(fields)}
    return with_fields(base, values, row.table) if fields else row.text


def _delete(request: HttpRequest, row: FileRow) -> HttpResponse:
    if row.line == row_edits.NEW:
        raise Http404
    version, state = row.version, request.POST.get("state", "")
    try:
        row_edits.row_delete(row=row, state=state, user=access.signed_in(request))
    except EditConflict:
        messages.error(request, _nothing_changed(row.line))
    else:
        text = _("Line %(line)s will be excluded from the next version. You can undo that here.")
        text = text if row.lines else _("The new row was discarded. You can restore it below.")
        messages.success(request, text % {"line": row.line})
    return redirect("datasets:edits", version.dataset.project.slug, version.dataset_id, version.number)


def _nothing_changed(line: int) -> str:
    return _("Someone else edited line %(line)s in the meantime. Nothing was changed.") % {"line": line}


def _save(request: HttpRequest, row: FileRow, text: str) -> HttpResponse:
    version, state = row.version, request.POST.get("state", "")
    as_form = "base" in request.POST
    try:
        saved = row_edits.row_edit_save(row=row, text=text, state=state, user=access.signed_in(request))
    except EditConflict:
        last = row_edits.last_edit(version, row.line)
        state = last.state if last else ""
        return _page(request, row, text, state=state, as_form=as_form, conflict=last, status=409)
    except ValidationError as error:
        problem = join_sentences(error.messages)
        return _page(request, row, text, state=state, as_form=as_form, problem=problem, status=422)
    if row.line == row_edits.NEW:
        messages.success(request, _("The new row was saved to the draft."))
    elif saved is None or saved.discarded:
        messages.info(request, _("Line %(line)s is unchanged from the file.") % {"line": row.line})
    else:
        messages.success(request, _("The edit of line %(line)s was saved to the draft.") % {"line": row.line})
    following = line_after(version, row.line, valid=False) if "next" in request.POST else None
    slug = version.dataset.project.slug
    line = saved.line if saved else row.line
    return redirect("datasets:edit_row", slug, version.dataset_id, version.number, following or line)


def _page(
    request: HttpRequest,
    row: FileRow,
    text: str,
    *,
    state: str,
    as_form: bool,
    conflict: RowEdit | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    version = row.version
    fields = fields_of(text, row.table) if len(text) <= LONGEST_FORM else None
    context = {
        "version": version,
        "row": row,
        "text": text,
        "state": state,
        "fields": [_field_view(number, field) for number, field in enumerate(fields or [])]
        if as_form
        else [],
        "base": json.dumps(text, ensure_ascii=False),
        "conflict": conflict,
        "against": _difference(conflict.text, text) if conflict else [],
        "problem": problem,
        "earlier": _earlier(row),
        "deleted": _is_deleted(row),
        "edits_open": row_edits.open_edits(version).count(),
        "next_bad": line_after(version, row.line, valid=False),
        **_check_context(row, text),
    }
    return render(request, "datasets/edit.html", context, status=status)


def _field_view(number: int, field: RowField) -> FieldView:
    rows = min(14, 1 + field.value.count("\n") + len(field.value) // 80)
    is_role = field.path.endswith(".role") and field.kind == "text"
    choices = list(dict.fromkeys([*ROLES, field.value])) if is_role else []
    return FieldView(f"field-{number}", field, rows, choices)


def _check_context(row: FileRow, text: str) -> dict[str, Any]:
    """The findings of the text, and its difference from the file."""
    findings = row.findings(text)
    return {
        "findings": [finding_view(text, finding) for finding in findings[:FINDINGS_SHOWN]],
        "findings_count": len(findings),
        "difference": _difference(row.text, text),
    }


def _difference(before: str, after: str) -> list[Passage]:
    if before == after:
        return []
    return [
        Passage(piece.kind, truncate(piece.text, LONGEST_PIECE))
        for piece in excerpts(pieces(before, after), AROUND)
    ]


def _earlier(row: FileRow) -> list[RowEdit]:
    edits = RowEdit.objects.filter(version=row.version, line=row.line).select_related("author", "new_version")
    return list(edits.defer("before", "text").order_by("-number")[:EARLIER_SHOWN])


def _is_deleted(row: FileRow) -> bool:
    last = row_edits.last_edit(row.version, row.line)
    return last is not None and last.is_open and not last.text


@login_required
def edits(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """The edits for the next version in pages, with their differences."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    collected = row_edits.open_edits(version)
    edits_after = list(collected.filter(line__gt=number_asked(request, "after") or 0)[: EDITS_PER_PAGE + 1])
    more = len(edits_after) > EDITS_PER_PAGE
    table = invalid_rows.csv_table(version) if edits_after else None
    context = {
        "version": version,
        "edits": [_in_list(version, edit, table) for edit in edits_after[:EDITS_PER_PAGE]],
        "count": collected.count(),
        "further": edits_after[EDITS_PER_PAGE - 1].line if more else None,
        "discarded": list(row_edits.discarded_edits(version).defer("before", "text")[:EARLIER_SHOWN]),
        "newest": row_edits.newest(version),
        "can_edit": row_edits.can_edit(version),
    }
    return render(request, "datasets/edits.html", context)


def _in_list(version: Version, edit: RowEdit, table: Any) -> EditView:
    row = FileRow(version, edit.line, edit.lines, edit.before, table)
    errors = sum(finding.severity == "error" for finding in row.findings(edit.text)) if edit.text else 0
    return EditView(edit, _difference(edit.before, edit.text), errors)


@login_required
@require_POST
def decide(request: HttpRequest, slug: str, dataset: int, number: int, line: int) -> HttpResponse:
    """Discard or restore an edit."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    discarded = "restore" not in request.POST
    try:
        row_edits.row_edit_decide(
            version=version,
            line=line,
            state=request.POST.get("state", ""),
            discarded=discarded,
            user=access.signed_in(request),
        )
    except EditConflict:
        messages.error(request, _nothing_changed(line))
    else:
        text = _("The edit of line %(line)s was restored.")
        if discarded:
            text = _("The edit of line %(line)s was discarded. You can restore it below.")
        messages.success(request, text % {"line": line})
    return redirect("datasets:edits", slug, dataset, number)


@login_required
@require_POST
def make(request: HttpRequest, slug: str, dataset: int, number: int) -> HttpResponse:
    """Create a version with the edits."""
    version = get_ready_version(request, slug, dataset, number, May.UPLOAD)
    seen = whole(request.POST.get("seen", "")) or 0
    if seen != row_edits.newest(version):
        messages.warning(
            request,
            _("The draft changed since you opened this page. Check the edits, then create the version."),
        )
        return redirect("datasets:edits", slug, dataset, number)
    new_version = row_edits.version_edit(version=version, user=access.signed_in(request), until=seen)
    if new_version is None:
        messages.error(request, _("This version has no edits to create a new one from."))
        return redirect("datasets:edits", slug, dataset, number)
    text = _("The edited rows become version %(number)s. Version %(parent)s stays as it is.")
    messages.info(request, text % {"number": new_version.number, "parent": number})
    return redirect("datasets:version", slug, dataset, new_version.number)
