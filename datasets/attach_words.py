"""Why an answer was not matched, and why a file of answers could not be read, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets import attaching
from datasets.core.findings import Finding
from datasets.messages import message

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

REASONS: dict[str, StrPromise] = {
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

_PROBLEMS: dict[str, StrPromise] = {
    attaching.MODEL_NAME_WANTED: gettext_lazy(
        "This is a file in a legacy format. Say which model its responses come from."
    ),
    attaching.GONE: gettext_lazy("A file is no longer where it was kept. Send the answers again."),
    attaching.AWAY: gettext_lazy(
        "The storage where files are kept did not answer. The version is as it was; send the answers again later."
    ),
    attaching.UNEXPECTED: gettext_lazy(
        "The program failed while it matched this file; the server's log says where. The version is as it was."
    ),
}


def problem(problem: dict[str, Any]) -> str:
    """Why a file could not be matched at all."""
    if problem.get("code") == "file":
        return message(Finding(**problem["finding"]))
    text = _PROBLEMS.get(str(problem.get("code")))
    return str(text) if text else ""


def reason(entry: dict[str, Any]) -> str:
    """Why one line of the list of unmatched answers stands there."""
    text = str(REASONS[entry["reason"]])
    if entry.get("finding"):
        return _("%(reason)s The first one: %(code)s.") % {"reason": text, "code": entry["finding"]}
    return text
