"""Labels for formats, encodings, repairs and attached answers, in the user's language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.core.findings import Finding
from datasets.messages import message, with_thousands
from datasets.models import Version

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

FORMAT_NAMES: dict[str, StrPromise] = {
    "infer_and_judge": gettext_lazy("Infer and judge (JSONL)"),
    "judge_only": gettext_lazy("Judge only (JSONL)"),
    "legacy_jsonl": gettext_lazy("Multi-turn JSONL (legacy)"),
    "legacy_csv": gettext_lazy("Single-turn CSV (legacy)"),
}

FORMAT_RULES: dict[str, StrPromise] = {
    "judge_only": gettext_lazy(
        "One JSON object per line. “messages” is the conversation; “model_outputs” holds each model's name and its "
        "answers. “ref_answer” and other fields are kept and can be used in prompts."
    ),
    "infer_and_judge": gettext_lazy(
        "The same without “model_outputs”: the run calls the models to generate answers, then judges them."
    ),
    "legacy_jsonl": gettext_lazy(
        "One JSON object per line with “conversation”, a list of turns with “prompt” and “response”, and optionally "
        "“system”. The last response is the reference."
    ),
    "legacy_csv": gettext_lazy(
        "A CSV file whose header names the columns “prompt” and “response”, and optionally “system”; further columns "
        "are kept as fields."
    ),
}

_WHY: dict[str, StrPromise] = {
    "keys.infer_and_judge": gettext_lazy(
        "%(messages)s of %(rows)s rows have “messages”, and fewer than half of them “model_outputs”."
    ),
    "keys.judge_only": gettext_lazy(
        "%(messages)s of %(rows)s rows have “messages”, and %(model_outputs)s of them “model_outputs”."
    ),
    "keys.legacy_jsonl": gettext_lazy("%(conversation)s of %(rows)s rows have “conversation”."),
    "csv_header": gettext_lazy("The first line is a CSV header with “prompt” or “response”."),
    "forced": gettext_lazy("Chosen manually."),
    "imported": gettext_lazy("Set by the import."),
    "attached": gettext_lazy("Created from rows with attached answers."),
    "spread": gettext_lazy("Its objects span several lines, or form one list."),
    "other_kind": gettext_lazy("Not a dataset file."),
    "empty": gettext_lazy("No rows."),
    "unknown": gettext_lazy("Neither “messages” nor “conversation” nor a CSV header was found."),
}

_ENCODINGS: dict[str, StrPromise] = {
    "utf-8": gettext_lazy("UTF-8"),
    "utf-8-sig": gettext_lazy("UTF-8 with byte order mark"),
    "utf-16": gettext_lazy("UTF-16, converted"),
    "gb18030": gettext_lazy("GB18030 (GBK), converted"),
}

REPAIRS: dict[str, StrPromise] = {
    "to_utf8": gettext_lazy("Convert the file to UTF-8."),
    "strip_comments": gettext_lazy("Remove comments (//, #, /* */) outside strings."),
    "strip_trailing_commas": gettext_lazy("Remove trailing commas after the last item of a list or object."),
    "python_literal": gettext_lazy(
        "Convert Python literals to JSON: double quotes, and true, false, null instead of True, False, None."
    ),
    "fix_role": gettext_lazy("Correct misspelled roles (system, user, assistant, tool)."),
    "to_jsonl": gettext_lazy("Put each object on its own line, and remove comments and trailing commas."),
    "unify_model_names": gettext_lazy(
        "Use one name for the model in every row, and merge duplicate entries."
    ),
    "merge_models": gettext_lazy(
        "Merge a model's entries in a row into one. Contradictory entries stay separate."
    ),
}


_UNFIT: dict[str, StrPromise] = {
    "answers": gettext_lazy("it has model answers."),
    "turns": gettext_lazy("it is not exactly one prompt with one response."),
    "field": gettext_lazy(
        "“%(name)s” is not a string, is missing from some rows, or has a name that cannot be a column."
    ),
}
"""Reasons why a row cannot be in a legacy CSV."""


def unfit_for_csv(line: int, why: str, name: str) -> str:
    """Why a version cannot be downloaded as a legacy CSV, and the alternatives."""
    reason = str(_UNFIT[why]) % {"name": name[:80]}
    sentence = _(
        "Row at line %(line)s cannot be exported as legacy CSV without loss: %(why)s Download a table or "
        "JSONL instead."
    )
    return sentence % {"line": line, "why": reason}


def format_name(code: str) -> str:
    """The name of a format, or a text for an unknown one."""
    return str(FORMAT_NAMES[code]) if code in FORMAT_NAMES else _("not recognised")


def format_why(version: Version) -> str:
    """A sentence on how the version's format was determined."""
    name = str(version.format_why.get("why", ""))
    made_by = {"attach": "attached", "import": "imported"}.get(version.origin, name)
    why = _WHY.get(made_by if name == "forced" else name)
    return why % with_thousands(version.format_why) if why else ""


