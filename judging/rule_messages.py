"""Localized messages of the rule language: errors of a program, reasons of a line, help for its functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import get_language, gettext_lazy, pgettext_lazy
from django.utils.translation import gettext as _

from datasets.messages import json_problem
from judging.core.rules import keywords
from judging.core.rules.functions import BY_WORD
from judging.core.rules.program import Problem, Reason
from judging.messages import reason_sentence as judge_sentence
from judging.sandbox_messages import localized

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

_CROWDED = gettext_lazy(
    "Block tags need their own lines: write “<%(label)s>”, then the text, then “</%(label)s>”."
)

# By code, or by code and variant (kind of argument, number of functions, whether there is a similar name).
PROBLEMS: dict[str, StrPromise] = {
    "missing_header": gettext_lazy("The first line is “%(met)s”; write “# DSL” there, with one space."),
    "missing_header.empty": gettext_lazy("The program is empty; start it with the line “# DSL”."),
    "bad_line": gettext_lazy(
        "“%(met)s” is neither a line “name:function” nor a block. Write a field's name, a colon and a function, "
        "or put the text into a block."
    ),
    "bad_line.crowded": _CROWDED,
    "unknown_function": gettext_lazy(
        "Unknown function “%(met)s”. Use one from the list, such as %(exact_match)s or %(length)s."
    ),
    "unknown_function.name": gettext_lazy(
        "Unknown function “%(met)s”; “%(name)s” was read as a field. Did you mean “%(near_name)s”?"
    ),
    "argument_missing.length": gettext_lazy(
        "“%(function)s” needs a length: write “:60” for at most 60, or “:(20, 60)”."
    ),
    "argument_missing.format": gettext_lazy(
        "“%(function)s” needs a format: write “:JSON”, “:XML”, “:XML:root” or “:%(text)s”."
    ),
    "argument_missing.constant": gettext_lazy(
        "“%(function)s” needs a constant: write a colon and the text to compare with."
    ),
    "argument_missing.rule": gettext_lazy(
        "“%(function)s” needs the label of a block: write “:%(rule)s1”, and the block “<%(rule)s1>” below the "
        "format line."
    ),
    "argument_missing.code": gettext_lazy(
        "“%(function)s” needs the label of a block: write “:%(code)s1”, and the block “<%(code)s1>” below the "
        "format line."
    ),
    "argument_unexpected": gettext_lazy("“%(function)s” takes no argument; remove “%(met)s”."),
    "argument_invalid.length": gettext_lazy(
        "“%(met)s” is not a length; use “60” for at most 60, or “(20, 60)” with the smaller number first."
    ),
    "argument_invalid.format": gettext_lazy(
        "“%(met)s” is not a format; use JSON, XML, XML:root (your root's name) or %(text)s."
    ),
    "argument_invalid.root": gettext_lazy(
        "“%(met)s” can't be the name of an XML element; write the root's name, such as XML:content."
    ),
    "missing_format": gettext_lazy(
        "The format is missing; write “%(format)s:JSON” (or XML, XML:root, %(text)s) as the last line before "
        "the blocks."
    ),
    "duplicate_format": gettext_lazy(
        "“%(name)s” already exists in line %(first)s; remove one of the two lines."
    ),
    "unknown_format": gettext_lazy("Unknown format “%(met)s”; use JSON, XML, XML:root or %(text)s."),
    "unknown_aggregate": gettext_lazy("Unknown aggregate “%(met)s”; use min, max, mean, median or mode."),
    "duplicate_aggregate": gettext_lazy(
        "“%(name)s” already exists in line %(first)s; remove one of the two lines."
    ),
    "header_after_format": gettext_lazy(
        "“%(met)s” is below the format line; move it above. Only blocks can follow the format."
    ),
    "header_after_format.crowded": _CROWDED,
    "block_before_format": gettext_lazy("Block “%(label)s” is above the format line; move it below."),
    "block_unclosed": gettext_lazy(
        "Block “%(label)s” is not closed; write “</%(label)s>” on its own line after the text."
    ),
    "block_unclosed.crowded": _CROWDED,
    "block_unopened": gettext_lazy(
        "“</%(label)s>” closes a block that was never opened; write “<%(label)s>” on "
        "its own line before the text, or remove this line."
    ),
    "block_duplicate": gettext_lazy("Block “%(label)s” already exists in line %(first)s; rename this one."),
    "label_undefined": gettext_lazy(
        "There is no block “%(label)s”; write “<%(label)s>”, its text and “</%(label)s>” below the format line."
    ),
    "label_prefix": gettext_lazy(
        "Label “%(label)s” starts with neither “%(rule)s” nor “%(code)s”; rename it "
        "here and in the line that uses it."
    ),
    "label_prefix.rule": gettext_lazy(
        "Labels of natural-language rules start with “%(rule)s”; rename “%(label)s” here and in its block."
    ),
    "label_prefix.code": gettext_lazy(
        "Labels of Python code start with “%(code)s”; rename “%(label)s” here and in its block."
    ),
    "label_unused": gettext_lazy("No line uses block “%(label)s”; use it in a line or remove it."),
    "python_syntax": gettext_lazy("Invalid Python: %(detail)s. Fix it here."),
    "python_no_function": gettext_lazy(
        "The block “%(label)s” has no function to call; write “def score(ref_answer, model_answer):” at its top level."
    ),
    "python_no_function.several": gettext_lazy(
        "The block “%(label)s” has %(count)s functions that take ref_answer and model_answer, so it is not clear which "
        "one scores; keep one, and name the others' parameters differently."
    ),
    "field_not_allowed": gettext_lazy(
        "With the format %(text)s there are no fields such as “%(name)s”; write “%(whole)s”, or choose JSON or XML."
    ),
    "no_rules": gettext_lazy(
        "No rules found; write at least one above the format line, such as “title:%(exact_match)s”."
    ),
    "mixed_fields": gettext_lazy(
        "“%(whole)s” (the whole answer) can't be combined with fields such as "
        "“%(name)s”. Keep one or the other."
    ),
}

REASONS: dict[str, StrPromise] = {
    "equal": gettext_lazy("Equal to the reference."),
    "different": gettext_lazy("Not equal to the reference."),
    "length_within": gettext_lazy("Length %(length)s; %(low)s to %(high)s characters are allowed."),
    "length_beyond": gettext_lazy("Length %(length)s, but only %(low)s to %(high)s characters are allowed."),
    "format_held": gettext_lazy("Matches the format."),
    "is_constant": gettext_lazy("It is “%(constant)s”."),
    "is_not_constant": gettext_lazy("It is not “%(constant)s”."),
    "part_of_reference": gettext_lazy("A part of the reference."),
    "not_part_of_reference": gettext_lazy("Not a part of the reference."),
    "holds_reference": gettext_lazy("Contains the whole reference."),
    "does_not_hold_reference": gettext_lazy("Does not contain the whole reference."),
    "part_of_argument": gettext_lazy("A part of “%(argument)s”."),
    "not_part_of_argument": gettext_lazy("Not a part of “%(argument)s”."),
    "holds_argument": gettext_lazy("Contains “%(argument)s”."),
    "does_not_hold_argument": gettext_lazy("Does not contain “%(argument)s”."),
    "field_missing": gettext_lazy("The answer has no field “%(name)s”."),
    "code_returned": gettext_lazy("The block “%(label)s” returned %(score)s."),
    # texts with an invalid format
    "not_json": gettext_lazy("Not JSON: line %(line)s, column %(column)s."),
    "not_object": gettext_lazy("JSON, but not an object in braces."),
    "duplicate_key": gettext_lazy("Duplicate key “%(name)s” in one object."),
    "not_a_number": gettext_lazy("Not JSON: “%(name)s” is not a number."),
    "not_xml": gettext_lazy("Not XML: line %(line)s, column %(column)s."),
    "doctype": gettext_lazy("A document type (DOCTYPE) is not allowed."),
    "no_element": gettext_lazy("No XML element found."),
    "text_between": gettext_lazy("There is text between the XML elements; only white space is allowed."),
    "other_root": gettext_lazy("Expected one root element “%(wanted)s”, found “%(met)s”."),
    "too_deep": gettext_lazy("Nested deeper than 100 levels."),
    # lines without a score
    "pending": gettext_lazy("Not scored yet."),
    "not_asked": gettext_lazy("Not scored, because another line has an error."),
    "judge.missing": gettext_lazy("This line needs a judge model, but none is set."),
    "reference.field_missing": gettext_lazy("The reference has no field “%(name)s”. Fix the row."),
    "reference.field_missing.none": gettext_lazy(
        "The row has no reference (neither ref_answer nor an answer in its messages), and this line needs one."
    ),
    "reference.field_missing.empty": gettext_lazy(
        "The reference has no fields, so “%(name)s” matches none. Fix the row."
    ),
    "reference.format": gettext_lazy("The reference doesn't match the program's format. Fix the row."),
    "reference.other_type": gettext_lazy(
        "“%(name)s” is %(met)s in these rows and %(usual)s in most others. Fix the rows."
    ),
    "code.failed": gettext_lazy("The Python block failed. Fix it, or check the values it received."),
    "code.result": gettext_lazy(
        "The Python block did not return a number from 1 to 5 (True and False don't count)."
    ),
}

HELP: dict[str, StrPromise] = {
    "exact_match": gettext_lazy(
        "5 if the answer equals the reference, else 1. Texts by their characters, numbers by value."
    ),
    "fuzzy_match": gettext_lazy(
        "A whole number from 1 to 5 from the judge model: how far the two mean the same."
    ),
    "length": gettext_lazy(
        "5 if the length in characters is within the limit, else 1. White space at the ends does not count."
    ),
    "format": gettext_lazy("5 if the field's text has the format, else 1."),
    "equals": gettext_lazy("5 if the field's text is the constant, else 1."),
    "not_equals": gettext_lazy("5 if the field's text is not the constant, else 1."),
    "contained_in": gettext_lazy(
        "5 if the answer is a part of the reference (or of the argument), else 1: of a text a piece, of a list every "
        "element, of an object every pair."
    ),
    "contains": gettext_lazy("5 if the reference (or the argument) is a part of the answer, else 1."),
    "rule": gettext_lazy("A whole number from 1 to 5 from the judge model, by a rule in your own words."),
    "python": gettext_lazy("The number from 1 to 5 that your Python function returns."),
}

KINDS: dict[str, StrPromise] = {
    "text": pgettext_lazy("kind of value", "a text"),
    "number": pgettext_lazy("kind of value", "a number"),
    "bool": pgettext_lazy("kind of value", "true or false"),
    "null": pgettext_lazy("kind of value", "null"),
    "list": pgettext_lazy("kind of value", "a list"),
    "object": pgettext_lazy("kind of value", "an object"),
}

ARGUMENTS: dict[str, StrPromise] = {
    "none": gettext_lazy("no argument"),
    "length": gettext_lazy("60, or (20, 60)"),
    "format": gettext_lazy("JSON, XML, XML:root or text"),
    "constant": gettext_lazy("a text to compare with"),
    "replacement": gettext_lazy("a text to use instead of the reference (optional)"),
    "rule": gettext_lazy("the label of a block, such as rule1"),
    "code": gettext_lazy("the label of a block, such as code1"),
}


# Keywords that messages refer to, in the language of the program.
_NAMED = {
    "exact_match": BY_WORD["exact_match"].name,
    "length": BY_WORD["length"].name,
    "whole": keywords.WHOLE,
    "format": keywords.FORMAT,
    "text": keywords.TEXT,
    "rule": keywords.RULE_LABEL,
    "code": keywords.CODE_LABEL,
}


def reader_language() -> str:
    """The user's language, restricted to the two that programs can be written in."""
    return "zh" if (get_language() or "").startswith("zh") else "en"


