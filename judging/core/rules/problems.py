"""The sentences about errors and warnings of a program."""

from datasets.core.texts import Text, gettext_noop
from judging.core.rules.program import Problem

_CROWDED = gettext_noop(
    "Block tags need their own lines: write “<%(label)s>”, then the text, then “</%(label)s>”."
)

# By code, or by code and variant (kind of argument, number of functions, whether there is a similar name).
PROBLEMS: dict[str, Text] = {
    "missing_header": gettext_noop("The first line is “%(met)s”; write “# DSL” there, with one space."),
    "missing_header.empty": gettext_noop("The program is empty; start it with the line “# DSL”."),
    "bad_line": gettext_noop(
        "“%(met)s” is neither a line “name:function” nor a block. Write a field's name, a colon and a function, "
        "or put the text into a block."
    ),
    "bad_line.crowded": _CROWDED,
    "unknown_function": gettext_noop(
        "Unknown function “%(met)s”. Use one from the list, such as %(exact_match)s or %(length)s."
    ),
    "unknown_function.name": gettext_noop(
        "Unknown function “%(met)s”; “%(name)s” was read as a field. Did you mean “%(near_name)s”?"
    ),
    "argument_missing.length": gettext_noop(
        "“%(function)s” needs a length: write “:60” for at most 60, or “:(20, 60)”."
    ),
    "argument_missing.format": gettext_noop(
        "“%(function)s” needs a format: write “:JSON”, “:XML”, “:XML:root” or “:%(text)s”."
    ),
    "argument_missing.constant": gettext_noop(
        "“%(function)s” needs a constant: write a colon and the text to compare with."
    ),
    "argument_missing.rule": gettext_noop(
        "“%(function)s” needs the label of a block: write “:%(rule)s1”, and the block “<%(rule)s1>” below the "
        "format line."
    ),
    "argument_missing.code": gettext_noop(
        "“%(function)s” needs the label of a block: write “:%(code)s1”, and the block “<%(code)s1>” below the "
        "format line."
    ),
    "argument_unexpected": gettext_noop("“%(function)s” takes no argument; remove “%(met)s”."),
    "argument_invalid.length": gettext_noop(
        "“%(met)s” is not a length; use “60” for at most 60, or “(20, 60)” with the smaller number first."
    ),
    "argument_invalid.format": gettext_noop(
        "“%(met)s” is not a format; use JSON, XML, XML:root (your root's name) or %(text)s."
    ),
    "argument_invalid.root": gettext_noop(
        "“%(met)s” can't be the name of an XML element; write the root's name, such as XML:content."
    ),
    "missing_format": gettext_noop(
        "The format is missing; write “%(format)s:JSON” (or XML, XML:root, %(text)s) as the last line before "
        "the blocks."
    ),
    "duplicate_format": gettext_noop(
        "“%(name)s” already exists in line %(first)s; remove one of the two lines."
    ),
    "unknown_format": gettext_noop("Unknown format “%(met)s”; use JSON, XML, XML:root or %(text)s."),
    "unknown_aggregate": gettext_noop("Unknown aggregate “%(met)s”; use min, max, mean, median or mode."),
    "duplicate_aggregate": gettext_noop(
        "“%(name)s” already exists in line %(first)s; remove one of the two lines."
    ),
    "header_after_format": gettext_noop(
        "“%(met)s” is below the format line; move it above. Only blocks can follow the format."
    ),
    "header_after_format.crowded": _CROWDED,
    "block_before_format": gettext_noop("Block “%(label)s” is above the format line; move it below."),
    "block_unclosed": gettext_noop(
        "Block “%(label)s” is not closed; write “</%(label)s>” on its own line after the text."
    ),
    "block_unclosed.crowded": _CROWDED,
    "block_unopened": gettext_noop(
        "“</%(label)s>” closes a block that was never opened; write “<%(label)s>” on "
        "its own line before the text, or remove this line."
    ),
    "block_duplicate": gettext_noop("Block “%(label)s” already exists in line %(first)s; rename this one."),
    "label_undefined": gettext_noop(
        "There is no block “%(label)s”; write “<%(label)s>”, its text and “</%(label)s>” below the format line."
    ),
    "label_prefix": gettext_noop(
        "Label “%(label)s” starts with neither “%(rule)s” nor “%(code)s”; rename it "
        "here and in the line that uses it."
    ),
    "label_prefix.rule": gettext_noop(
        "Labels of natural-language rules start with “%(rule)s”; rename “%(label)s” here and in its block."
    ),
    "label_prefix.code": gettext_noop(
        "Labels of Python code start with “%(code)s”; rename “%(label)s” here and in its block."
    ),
    "label_unused": gettext_noop("No line uses block “%(label)s”; use it in a line or remove it."),
    "pasted_bullet": gettext_noop("“%(met)s” begins with a bullet, as after copying; write “%(wanted)s”."),
    "pasted_at_sign": gettext_noop("“%(met)s” begins with a full-width ＠; write “%(wanted)s”."),
    "pasted_code": gettext_noop(
        "The code of “%(label)s” looks copied from a web page: its indentation is missing, or the backslashes of its "
        "patterns are doubled; indent the bodies of functions, and write one backslash."
    ),
    "python_syntax": gettext_noop("Invalid Python: %(detail)s. Fix it here."),
    "python_no_function": gettext_noop(
        "The block “%(label)s” has no function to call; write “def score(ref_answer, model_answer):” at its top level."
    ),
    "python_no_function.several": gettext_noop(
        "The block “%(label)s” has %(count)s functions that take ref_answer and model_answer, so it is not clear which "
        "one scores; keep one, and name the others' parameters differently."
    ),
    "field_not_allowed": gettext_noop(
        "With the format %(text)s there are no fields such as “%(name)s”; write “%(whole)s”, or choose JSON or XML."
    ),
    "no_rules": gettext_noop(
        "No rules found; write at least one above the format line, such as “title:%(exact_match)s”."
    ),
    "mixed_fields": gettext_noop(
        "“%(whole)s” (the whole answer) can't be combined with fields such as "
        "“%(name)s”. Keep one or the other."
    ),
}


def sentence_of(problem: Problem) -> Text:
    """The untranslated sentence about a problem."""
    params, code = problem.params, problem.code
    several = code == "python_no_function" and params["count"] != "0"
    empty = code == "missing_header" and not params["met"]
    variants = (
        params.get("kind"),
        "name" if params.get("near_name") else "",
        "several" if several else "",
        "empty" if empty else "",
    )
    return PROBLEMS[
        next((f"{code}.{variant}" for variant in variants if f"{code}.{variant}" in PROBLEMS), code)
    ]
