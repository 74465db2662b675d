"""What users read about an import: the names of the sources, and why something is left out or files cannot be read."""

from datasets.core.imports.key_use import UNREAD
from datasets.core.texts import Text, gettext_noop

SOURCE_NAMES: dict[str, Text] = {
    "table": gettext_noop("Table"),
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
    "healthbench": "HealthBench",
    "evidence": gettext_noop("Evidence file"),
}

LEFT_OUT: dict[str, Text] = {
    "above_header": gettext_noop("Text above the header."),
    "aggregate": gettext_noop("A total over other records, not an answer."),
    "answer_not_known": gettext_noop("It does not say which answer it is about."),
    "answer_twice": gettext_noop("The same answer again, with another text."),
    "answer_without_row": gettext_noop("An answer to a question that is not in the files."),
    "binary": gettext_noop("Binary data, such as an image."),
    "cancelled": gettext_noop("The annotation was cancelled or never submitted."),
    "cell_error": gettext_noop("The cell holds an error instead of a value."),
    "earlier_answer": gettext_noop("An earlier answer of the same conversation: only the last is imported."),
    "field_differs": gettext_noop(
        "The records of one question have different values. The first one is kept."
    ),
    "fewer_cells_than_columns": gettext_noop("The record has fewer cells than the header has columns."),
    "formula_without_result": gettext_noop(
        "The cell holds a formula without a stored result. Open the file in a spreadsheet program and save it again."
    ),
    "json_broken": gettext_noop("Invalid JSON."),
    "json_ends": gettext_noop("Invalid JSON; nothing after it can be read."),
    UNREAD: gettext_noop("A key or column that is not imported, with the number of records that hold it."),
    "merged_cell": gettext_noop("The cell is part of a merged cell, whose value is only in its first cell."),
    "messages_unreadable": gettext_noop(
        "The column does not hold a list of messages with a role and a text."
    ),
    "more_cells_than_columns": gettext_noop("The record has more cells than the header has columns."),
    "more_references": gettext_noop("A further reference answer: only the first is imported."),
    "no_answer": gettext_noop("The answer is empty."),
    "no_model": gettext_noop("The record doesn't name a model."),
    "no_number": gettext_noop("The value is not a number."),
    "no_question": gettext_noop("The record has no question."),
    "no_such_choice": gettext_noop("The number of a choice that does not exist."),
    "no_value": gettext_noop("It contains no verdict."),
    "not_a_record": gettext_noop("Not a record of this tool."),
    "not_an_object": gettext_noop("JSON, but not an object."),
    "not_utf8": gettext_noop("Bytes that are no text in this encoding."),
    "one_score_of_several": gettext_noop("One score for several answers."),
    "other_sheet": gettext_noop("Another sheet: only one is imported."),
    "outputs_unreadable": gettext_noop("The column does not hold models' names with their answers."),
    "part_dropped": gettext_noop("A part that is not text."),
    "quote_never_ends": gettext_noop(
        "Unclosed quote: the record is left out, and reading goes on in the next line."
    ),
    "row_without_answer": gettext_noop("A question without any answer."),
    "same_answer": gettext_noop("It compares an answer with itself."),
    "score_not_number": gettext_noop("The score is not a number."),
    "score_without_answer": gettext_noop("A score without an answer."),
    "too_deep": gettext_noop("Nested too deeply."),
    "too_large": gettext_noop("Larger than the row limit."),
    "too_many_answers": gettext_noop("More answers to one question than a row can hold."),
    "verdict_without_answer": gettext_noop("A verdict on an answer that is not in the files."),
    "verdict_without_row": gettext_noop("A verdict on a question that is not in the files."),
    "yaml_broken": gettext_noop("Invalid YAML; nothing after it can be read."),
}

