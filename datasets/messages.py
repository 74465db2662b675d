"""The sentence for each finding, in the reader's language: what was found, and what is wanted."""

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
    "file.empty": gettext_lazy("The file holds no rows; at least one is wanted."),
    "file.encoding": gettext_lazy(
        "The byte %(met)s, which is not %(encoding)s text, was met; save the file as UTF-8."
    ),
    "file.other_kind": gettext_lazy("This is %(kind)s, not a data set; %(advice)s"),
    "file.too_large": gettext_lazy(
        "The file is larger than %(limit)s bytes; split it, or have the limit (UPLOAD_MAX_MB) raised."
    ),
    "file.too_many_rows": gettext_lazy(
        "The file has more than %(limit)s rows; split it, or have the limit (ROWS_MAX) raised."
    ),
    "file.converted": gettext_lazy("The file is in %(encoding)s and was read as such; UTF-8 is wanted."),
    "file.not_jsonl": gettext_lazy(
        "The file is a JSON array, or its objects spread over several lines; one object on each line is wanted."
    ),
    "file.unknown_format": gettext_lazy(
        "None of the four formats fits: the file begins with “%(met)s”; rows with “messages” or “conversation”, "
        "or a CSV header with “prompt” and “response”, are wanted."
    ),
    "file.mixed_formats": gettext_lazy(
        "This row has “%(path)s”, but the file is of the format %(format)s; one file holds rows of one format."
    ),
    "row.too_large": gettext_lazy(
        "This row is longer than %(limit)s bytes; shorten it, or have the limit (ROW_MAX_KB) raised."
    ),
    "json.invalid": gettext_lazy("This line is not JSON: %(problem)s"),
    "json.not_object": gettext_lazy("This line is %(met)s; an object in braces is wanted."),
    "json.duplicate_key": gettext_lazy("The key “%(name)s” is there twice in one object; keep one of them."),
    "json.lone_surrogate": gettext_lazy("%(name)s is half a character; write both halves, or leave it out."),
    "json.nul": gettext_lazy("A text or a name holds the character U+0000; take it out."),
    "messages.missing": gettext_lazy("The row has no “messages”; a list of messages is wanted."),
    "messages.not_list": gettext_lazy("“messages” is %(met)s; a list of messages is wanted."),
    "messages.empty": gettext_lazy("“messages” is an empty list; at least one message is wanted."),
    "message.not_object": gettext_lazy(
        "This message is %(met)s; an object with “role” and “content” is wanted."
    ),
    "role.missing": gettext_lazy("The message has no “role”; system, user, assistant or tool is wanted."),
    "role.unknown": gettext_lazy("The role is %(met)s; system, user, assistant or tool is wanted."),
    "content.missing": gettext_lazy("The message has no “content”; a text is wanted."),
    "content.not_text": gettext_lazy("“content” is %(met)s; a text, or a list of text parts, is wanted."),
    "content.blank": gettext_lazy("“content” is blank; a text is wanted."),
    "messages.no_user": gettext_lazy(
        "No message has the role user, so there is nothing to ask; one is wanted."
    ),
    "messages.system_not_first": gettext_lazy("A system message stands after others; it is wanted first."),
    "messages.same_role_twice": gettext_lazy(
        "Two messages of the role %(role)s follow each other; turns are wanted."
    ),
    "model_outputs.missing": gettext_lazy(
        "The row has no “model_outputs”, unlike most of this file; a list is wanted."
    ),
    "model_outputs.not_list": gettext_lazy("“model_outputs” is %(met)s; a list is wanted."),
    "model_outputs.empty": gettext_lazy(
        "“model_outputs” is an empty list; at least one model's answers are wanted."
    ),
    "model_output.not_object": gettext_lazy(
        "This entry is %(met)s; an object with “model_name” and “responses” is wanted."
    ),
    "model_name.missing": gettext_lazy("The entry has no “model_name”; the model's name is wanted."),
    "model_name.not_text": gettext_lazy("“model_name” is %(met)s; a text is wanted."),
    "model_name.blank": gettext_lazy("“model_name” is blank; the model's name is wanted."),
    "model_name.twice_in_row": gettext_lazy(
        "“%(model)s” has two entries in this row; one with all its answers is wanted."
    ),
    "responses.missing": gettext_lazy("The entry has no “responses”; a list of answers is wanted."),
    "responses.not_list": gettext_lazy("“responses” is %(met)s; a list of answers is wanted."),
    "responses.empty": gettext_lazy("“responses” is an empty list; at least one answer is wanted."),
    "response.not_object": gettext_lazy("This answer is %(met)s; an object with “content” is wanted."),
    "response.content_missing": gettext_lazy("The answer has no “content”; a text is wanted."),
    "response.content_not_text": gettext_lazy("The answer's “content” is %(met)s; a text is wanted."),
    "response.blank": gettext_lazy("The answer is blank; a text is wanted."),
    "response.reasoning_not_text": gettext_lazy("“reasoning_content” is %(met)s; a text or null is wanted."),
    "conversation.missing": gettext_lazy("The row has no “conversation”; a list of turns is wanted."),
    "conversation.not_list": gettext_lazy("“conversation” is %(met)s; a list of turns is wanted."),
    "conversation.empty": gettext_lazy("“conversation” is an empty list; at least one turn is wanted."),
    "turn.not_object": gettext_lazy(
        "This turn is %(met)s; an object with “prompt” and “response” is wanted."
    ),
    "prompt.missing": gettext_lazy("The turn has no “prompt”; a text is wanted."),
    "prompt.not_text": gettext_lazy("“prompt” is %(met)s; a text is wanted."),
    "prompt.blank": gettext_lazy("The prompt is blank; a text is wanted."),
    "turn.response_missing": gettext_lazy("The turn has no “response”; a text is wanted."),
    "turn.response_not_text": gettext_lazy("“response” is %(met)s; a text is wanted."),
    "system.not_text": gettext_lazy("“system” is %(met)s; a text is wanted, or no “system” at all."),
    "csv.header": gettext_lazy(
        "In the header %(met)s the column “%(name)s” %(problem)s; it is wanted exactly once."
    ),
    "csv.columns": ngettext_lazy(
        "This record has %(met)s field; %(wanted)s are wanted, as in the header.",
        "This record has %(met)s fields; %(wanted)s are wanted, as in the header.",
        "met",
    ),
    "csv.quote": gettext_lazy("A quoted field begins here and never ends; a closing quote is wanted."),
    "csv.extra_column": gettext_lazy(
        "The column “%(name)s” is none of prompt, response and system; it is kept as a field of its own."
    ),
    "model_name.alike": gettext_lazy(
        "These names differ only in case, spaces or signs: %(names)s (rows in brackets); "
        "one name is wanted if they are one model."
    ),
    "model.coverage": gettext_lazy(
        "“%(model)s” is absent from %(absent)s of %(rows)s rows; answers to all are wanted."
    ),
    "model.uneven_n": gettext_lazy(
        "“%(model)s” has between %(fewest)s and %(most)s answers a row; the same number in every row is wanted."
    ),
    "ref_answer.some_missing": ngettext_lazy(
        "%(missing)s of %(rows)s rows has no “ref_answer”; all or none is wanted.",
        "%(missing)s of %(rows)s rows have no “ref_answer”; all or none is wanted.",
        "missing",
    ),
    "field.shadowed": ngettext_lazy(
        "The field “%(name)s” in %(rows)s row is replaced by the computed value; another name is wanted.",
        "The field “%(name)s” in %(rows)s rows is replaced by the computed value; another name is wanted.",
        "rows",
    ),
    "field.type_varies": gettext_lazy(
        "The field “%(name)s” has values of several types: %(types)s; one type is wanted."
    ),
    "field.misspelt": ngettext_lazy(
        "%(rows)s row has a field “%(near)s”, and none has “%(meant)s”: did you mean “%(meant)s”?",
        "%(rows)s rows have a field “%(near)s”, and none has “%(meant)s”: did you mean “%(meant)s”?",
        "rows",
    ),
    "id.duplicate": gettext_lazy("This “id” is already that of line %(first)s; every row wants its own."),
    "row.duplicate": gettext_lazy("This row asks the same as line %(first)s; every row is wanted once."),
}

