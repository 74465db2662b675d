"""Formats, encodings and the reasons for a detection, in the reader's language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.messages import with_thousands
from datasets.models import Version
from datasets.tables import Unfit

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


def unfit(found: Unfit) -> str:
    """Why there is no legacy CSV of a version, and what there is."""
    why = str(_UNFIT[found.why]) % {"name": found.name[:80]}
    sentence = _(
        "The row at line %(line)s cannot stand in a CSV of prompts and responses without loss: %(why)s "
        "Download it as a table or as JSONL."
    )
    return sentence % {"line": found.line, "why": why}


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
