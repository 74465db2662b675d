"""The repairs: what each says, which rows it concerns and how it changes them."""

from collections.abc import Callable
from dataclasses import dataclass

from datasets.core.findings import CODES
from datasets.core.json_repairs import as_json, with_null, without_comment, without_trailing_comma
from datasets.core.row_repairs import (
    merged,
    with_keys,
    with_list_of_messages,
    with_list_of_outputs,
    with_points,
    with_roles,
    with_rubric_of_lines,
)
from datasets.core.rows import is_json, object_in
from datasets.core.rules import RowFindings, check_row
from datasets.core.spelling import misspelt_keys
from datasets.core.texts import gettext_noop

Concerned = Callable[[bytes], bool]
RowChange = Callable[[str], str | None]


def _is_broken(line: bytes) -> bool:
    return not is_json(line)


def _has(code: str) -> Concerned:
    """A check for rows that have this finding, or that must be parsed to tell."""

    def concerned(line: bytes) -> bool:
        findings, row = RowFindings(CODES), object_in(line)
        if row is not None:
            check_row(row, "judge_only", findings)
        return row is None or code in findings.counts

    return concerned


def _with_misspelt_key(line: bytes) -> bool:
    """Whether a row has a key to rename, or must be parsed to tell."""
    row = object_in(line)
    return row is None or any(misspelt_keys(row))


def _unchanged(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class RepairKind:
    """A repair: its label, and what it does to a row.

    `change` returns the repaired text of a row, None to drop it; `concerned` tells the lines that it may change. The
    repairs of whole files are in apply.py.
    """

    label: str
    change: RowChange = _unchanged
    concerned: Concerned = _is_broken
    needs_value: bool = False


REPAIRS: dict[str, RepairKind] = {
    "to_utf8": RepairKind(gettext_noop("Convert the file to UTF-8.")),
    "strip_comments": RepairKind(
        gettext_noop("Remove comments (//, #, /* */) outside strings."), without_comment
    ),
    "strip_trailing_commas": RepairKind(
        gettext_noop("Remove trailing commas after the last item of a list or object."),
        without_trailing_comma,
    ),
    "python_literal": RepairKind(
        gettext_noop(
            "Convert Python literals to JSON: double quotes, and true, false, null instead of True, False, None."
        ),
        lambda text: as_json(text) or text,
    ),
    "to_jsonl": RepairKind(
        gettext_noop("Put each object on its own line, and remove comments and trailing commas.")
    ),
    "nan_to_null": RepairKind(
        gettext_noop("Replace NaN and Infinity by null."), lambda text: with_null(text) or text
    ),
    "rename_key": RepairKind(gettext_noop("Rename misspelled keys."), with_keys, _with_misspelt_key),
    "messages_to_list": RepairKind(
        gettext_noop(
            "Make “messages” a list: the messages that the text holds as JSON, or else one message of the user."
        ),
        with_list_of_messages,
        _has("messages.not_list"),
    ),
    "model_outputs_to_list": RepairKind(
        gettext_noop("Make “model_outputs” a list with an entry for each model of the object."),
        with_list_of_outputs,
        _has("model_outputs.not_list"),
    ),
    "fix_role": RepairKind(
        gettext_noop("Correct misspelled roles (system, user, assistant, tool)."),
        with_roles,
        _has("role.unknown"),
    ),
    "rubric_from_text": RepairKind(
        gettext_noop(
            "Make “rubric” a list: the one that the text holds as JSON, or else a criterion a line."
        ),
        with_rubric_of_lines,
        _has("rubric.not_list"),
    ),
    "rubric_points": RepairKind(
        gettext_noop("Make numbers of the points of a rubric that are numbers in a text."),
        with_points,
        _has("rubric.points_not_number"),
    ),
    "unify_model_names": RepairKind(
        gettext_noop("Use one name for the model in every row, and merge duplicate entries."),
        needs_value=True,
    ),
    "merge_models": RepairKind(
        gettext_noop("Merge a model's entries in a row into one. Contradictory entries stay separate."),
        merged,
        _has("model_name.twice_in_row"),
    ),
}
"""In the order in which they are applied."""
ORDER = tuple(REPAIRS)
WITHOUT_VALUE = tuple(name for name, kind in REPAIRS.items() if not kind.needs_value)
