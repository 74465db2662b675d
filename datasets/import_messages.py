"""Labels and messages for imports from other tools: the tool, what its parts become, what is left out and why."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.core.imports.model import NotUsable

SOURCES: dict[str, str | Promise] = {
    "table": gettext_lazy("Table"),
    "lm_eval": "lm-evaluation-harness",
    "inspect": "Inspect",
    "promptfoo": "promptfoo",
    "mt_bench": "MT-bench (FastChat)",
    "alpaca_eval": "AlpacaEval",
    "arena_hard": "Arena-Hard",
    "openai_evals": "OpenAI Evals",
    "label_studio": "Label Studio",
    "argilla": "Argilla",
    "every_eval_ever": "Every Eval Ever",
}

BECOMES: dict[str, str | Promise] = {
    "question": gettext_lazy("Question"),
    "messages": gettext_lazy("Messages"),
    "system": gettext_lazy("System prompt"),
    "reference": gettext_lazy("Reference answer"),
    "model": gettext_lazy("Model name"),
    "answer": gettext_lazy("Answer"),
    "verdict": gettext_lazy("Score"),
    "comment": gettext_lazy("Comment on the scores"),
    "field": gettext_lazy("Custom field"),
    "left_out": gettext_lazy("Not imported"),
}

LEFT_OUT: dict[str, str | Promise] = {
    "aggregate": gettext_lazy("A total over other records, not an answer."),
    "answer_not_known": gettext_lazy("It does not say which answer it is about."),
    "answer_twice": gettext_lazy("The same answer again, with another text."),
    "answer_without_row": gettext_lazy("An answer to a question that is not in the files."),
    "binary": gettext_lazy("Binary data, such as an image."),
    "cancelled": gettext_lazy("The annotation was cancelled or never submitted."),
    "cell_error": gettext_lazy("The cell holds an error instead of a value."),
    "field_differs": gettext_lazy(
        "The records of one question have different values. The first one is kept."
    ),
    "json_broken": gettext_lazy("Invalid JSON."),
    "messages_unreadable": gettext_lazy(
        "The column does not hold a list of messages with a role and a text."
    ),
    "more_cells_than_columns": gettext_lazy("The record has more cells than the header has columns."),
    "no_answer": gettext_lazy("The answer is empty."),
    "no_model": gettext_lazy("The record doesn't name a model."),
    "no_number": gettext_lazy("The value is not a number."),
    "no_question": gettext_lazy("The record has no question."),
    "no_value": gettext_lazy("It contains no verdict."),
    "not_a_record": gettext_lazy("Not a record of this tool."),
    "not_an_object": gettext_lazy("JSON, but not an object."),
    "one_score_of_several": gettext_lazy("One score for several answers."),
    "part_dropped": gettext_lazy("A part that is not text."),
    "quote_never_ends": gettext_lazy("A quoted field that is never closed; nothing after it can be read."),
    "row_without_answer": gettext_lazy("A question without any answer."),
    "same_answer": gettext_lazy("It compares an answer with itself."),
    "score_not_number": gettext_lazy("The score is not a number."),
    "score_without_answer": gettext_lazy("A score without an answer."),
    "too_deep": gettext_lazy("Nested too deeply."),
    "too_large": gettext_lazy("Larger than the row limit."),
    "too_many_answers": gettext_lazy("More answers to one question than a row can hold."),
    "verdict_without_answer": gettext_lazy("A verdict on an answer that is not in the files."),
    "verdict_without_row": gettext_lazy("A verdict on a question that is not in the files."),
    "yaml_broken": gettext_lazy("Invalid YAML; nothing after it can be read."),
}

_NOT_USABLE: dict[str, str | Promise] = {
    "all_left_out": gettext_lazy("No row of “%(file)s” could be imported. First reason: %(why)s"),
    "archive_broken": gettext_lazy("“%(file)s” is damaged and cannot be unpacked."),
    "columns_not_understood": gettext_lazy(
        "“%(part)s” is not a column mapping. Write question=COLUMN, answer:MODEL=COLUMN and so on, with commas between."
    ),
    "encrypted": gettext_lazy("“%(file)s” is protected by a password. Save it without one."),
    "gone": gettext_lazy("“%(file)s” is missing on the server. Upload it again."),
    "json_broken": gettext_lazy("“%(file)s” is not valid JSON."),
    "no_question_column": gettext_lazy("No column is chosen for the question. The columns are: %(columns)s"),
    "no_rows": gettext_lazy("“%(file)s” has no rows."),
    "no_such_column": gettext_lazy("There is no column “%(column)s”. The columns are: %(columns)s"),
    "no_such_sheet": gettext_lazy("There is no sheet “%(sheet)s”. The sheets are: %(sheets)s"),
    "no_table": gettext_lazy("“%(file)s” is not a table with several columns, nor a file of a known tool."),
    "promptfoo_report": gettext_lazy(
        "“%(file)s” is a report of promptfoo for reading. Export the results as JSON and upload that: promptfoo export "
        "eval latest -o results.json"
    ),
    "too_large": gettext_lazy("“%(file)s” exceeds the size limit."),
    "too_large_unpacked": gettext_lazy("“%(file)s” exceeds the size limit when unpacked."),
    "too_many_columns": gettext_lazy("The table has %(count)s columns, more than the limit."),
    "unreadable": gettext_lazy("“%(file)s” is damaged or in an unexpected format, and can't be read."),
}
_LONGEST = 500


def source_name(name: str) -> str:
    """The display name of a source."""
    return str(SOURCES.get(name, name))


def becomes_label(becomes: str) -> str:
    """The label of what a column or a part of a record becomes."""
    return str(BECOMES.get(becomes, becomes))


def left_out_reason(code: str) -> str:
    """The reason why something is left out; unknown codes are returned unchanged."""
    return str(LEFT_OUT.get(code, code))


def not_usable(error: NotUsable) -> str:
    """The reason why files cannot be read, in the user's language."""
    return not_usable_sentence(error.code, error.params)


def not_usable_sentence(code: str, params: dict[str, str]) -> str:
    """The same for a stored code."""
    text = str(_NOT_USABLE.get(code, "")) or _("The files cannot be read.")
    unknown = dict.fromkeys(("column", "columns", "sheet", "sheets", "part", "count"), "")
    known = {"file": _("The file"), **unknown}
    if "why" in params:
        params = params | {"why": left_out_reason(params["why"])}
    return text % (known | {name: value[:_LONGEST] for name, value in params.items()})
