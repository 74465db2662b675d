"""Codes of formats, encodings, repairs and attached answers, in the reader's language."""

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
    "legacy_jsonl": gettext_lazy("Legacy, conversations (JSONL)"),
    "legacy_csv": gettext_lazy("Legacy, one turn a record (CSV)"),
}

FORMAT_RULES: dict[str, StrPromise] = {
    "judge_only": gettext_lazy(
        "One JSON object a line. “messages” is the conversation that was asked; “model_outputs” holds each model's "
        "name and its answers. “ref_answer” and any further fields are kept and can be used in prompts."
    ),
    "infer_and_judge": gettext_lazy(
        "The same without “model_outputs”: the program asks the models itself, then has the answers judged."
    ),
    "legacy_jsonl": gettext_lazy(
        "One JSON object a line with “conversation”, a list of turns with “prompt” and “response”, and perhaps "
        "“system”. The last response is the reference."
    ),
    "legacy_csv": gettext_lazy(
        "A CSV file whose header names the columns “prompt” and “response”, and perhaps “system”; further columns are "
        "kept as fields."
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
    "forced": gettext_lazy("It was chosen by hand."),
    "attached": gettext_lazy("It was made of rows and the answers attached to them."),
    "spread": gettext_lazy("Its objects are spread over several lines, or stand in one list."),
    "other_kind": gettext_lazy("It is another kind of file."),
    "empty": gettext_lazy("It holds no rows."),
    "unknown": gettext_lazy("Neither “messages” nor “conversation” nor a CSV header was found."),
}

_ENCODINGS: dict[str, StrPromise] = {
    "utf-8": gettext_lazy("UTF-8"),
    "utf-8-sig": gettext_lazy("UTF-8 with byte order mark"),
    "utf-16": gettext_lazy("UTF-16, converted"),
    "gb18030": gettext_lazy("GB18030 (GBK), converted"),
}

REPAIRS: dict[str, StrPromise] = {
    "to_utf8": gettext_lazy("Write the file anew in UTF-8."),
    "strip_comments": gettext_lazy("Take out comments (//, #, /* */); what stands inside a text stays."),
    "strip_trailing_commas": gettext_lazy("Take out the comma after the last item of a list or an object."),
    "python_literal": gettext_lazy(
        "Write Python-style lines as JSON: double quotes, and true, false, null instead of True, False, None."
    ),
    "fix_role": gettext_lazy("Correct misspelt roles (system, user, assistant, tool)."),
    "to_jsonl": gettext_lazy(
        "Put each object on a line of its own, and take out comments and trailing commas on the way."
    ),
    "unify_model_names": gettext_lazy(
        "Give a model one name in every row; where a row then has two entries of it, they become one."
    ),
    "merge_models": gettext_lazy(
        "Put all answers that a row has of one model into one entry; entries that contradict each other stay."
    ),
}


_UNFIT: dict[str, StrPromise] = {
    "answers": gettext_lazy("it has answers of models."),
    "turns": gettext_lazy("it is more or less than one prompt with its response."),
    "field": gettext_lazy(
        "“%(name)s” is no text, is not in every row, or has a name that no column of its own can have."
    ),
}
"""Why a row cannot stand in a legacy CSV."""


def unfit_for_csv(line: int, why: str, name: str) -> str:
    """Why a version cannot be downloaded as a legacy CSV, and what to download instead."""
    reason = str(_UNFIT[why]) % {"name": name[:80]}
    sentence = _(
        "The row at line %(line)s cannot stand in a CSV of prompts and responses without loss: %(why)s "
        "Download it as a table or as JSONL."
    )
    return sentence % {"line": line, "why": reason}


def format_name(code: str) -> str:
    """The name of a format; what to say where none was found."""
    return str(FORMAT_NAMES[code]) if code in FORMAT_NAMES else _("not recognised")


def format_why(version: Version) -> str:
    """One sentence on how the version's format was found."""
    name = str(version.format_why.get("why", ""))
    why = _WHY.get("attached" if name == "forced" and version.origin == "attach" else name)
    return why % with_thousands(version.format_why) if why else ""


def encoding_name(code: str) -> str:
    """The name of an encoding as reported by the reader."""
    return str(_ENCODINGS.get(code, code))


def repairs_in_words(names: Sequence[str]) -> list[str]:
    """What repairs do, a sentence each; of several that are one step only the one that names them all."""
    told = [name for name in names if name not in ("strip_comments", "strip_trailing_commas")]
    return [str(REPAIRS[name]) for name in (told if "to_jsonl" in names else names)]


def repairs_made(version: Version) -> list[str]:
    """What was done to make a repaired version's file; for names also which."""
    return repairs_in_words(
        list(dict.fromkeys(step["name"] for step in version.repairs if step["name"] in REPAIRS))
    )


def problem(version: Version) -> str:
    """Why the reading failed; kept in English, one of the texts in importing.py."""
    return _(version.problem) if version.problem else ""


UNMATCHED: dict[str, StrPromise] = {
    "no_key": gettext_lazy("It does not say which row it answers: “id”, “line” or “messages” is wanted."),
    "unknown_id": gettext_lazy("No good row has this “id” (a text and a number are never the same)."),
    "ambiguous_id": gettext_lazy("Several rows have this “id”, so it is not clear which one is meant."),
    "unknown_line": gettext_lazy("There is no row at this line."),
    "bad_row": gettext_lazy("The row at this line has errors, so it can take no answers."),
    "unknown_prompt": gettext_lazy("No good row asks this."),
    "ambiguous_prompt": gettext_lazy("Several rows ask this, so it is not clear which one is meant."),
    "already_answered": gettext_lazy("The row has answers of this model already; they are not replaced."),
    "twice": gettext_lazy("The file has answers of this model to this row before; the first ones are taken."),
    "bad_line": gettext_lazy("The line has errors."),
    "row_not_carried": gettext_lazy(
        "A bad record of the version's CSV file cannot stand in the new JSONL file and is left out of it."
    ),
}

_ATTACH_PROBLEMS: dict[str, StrPromise] = {
    "model_name_wanted": gettext_lazy(
        "This is a file in a legacy format. Say which model its responses come from."
    ),
    "gone": gettext_lazy("A file is no longer where it was kept. Send the answers again."),
    "away": gettext_lazy(
        "The storage where files are kept did not answer. The version is as it was; send the answers again later."
    ),
    "unexpected": gettext_lazy(
        "The program failed while it matched this file; the server's log says where. The version is as it was."
    ),
}


def attach_problem(problem: dict[str, Any]) -> str:
    """Why a file could not be matched at all."""
    if problem.get("code") == "file":
        return message(Finding(**problem["finding"]))
    text = _ATTACH_PROBLEMS.get(str(problem.get("code")))
    return str(text) if text else ""


def unmatched_reason(entry: dict[str, Any]) -> str:
    """Why one line of the list of unmatched answers stands there."""
    text = str(UNMATCHED[entry["reason"]])
    if entry.get("finding"):
        return _("%(reason)s The first one: %(code)s.") % {"reason": text, "code": entry["finding"]}
    return text