def encoding_name(code: str) -> str:
    """The name of an encoding as reported by the reader."""
    return str(_ENCODINGS.get(code, code))


def repair_labels(names: Sequence[str]) -> list[str]:
    """A sentence for each repair; repairs that form one step share a sentence."""
    listed = [name for name in names if name not in ("strip_comments", "strip_trailing_commas")]
    return [str(REPAIRS[name]) for name in (listed if "to_jsonl" in names else names)]


def repairs_made(version: Version) -> list[str]:
    """The repairs applied to a version's file."""
    return repair_labels(
        list(dict.fromkeys(step["name"] for step in version.repairs if step["name"] in REPAIRS))
    )


def problem(version: Version) -> str:
    """Why the import failed; stored in English, one of the texts in importing/worker.py."""
    return _(version.problem) if version.problem else ""


UNMATCHED: dict[str, StrPromise] = {
    "no_key": gettext_lazy("No row given: add “id”, “line” or “messages”."),
    "unknown_id": gettext_lazy("No valid row has this “id” (a string never equals a number)."),
    "ambiguous_id": gettext_lazy("Several rows have this “id”."),
    "unknown_line": gettext_lazy("No row at this line."),
    "bad_row": gettext_lazy("The row at this line is invalid."),
    "unknown_prompt": gettext_lazy("No valid row has this prompt."),
    "ambiguous_prompt": gettext_lazy("Several rows have this prompt."),
    "already_answered": gettext_lazy("The row already has answers of this model. They are not replaced."),
    "twice": gettext_lazy("Duplicate: an earlier line of the file answers this row for this model."),
    "bad_line": gettext_lazy("The line is invalid."),
    "row_not_carried": gettext_lazy(
        "An invalid CSV record cannot be written to the new JSONL file and is excluded."
    ),
}

_ATTACH_PROBLEMS: dict[str, StrPromise] = {
    "model_name_wanted": gettext_lazy("Legacy file: name the model its responses come from."),
    "gone": gettext_lazy("A stored file is missing. Upload the answers again."),
    "away": gettext_lazy(
        "The file storage did not respond. The version is unchanged. Upload the answers again later."
    ),
    "unexpected": gettext_lazy(
        "Matching failed unexpectedly; see the server's log. The version is unchanged."
    ),
}


def attach_problem(problem: dict[str, Any]) -> str:
    """Why a file could not be matched at all."""
    if problem.get("code") == "file":
        return message(Finding(**problem["finding"]))
    text = _ATTACH_PROBLEMS.get(str(problem.get("code")))
    return str(text) if text else ""


def unmatched_reason(entry: dict[str, Any]) -> str:
    """Why a line is in the list of unmatched answers."""
    text = str(UNMATCHED[entry["reason"]])
    if entry.get("finding"):
        return _("%(reason)s The first one: %(code)s.") % {"reason": text, "code": entry["finding"]}
    return text
