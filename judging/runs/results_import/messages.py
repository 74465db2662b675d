"""Localized messages for problems of results files and their lines."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.tasks.workers import AWAY, GONE, UNEXPECTED
from judging.core.results_file.records import RefusedLine
from judging.runs.results_import.services import NAME_TAKEN

KINDS: dict[str, str | Promise] = {
    "number": gettext_lazy("number"),
    "bool": gettext_lazy("true or false"),
    "category": gettext_lazy("category"),
    "comparison": gettext_lazy("comparison"),
    "": gettext_lazy("no value"),
}

LINES: dict[str, str | Promise] = {
    "not_json": gettext_lazy("Not valid JSON."),
    "not_utf8": gettext_lazy("Not valid UTF-8."),
    "not_object": gettext_lazy("Not a JSON object."),
    "not_csv": gettext_lazy("A quotation mark is not closed. The rest of the file was not read."),
    "too_many_cells": gettext_lazy("More cells than the header has columns."),
    "line_too_long": gettext_lazy("Longer than 16 MB."),
    "no_row_named": gettext_lazy("Names no row: add line or id."),
    "no_model_named": gettext_lazy("Names no model: add model."),
    "no_source": gettext_lazy("Says neither judge nor rater. Exactly one is required."),
    "two_sources": gettext_lazy("Says both judge and rater. Exactly one is required."),
    "no_value": gettext_lazy(
        "No value. Where there is none, set state to no_score, unparsed, error or not_run."
    ),
    "unknown_line": gettext_lazy("The data set has no row at line %(line)s."),
    "invalid_row": gettext_lazy("The row at line %(line)s is invalid and was excluded."),
    "unknown_id": gettext_lazy("The data set has no row with the id %(id)s."),
    "id_not_unique": gettext_lazy("Several rows have the id %(id)s. Use line instead."),
    "two_rows": gettext_lazy("Line %(line)s and the id %(id)s are different rows."),
    "unknown_model": gettext_lazy("The data set has no model called %(model)s."),
    "model_not_unique": gettext_lazy("Several runs generated answers of a model called %(model)s."),
    "no_such_answer": gettext_lazy("%(model)s has no answer %(number)s to this row."),
    "no_reference": gettext_lazy("This row has no reference."),
    "same_answer": gettext_lazy("Compares an answer with itself."),
    "not_a_comparison": gettext_lazy(
        "%(value)s is not a comparison. Use A>>B, A>B, A=B, B>A, B>>A or both_bad."
    ),
    "compares": gettext_lazy("Compares two answers, but the other lines of %(metric)s judge one."),
    "compares_not": gettext_lazy("Judges one answer, but the other lines of %(metric)s compare two."),
    "other_kind_of_value": gettext_lazy(
        "%(value)s does not fit: the other values of %(metric)s are of the type %(wanted)s."
    ),
    "value_not_finite": gettext_lazy("The value is not a finite number."),
    "value_type": gettext_lazy("The value must be a number, true, false or a text."),
    "unknown_state": gettext_lazy("There is no state %(state)s."),
    "value_beside_state": gettext_lazy("Has a value although its state is %(state)s."),
    "not_text": gettext_lazy("%(field)s must be a text."),
    "text_too_long": gettext_lazy("%(field)s has more than %(most)s characters."),
    "not_number": gettext_lazy("%(field)s must be a number."),
    "number_out_of_range": gettext_lazy("%(field)s is out of range."),
    "not_whole": gettext_lazy("%(field)s must be a whole number from %(least)s."),
    "not_moment": gettext_lazy("%(field)s must be a time in ISO 8601, or Unix seconds."),
    "scale": gettext_lazy("min_score must be below max_score."),
    "contradicts": gettext_lazy("Contradicts an earlier verdict on the same question: %(said)s."),
}

FILES: dict[str, str | Promise] = {
    "empty": gettext_lazy("The file is empty."),
    "json_array": gettext_lazy("The file is a JSON array. Write one object per line (JSON Lines)."),
    "other_kind": gettext_lazy("The file is not text: %(kind)s. Use JSON Lines or CSV."),
    "no_columns": gettext_lazy("The header must name model and line or id, as in a results file."),
    "unreadable": gettext_lazy("The file could not be read to its end: %(finding)s."),
    GONE: gettext_lazy("The uploaded file is no longer there. Upload it again."),
    AWAY: gettext_lazy("The file storage is not responding. Try again in a minute."),
    NAME_TAKEN: gettext_lazy("A run with this name already exists. Choose another name."),
    UNEXPECTED: gettext_lazy("An unexpected error occurred. Administrators can find it in the server log."),
}


def refused_sentence(refused: RefusedLine) -> str:
    """Why a line was refused."""
    params = dict(refused.params)
    if "wanted" in params:
        params["wanted"] = str(KINDS[params["wanted"]])
    return str(LINES[refused.code]) % params


def file_problem(code: str, params: Mapping[str, str]) -> str:
    """Why a file was not imported; '' without a problem."""
    return str(FILES[code]) % params if code else ""


def source_label(kind: str, name: str) -> str:
    """The display name of a verdict's source."""
    if kind == "rules":
        return _("Rules")
    if kind == "script":
        return _("Script")
    return _("Judges combined") if kind == "combined" else name