WITH_WARNING: dict[str, tuple[Text, str]] = {
    "file.converted": (
        gettext_noop(
            "Read in this encoding, which is not certain. If characters look wrong, choose another: on the page of "
            "the import, or with import_dataset --encoding."
        ),
        "",
    ),
    "key_twice": (gettext_noop("Duplicate key in one object: the last one counts."), ""),
    "nan": (gettext_noop("NaN and Infinity are not JSON: read as null."), "nan_to_null"),
    "python_literal": (
        gettext_noop("Python quotes or constants instead of JSON: read as their JSON."),
        "python_literal",
    ),
    "several_lists": (
        gettext_noop(
            "Several lists of records: read one after the other, with the name of its list in each row."
        ),
        "",
    ),
    "text_as_json": (gettext_noop("An object or a list instead of a text: its JSON is taken."), ""),
}
"""What is imported with a warning: the message, and the repair for it."""

NOT_USABLE: dict[str, Text] = {
    "all_left_out": gettext_noop("No row of “%(file)s” could be imported. First reason: %(why)s"),
    "archive_broken": gettext_noop("“%(file)s” is damaged and cannot be unpacked."),
    "columns_not_understood": gettext_noop(
        "“%(part)s” is not a column mapping. Write question=COLUMN, answer:MODEL=COLUMN and so on, with commas between."
    ),
    "empty": gettext_noop("“%(file)s” is empty."),
    "encrypted": gettext_noop("“%(file)s” is protected by a password. Save it without one."),
    "evidence_broken": gettext_noop(
        "“%(file)s” was changed after it was written: %(member)s is not as in its manifest."
    ),
    "evidence_hashes": gettext_noop(
        "“%(file)s” holds rows and answers as hashes only, so there is nothing to import. manage.py verify checks it."
    ),
    "evidence_unreadable": gettext_noop(
        "“%(file)s” is an evidence file, but what it holds can't be imported: it was made by another program or "
        "version."
    ),
    "gone": gettext_noop("“%(file)s” is missing on the server. Upload it again."),
    "json_broken": gettext_noop("“%(file)s” is not valid JSON."),
    "lists_differ": gettext_noop(
        "“%(file)s” holds several lists of records that differ: %(lists)s. Save the one to import as a file of its own."
    ),
    "no_evidence": gettext_noop("“%(file)s” is not an evidence file, or it is damaged."),
    "no_question_column": gettext_noop("No column is chosen for the question. The columns are: %(columns)s"),
    "no_rows": gettext_noop("“%(file)s” has no rows."),
    "no_such_column": gettext_noop("There is no column “%(column)s”. The columns are: %(columns)s"),
    "no_such_sheet": gettext_noop("There is no sheet “%(sheet)s”. The sheets are: %(sheets)s"),
    "no_table": gettext_noop("“%(file)s” is not a table with several columns, nor a file of a known tool."),
    "other_kind": gettext_noop(
        "“%(file)s” is neither text nor a spreadsheet nor Parquet. Unpack it, or save it as CSV or JSON Lines."
    ),
    "promptfoo_report": gettext_noop(
        "“%(file)s” is a report of promptfoo for reading. Export the results as JSON and upload that: promptfoo export "
        "eval latest -o results.json"
    ),
    "too_large": gettext_noop("“%(file)s” exceeds the size limit."),
    "too_large_unpacked": gettext_noop("“%(file)s” exceeds the size limit when unpacked."),
    "too_many_columns": gettext_noop("The table has %(count)s columns, more than the limit."),
    "unreadable": gettext_noop("“%(file)s” is damaged or in an unexpected format, and can't be read."),
}


def sentence_of(code: str) -> Text:
    """Why something is left out, or is taken only with a warning; an unknown code is returned unchanged."""
    return WITH_WARNING[code][0] if code in WITH_WARNING else LEFT_OUT.get(code, code)


def is_record(code: str) -> bool:
    """Whether a record or a part of it is left out, not a key of all records, nor something taken with a warning."""
    return code not in WITH_WARNING and code != UNREAD