JSON_PROBLEMS: dict[str, StrPromise] = {
    "comment": gettext_lazy("a comment (%(met)s) was met; JSON has none."),
    "trailing_comma": gettext_lazy("a trailing comma was met; none is wanted after the last item."),
    "single_quote": gettext_lazy("a single quote (') was met; double quotes (\") are wanted."),
    "constant": gettext_lazy("%(met)s was met; a number or null is wanted."),
    "number_range": gettext_lazy(
        "the number %(met)s is beyond the range of a double; a smaller one is wanted."
    ),
    "full_width_quote": gettext_lazy(
        'a full-width quote (%(met)s) was met; a plain double quote (") is wanted.'
    ),
    "full_width_comma": gettext_lazy("a full-width comma (%(met)s) was met; a plain comma (,) is wanted."),
    "full_width": gettext_lazy("a full-width sign (%(met)s) was met; a plain %(wanted)s is wanted."),
    "unterminated_string": gettext_lazy(
        'the text that begins here never ends; a closing quote (") is wanted.'
    ),
    "literal": gettext_lazy("%(met)s was met; JSON's own word %(wanted)s is wanted."),
    "control_character": gettext_lazy(
        "the control character %(met)s was met inside a text; an escape is wanted."
    ),
    "bad_escape": gettext_lazy(
        "the escape %(met)s was met, which JSON does not know; a valid one is wanted."
    ),
    "bad_number": gettext_lazy("%(met)s was met, which is no number of JSON; a plain number is wanted."),
    "too_deep": gettext_lazy("brackets are nested more than %(met)s deep; fewer are wanted."),
    "end": gettext_lazy("the line ends too early; %(wanted)s is wanted."),
    "unexpected": gettext_lazy("%(met)s was met; %(wanted)s is wanted."),
    "spread": gettext_lazy(
        "in the middle of an object that is spread over several lines %(met)s was met; %(wanted)s is wanted."
    ),
    "unended_comment": gettext_lazy(
        "a comment begins here with %(met)s and never ends; %(wanted)s is wanted."
    ),
    "unended": gettext_lazy(
        "the object that begins in line %(begun)s has not ended where the next one begins; "
        "%(wanted)s is wanted before it."
    ),
    "never_ends": gettext_lazy(
        "the object that begins in line %(begun)s has not ended at the end of the file; %(wanted)s is wanted."
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
    "string": gettext_lazy("a text"),
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
    "gzip_cut": gettext_lazy("The compressed file ends too early; upload the whole file."),
    "gzip_damaged": gettext_lazy("The compressed file is damaged; compress it again."),
}

TOO_MANY_VALUES = gettext_lazy(
    "This row holds more than %(limit)s values; shorten it, or have the limit (ROW_VALUES_MAX) raised."
)

UNPACKED: dict[str, StrPromise] = {
    "limit": gettext_lazy(
        "Unpacked, the file is larger than %(limit)s bytes; split it, or have the limit (UNPACKED_MAX_MB) raised."
    ),
    "bomb": gettext_lazy(
        "The compressed file unpacks to more than %(limit)s bytes, hundreds of times its own size, as no data set "
        "does; look at what is in it."
    ),
}

HEADER_PROBLEMS: dict[str, StrPromise] = {
    "missing": gettext_lazy("is missing"),
    "twice": gettext_lazy("is there twice"),
}


_NAMELESS = gettext_lazy(
    "Column %(number)s has no name; it is kept as a field of its own, whose name is empty."
)
UNKEPT = {"unkept": 1}
"""Params of a finding beyond the number that is kept, of which only its line and its code are known."""
_QUOTE_TAKES = ngettext_lazy(
    "A quoted field begins here and never ends: the %(more)s line that follows is taken for its text, "
    "and is left out with it; a closing quote is wanted.",
    "A quoted field begins here and never ends: the %(more)s lines that follow are taken for its text, "
    "and are left out with it; a closing quote is wanted.",
    "more",
)
_KEY_MEANT = gettext_lazy("“%(meant)s” is missing, but there is “%(near)s”: did you mean “%(meant)s”?")
_MEANT: dict[str, StrPromise] = {
    "role.unknown": gettext_lazy("The role is “%(met)s”: did you mean “%(meant)s”?"),
    "file.unknown_format": gettext_lazy(
        "None of the four formats fits, but there is “%(near)s”: did you mean “%(meant)s”?"
    ),
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
"""What is said instead where a role or a key seems to be misspelt."""
_ONE_OF_MANY = gettext_lazy("One of very many findings of this kind; what it met was not kept.")
_UNKEPT_SENTENCES: dict[str, StrPromise] = {
    **{code: SENTENCES[code] for code in ("content.blank", "messages.system_not_first", "response.blank")},
    "id.duplicate": gettext_lazy("This “id” is already that of an earlier line; every row wants its own."),
    "row.duplicate": gettext_lazy("This row asks the same as an earlier line; every row is wanted once."),
}


class _Count(int):
    """A number that is written with its thousands; a sentence's plural is chosen by it all the same."""

    def __str__(self) -> str:
        return number(int(self))


def with_thousands(params: Mapping[str, object]) -> dict[str, object]:
    """The params of a sentence, counts as they are read."""
    return {name: _Count(value) if type(value) is int else value for name, value in params.items()}


def message(finding: Finding) -> str:
    """One sentence in the active language."""
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
"""What they met is told as it is."""


def _in_words(code: str, params: dict[str, object]) -> dict[str, object]:
    """Names that stand for words, as words of the reader's language."""
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
    """What keeps a text from being JSON, by what the parser met and wanted; `begun`: the line of an object's start."""
    words = {"met": met, "wanted": WANTED.get(str(wanted), wanted), "begun": begun or ""}
    if reason == "spread" and not met:
        words["met"] = _("the end of the file")
    return JSON_PROBLEMS[str(reason)] % words
