"""The message for each finding, in the user's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy, pgettext_lazy

from datasets.core.findings import Finding
from evalsite.templatetags.show import number

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

SENTENCES: dict[str, StrPromise] = {
    "file.empty": gettext_lazy("The file has no rows."),
    "file.encoding": gettext_lazy("Invalid %(encoding)s: byte %(met)s. Save the file as UTF-8."),
    "file.other_kind": gettext_lazy("This file is %(kind)s, not a dataset: %(advice)s"),
    "file.too_large": gettext_lazy(
        "The file is larger than %(limit)s bytes. Split it, or ask an administrator to raise UPLOAD_MAX_MB."
    ),
    "file.too_many_rows": gettext_lazy(
        "The file has more than %(limit)s rows. Split it, or ask an administrator to raise ROWS_MAX."
    ),
    "file.converted": gettext_lazy("The file was converted from %(encoding)s. UTF-8 recommended."),
    "file.not_jsonl": gettext_lazy(
        "The file is a JSON array, or its objects span several lines. Put one object on each line."
    ),
    "file.unknown_format": gettext_lazy(
        "Unknown format: the file begins with “%(met)s”. Rows need “messages” or “conversation”; a CSV "
        "needs a header with “prompt” and “response”."
    ),
    "file.mixed_formats": gettext_lazy(
        "This row has “%(path)s”, but the file's format is %(format)s. All rows of a file must have the "
        "same format."
    ),
    "row.too_large": gettext_lazy(
        "The row is longer than %(limit)s bytes. Shorten it, or ask an administrator to raise ROW_MAX_KB."
    ),
    "json.invalid": gettext_lazy("Invalid JSON: %(problem)s"),
    "json.not_object": gettext_lazy("The line is %(met)s, not an object in braces."),
    "json.duplicate_key": gettext_lazy("Duplicate key “%(name)s” in one object: keep one of them."),
    "json.lone_surrogate": gettext_lazy(
        "%(name)s is half of a surrogate pair: add the other half or remove it."
    ),
    "json.nul": gettext_lazy("A string contains the character U+0000: remove it."),
    "messages.missing": gettext_lazy("“messages” is missing: add a list of messages."),
    "messages.not_list": gettext_lazy("“messages” is %(met)s, not a list of messages."),
    "messages.empty": gettext_lazy("“messages” is empty: add at least one message."),
    "message.not_object": gettext_lazy("The message is %(met)s, not an object with “role” and “content”."),
    "role.missing": gettext_lazy("“role” is missing: use system, user, assistant or tool."),
    "role.unknown": gettext_lazy("The role is %(met)s: use system, user, assistant or tool."),
    "content.missing": gettext_lazy("“content” is missing: add a string."),
    "content.not_text": gettext_lazy("“content” is %(met)s, not a string or a list of text parts."),
    "content.blank": gettext_lazy("“content” is blank."),
    "messages.no_user": gettext_lazy("No message has the role user: add one."),
    "messages.system_not_first": gettext_lazy(
        "The system message is not the first message: move it to the start."
    ),
    "messages.same_role_twice": gettext_lazy(
        "Two consecutive messages have the role %(role)s: roles should alternate."
    ),
    "model_outputs.missing": gettext_lazy("“model_outputs” is missing, unlike in most rows: add a list."),
    "model_outputs.not_list": gettext_lazy("“model_outputs” is %(met)s, not a list."),
    "model_outputs.empty": gettext_lazy("“model_outputs” is empty: add the answers of at least one model."),
    "model_output.not_object": gettext_lazy(
        "The entry is %(met)s, not an object with “model_name” and “responses”."
    ),
    "model_name.missing": gettext_lazy("“model_name” is missing: add the model's name."),
    "model_name.not_text": gettext_lazy("“model_name” is %(met)s, not a string."),
    "model_name.blank": gettext_lazy("“model_name” is blank: add the model's name."),
    "model_name.twice_in_row": gettext_lazy("“%(model)s” has two entries in this row: merge them into one."),
    "responses.missing": gettext_lazy("“responses” is missing: add a list of answers."),
    "responses.not_list": gettext_lazy("“responses” is %(met)s, not a list of answers."),
    "responses.empty": gettext_lazy("“responses” is empty: add at least one answer."),
    "response.not_object": gettext_lazy("The answer is %(met)s, not an object with “content”."),
    "response.content_missing": gettext_lazy("The answer has no “content”: add a string."),
    "response.content_not_text": gettext_lazy("The answer's “content” is %(met)s, not a string."),
    "response.blank": gettext_lazy("The answer is blank."),
    "response.reasoning_not_text": gettext_lazy("“reasoning_content” is %(met)s, not a string or null."),
    "conversation.missing": gettext_lazy("“conversation” is missing: add a list of turns."),
    "conversation.not_list": gettext_lazy("“conversation” is %(met)s, not a list of turns."),
    "conversation.empty": gettext_lazy("“conversation” is empty: add at least one turn."),
    "turn.not_object": gettext_lazy("The turn is %(met)s, not an object with “prompt” and “response”."),
    "prompt.missing": gettext_lazy("The turn has no “prompt”: add a string."),
    "prompt.not_text": gettext_lazy("“prompt” is %(met)s, not a string."),
    "prompt.blank": gettext_lazy("The prompt is blank."),
    "turn.response_missing": gettext_lazy("The turn has no “response”: add a string."),
    "turn.response_not_text": gettext_lazy("“response” is %(met)s, not a string."),
    "system.not_text": gettext_lazy("“system” is %(met)s, not a string: use a string or remove “system”."),
    "csv.header": gettext_lazy(
        "CSV header %(met)s: the column “%(name)s” %(problem)s. Each column must appear exactly once."
    ),
    "csv.columns": ngettext_lazy(
        "The record has %(met)s field, but the header has %(wanted)s.",
        "The record has %(met)s fields, but the header has %(wanted)s.",
        "met",
    ),
    "csv.quote": gettext_lazy("Unclosed quote: add a closing quote to the field that starts here."),
    "csv.extra_column": gettext_lazy("Extra column “%(name)s”: kept as a custom field."),
    "model_name.alike": gettext_lazy(
        "These names differ only in case, spaces or punctuation: %(names)s (rows in parentheses). Use "
        "one name if they are the same model."
    ),
    "model.coverage": gettext_lazy("“%(model)s” has no answers in %(absent)s of %(rows)s rows."),
    "model.uneven_n": gettext_lazy(
        "“%(model)s” has between %(fewest)s and %(most)s answers per row. The same number in every row "
        "is recommended."
    ),
    "ref_answer.some_missing": ngettext_lazy(
        "%(missing)s of %(rows)s rows has no “ref_answer”.",
        "%(missing)s of %(rows)s rows have no “ref_answer”.",
        "missing",
    ),
    "field.shadowed": ngettext_lazy(
        "The field “%(name)s” in %(rows)s row is replaced by the computed value. Rename it to keep it.",
        "The field “%(name)s” in %(rows)s rows is replaced by the computed value. Rename it to keep it.",
        "rows",
    ),
    "field.type_varies": gettext_lazy("The field “%(name)s” has values of several types: %(types)s."),
    "field.misspelt": ngettext_lazy(
        "%(rows)s row has a field “%(near)s”, and none has “%(meant)s”: did you mean “%(meant)s”?",
        "%(rows)s rows have a field “%(near)s”, and none has “%(meant)s”: did you mean “%(meant)s”?",
        "rows",
    ),
    "id.duplicate": gettext_lazy("Duplicate “id”: also used in line %(first)s."),
    "row.duplicate": gettext_lazy("Duplicate prompt: same as line %(first)s."),
}

JSON_PROBLEMS: dict[str, StrPromise] = {
    "comment": gettext_lazy("comment (%(met)s). JSON has no comments: remove it."),
    "trailing_comma": gettext_lazy("trailing comma. Remove the comma after the last item."),
    "single_quote": gettext_lazy("single quote ('). Use double quotes (\")."),
    "constant": gettext_lazy("%(met)s is not allowed. Use a number or null."),
    "number_range": gettext_lazy("the number %(met)s is out of range."),
    "full_width_quote": gettext_lazy('full-width quote (%(met)s). Use a plain double quote (").'),
    "full_width_comma": gettext_lazy("full-width comma (%(met)s). Use a plain comma (,)."),
    "full_width": gettext_lazy("full-width character (%(met)s). Use a plain %(wanted)s."),
    "unterminated_string": gettext_lazy(
        'unclosed string. Add a closing quote (") to the string that starts here.'
    ),
    "literal": gettext_lazy("%(met)s is not JSON. Use %(wanted)s."),
    "control_character": gettext_lazy("control character %(met)s in a string. Escape it."),
    "bad_escape": gettext_lazy("invalid escape %(met)s. Use a valid escape."),
    "bad_number": gettext_lazy("invalid number %(met)s. Use a plain number."),
    "too_deep": gettext_lazy("brackets are nested more than %(met)s levels deep."),
    "end": gettext_lazy("unexpected end of line. Expected %(wanted)s."),
    "unexpected": gettext_lazy("unexpected %(met)s. Expected %(wanted)s."),
    "spread": gettext_lazy("unexpected %(met)s in an object that spans several lines. Expected %(wanted)s."),
    "unended_comment": gettext_lazy("unclosed comment (%(met)s). Add %(wanted)s or remove it."),
    "unended": gettext_lazy(
        "the object that starts in line %(begun)s is not closed before the next one. Add %(wanted)s "
        "before it."
    ),
    "never_ends": gettext_lazy(
        "the object that starts in line %(begun)s is not closed at the end of the file. Add %(wanted)s."
    ),
}

WANTED: dict[str, StrPromise] = {
    "value": gettext_lazy("a value"),
    "key": gettext_lazy("a key in double quotes"),
    "colon": gettext_lazy("a colon"),
    "comma_or_brace": gettext_lazy("a comma or a closing brace"),
    "comma_or_bracket": gettext_lazy("a comma or a closing bracket"),
    "end": gettext_lazy("the end of the line"),
}

TYPES: dict[str, StrPromise] = {
    "object": gettext_lazy("an object"),
    "array": gettext_lazy("a list"),
    "string": gettext_lazy("a string"),
    "number": gettext_lazy("a number"),
    "boolean": pgettext_lazy("type", "true or false"),
    "null": pgettext_lazy("type", "null"),
}

KINDS: dict[str, tuple[StrPromise, StrPromise]] = {
    "spreadsheet": (gettext_lazy("a spreadsheet"), gettext_lazy("save its sheet as CSV (UTF-8).")),
    "old_office": (gettext_lazy("an old Office file"), gettext_lazy("save its sheet as CSV (UTF-8).")),
    "document": (gettext_lazy("an Office document"), gettext_lazy("save its text as JSONL (UTF-8).")),
    "pdf": (gettext_lazy("a PDF"), gettext_lazy("save its data as JSONL or CSV.")),
    "image": (gettext_lazy("an image"), gettext_lazy("save its data as JSONL or CSV.")),
    "media": (gettext_lazy("an audio or video file"), gettext_lazy("save its data as JSONL or CSV.")),
    "numpy": (gettext_lazy("a NumPy array"), gettext_lazy("save its data as JSONL or CSV.")),
    "binary": (gettext_lazy("a binary file"), gettext_lazy("save its data as JSONL or CSV (UTF-8).")),
    "rtf": (gettext_lazy("an RTF document"), gettext_lazy("save it as plain text (UTF-8).")),
    "archive": (
        gettext_lazy("an archive"),
        gettext_lazy("unpack it and upload the JSONL or CSV file inside."),
    ),
    "parquet": (gettext_lazy("a Parquet or Arrow file"), gettext_lazy("save it as JSONL.")),
    "sqlite": (gettext_lazy("an SQLite database"), gettext_lazy("save its table as JSONL or CSV.")),
    "utf32": (gettext_lazy("text in UTF-32"), gettext_lazy("save it as UTF-8.")),
    "utf16": (gettext_lazy("text in UTF-16 without its mark (BOM)"), gettext_lazy("save it as UTF-8.")),
    "html": (gettext_lazy("an HTML page"), gettext_lazy("download the data itself, as JSONL or CSV.")),
    "xml": (gettext_lazy("an XML file"), gettext_lazy("save its data as JSONL or CSV.")),
}

UNDECODED: dict[str, StrPromise] = {
    "gzip_cut": gettext_lazy("The compressed file is incomplete; upload the whole file."),
    "gzip_damaged": gettext_lazy("The compressed file is damaged; compress it again."),
}

TOO_MANY_VALUES = gettext_lazy(
    "The row has more than %(limit)s values. Shorten it, or ask an administrator to raise ROW_VALUES_MAX."
)

UNPACKED: dict[str, StrPromise] = {
    "limit": gettext_lazy(
        "Unpacked, the file is larger than %(limit)s bytes. Split it, or ask an administrator to raise "
        "UNPACKED_MAX_MB."
    ),
    "bomb": gettext_lazy(
        "The compressed file unpacks to more than %(limit)s bytes, hundreds of times its size. Check "
        "what it contains."
    ),
}

HEADER_PROBLEMS: dict[str, StrPromise] = {
    "missing": gettext_lazy("is missing"),
    "twice": gettext_lazy("appears twice"),
}


_NAMELESS = gettext_lazy("Column %(number)s has no name: kept as a custom field with an empty name.")
UNKEPT = {"unkept": 1}
"""Params of a finding beyond the number stored, of which only line and code are known."""
_QUOTE_TAKES = ngettext_lazy(
    "Unclosed quote: the following %(more)s line is read as part of this field and excluded with it. "
    "Add a closing quote.",
    "Unclosed quote: the following %(more)s lines are read as part of this field and excluded with "
    "it. Add a closing quote.",
    "more",
)
_KEY_MEANT = gettext_lazy("“%(meant)s” is missing, but there is “%(near)s”: did you mean “%(meant)s”?")
_MEANT: dict[str, StrPromise] = {
    "role.unknown": gettext_lazy("The role is “%(met)s”: did you mean “%(meant)s”?"),
    "file.unknown_format": gettext_lazy("Unknown format, but there is “%(near)s”: did you mean “%(meant)s”?"),
    "csv.header": gettext_lazy(
        "In the header (%(met)s) the column “%(meant)s” is missing, but there is “%(near)s”: "
        "did you mean “%(meant)s”?"
    ),
    "ref_answer.some_missing": ngettext_lazy(
        "%(missing)s of %(rows)s rows has no “ref_answer”, but there is “%(near)s”: did you mean “ref_answer”?",
        "%(missing)s of %(rows)s rows have no “ref_answer”, but there is “%(near)s”: did you mean “ref_answer”?",
        "missing",
    ),
    "field.misspelt": SENTENCES["field.misspelt"],
}
"""Alternative messages for a role or key that seems to be misspelt."""
_ONE_OF_MANY = gettext_lazy("One of many findings of this kind. Details were not stored.")
_UNKEPT_SENTENCES: dict[str, StrPromise] = {
    **{code: SENTENCES[code] for code in ("content.blank", "messages.system_not_first", "response.blank")},
    "id.duplicate": gettext_lazy("Duplicate “id”: also used in an earlier line."),
    "row.duplicate": gettext_lazy("Duplicate prompt: same as an earlier line."),
}


class _Count(int):
    """A number that is formatted with thousands separators but still selects a plural form."""

    def __str__(self) -> str:
        return number(int(self))


def with_thousands(params: Mapping[str, object]) -> dict[str, object]:
    """The params of a message, with counts formatted."""
    return {name: _Count(value) if type(value) is int else value for name, value in params.items()}


def message(finding: Finding) -> str:
    """The message for a finding, in the active language."""
    params: dict[str, object] = {"path": finding.path or "", **with_thousands(finding.params)}
    if finding.code == "file.encoding" and "reason" in params:
        return str(UNDECODED[str(params["reason"])])
    if finding.params == UNKEPT:
        return str(_UNKEPT_SENTENCES.get(finding.code, _ONE_OF_MANY))
    if finding.code == "file.too_large" and "unpacked" in params:
        return str(UNPACKED[str(params["unpacked"])] % params)
    if finding.code == "row.too_large" and params.get("of") == "values":
        return str(TOO_MANY_VALUES % params)
    if finding.code == "csv.quote" and finding.params.get("more"):
        return str(_QUOTE_TAKES % params)
    if "meant" in params:
        return str(_MEANT.get(finding.code, _KEY_MEANT) % params)
    nameless = finding.code == "csv.extra_column" and not params["name"]
    sentence = _NAMELESS if nameless else SENTENCES[finding.code]
    return sentence % _in_words(finding.code, params)


_PLAIN = frozenset(("csv.columns", "file.encoding", "file.unknown_format"))
"""Codes whose `met` is shown unchanged."""


def _in_words(code: str, params: dict[str, object]) -> dict[str, object]:
    """Replace codes in the params with words in the user's language."""
    words: dict[str, object] = {"encoding": "UTF-8", "met": "", **params}
    if code == "file.other_kind":
        words["kind"], words["advice"] = KINDS[str(params["kind"])]
    elif code == "json.invalid":
        words["problem"] = json_problem(
            params["reason"], params["met"], params["wanted"], params.get("begun")
        )
    elif code == "csv.header":
        words["problem"] = HEADER_PROBLEMS[str(params["problem"])]
        words["met"] = _("(%(names)s)") % {"names": params["met"]} if params.get("met") else ""
    elif code == "role.unknown":
        words["met"] = TYPES[str(params["type"])] if "type" in params else f"“{params['met']}”"
    elif code == "field.type_varies":
        words["types"] = _(", ").join(str(TYPES[kind]) for kind in str(params["types"]).split(", "))
    elif "met" in params and code not in _PLAIN:
        words["met"] = TYPES.get(str(params["met"]), str(params["met"]))
    return words


def json_problem(reason: object, met: object, wanted: object, begun: object = None) -> str:
    """Why a text is not valid JSON: what was found and expected; `begun` is the line where the object starts."""
    words = {"met": met, "wanted": WANTED.get(str(wanted), wanted), "begun": begun or ""}
    if reason == "spread" and not met:
        words["met"] = _("the end of the file")
    return JSON_PROBLEMS[str(reason)] % words