def problem_sentence(problem: Problem) -> str:
    """The message for a problem, with advice."""
    language = problem.params.get("language") or reader_language()
    own = {name: pair.in_language(language) for name, pair in _NAMED.items()}
    params = {**own, **problem.params, "detail": localized(problem.params.get("detail", ""))}
    sentence = str(PROBLEMS[_variant(problem)]) % params
    near = problem.params.get("near")
    if not near:
        return sentence
    return _("%(sentence)s Did you mean “%(near)s”?") % {"sentence": sentence, "near": near}


def _variant(problem: Problem) -> str:
    params, code = problem.params, problem.code
    several = code == "python_no_function" and params["count"] != "0"
    empty = code == "missing_header" and not params["met"]
    marks = (
        params.get("kind"),
        "name" if params.get("near_name") else "",
        "several" if several else "",
        "empty" if empty else "",
    )
    return next((f"{code}.{mark}" for mark in marks if f"{code}.{mark}" in PROBLEMS), code)


def reason_sentence(reason: Reason) -> str:
    """Why a line has its score or none. A judge model's reason is quoted."""
    if reason.code == "judge_said":
        return reason.params["said"]
    variant = f"{reason.code}.{reason.params.get('why')}"
    sentence = REASONS.get(variant) or REASONS.get(reason.code)
    if sentence is None:
        return judge_sentence(reason.code, reason.params.get("detail", ""), "rules")
    if reason.code == "reference.other_type":
        kinds = {name: KINDS[reason.params[name]] for name in ("met", "usual")}
        return str(sentence) % {**reason.params, **kinds}
    return _with_details(_filled(sentence, reason.params), reason)


def _filled(sentence: StrPromise, params: dict[str, str]) -> str:
    """The sentence with its parameters. For invalid JSON, with the first syntax error."""
    text = str(sentence) % params
    if sentence is not REASONS["not_json"] or "problem" not in params:
        return text
    detail = json_problem(params["problem"], params["json_met"], params["json_wanted"])
    return _("%(sentence)s (%(detail)s)") % {"sentence": text, "detail": detail}


def _with_details(sentence: str, reason: Reason) -> str:
    """The sentence with the cause of a row's or a block's error."""
    params = reason.params
    if reason.code == "reference.format":
        why = _filled(REASONS[params["why"]], params)
        return _("%(sentence)s (%(detail)s)") % {"sentence": sentence, "detail": why}
    if reason.code == "code.failed" and params["code_line"]:
        values = {"sentence": sentence, "line": params["code_line"], "detail": localized(params["detail"])}
        return _("%(sentence)s (line %(line)s: %(detail)s)") % values
    if reason.code in ("code.failed", "code.result"):
        detail = localized(params.get("detail") or params.get("met") or "")
        return _("%(sentence)s (%(detail)s)") % {"sentence": sentence, "detail": detail}
    return sentence
