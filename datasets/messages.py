"""Codes of the core in the user's language: findings, formats, encodings, repairs, and what imports left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy, pgettext, pgettext_lazy

from datasets.core.decode import ENCODING_NAMES
from datasets.core.findings import CODES, Finding
from datasets.core.formats import FORMAT_NAMES, format_called
from datasets.core.imports.model import BECOMES, NotUsable
from datasets.core.imports.reasons import NOT_USABLE, SOURCE_NAMES, sentence_of
from datasets.core.repair.kinds import REPAIRS
from datasets.core.stats import FORMAT_WHY
from datasets.core.texts import InContext, Plural, Text, gettext_noop
from datasets.models import Version
from evalsite.templatetags.show import number

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


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


_LONG_FORM = gettext_lazy(
    "Extra column “%(name)s”: kept as a custom field. If each record is the answer of the model named there, read the "
    "file as a table: import_dataset --columns %(columns)s"
)
_NOT_CERTAIN = gettext_lazy(
    "Read as %(encoding)s, which is not certain. If characters look wrong, choose the encoding: on the data set's page "
    "under “Is the format wrong?” → “Import as a table”, or with import_dataset --encoding. Or save the file as UTF-8."
)
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
}
"""Alternative messages for a role or key that seems to be misspelt."""
_ONE_OF_MANY = gettext_lazy("One of many findings of this kind. Details were not stored.")
_WITHOUT_DETAILS = frozenset(("content.blank", "messages.system_not_first", "response.blank"))
"""Codes whose sentences have no params."""
_UNKEPT_SENTENCES: dict[str, StrPromise] = {
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


def translated(text: Text, params: Mapping[str, Any] | None = None) -> str:
    """A text of a core module in the active language, with its params."""
    if isinstance(text, Plural):
        params = params or {}
        sentence = ngettext(text.singular, text.plural, params[text.counted])
    else:
        sentence = pgettext(*text) if isinstance(text, InContext) else _(text)
    return sentence if params is None else sentence % params


def message(finding: Finding) -> str:
    """The message for a finding, in the active language."""
    params: dict[str, object] = {"path": finding.path or "", **with_thousands(finding.params)}
    variant = _variant(finding, params)
    if variant is not None:
        return str(variant % params)
    return translated(CODES[finding.code].sentence, _in_words(finding.code, params))


def _variant(finding: Finding, params: Mapping[str, object]) -> StrPromise | None:
    """The sentence for these params if it is not that of the code."""
    code = finding.code
    if code == "file.encoding" and "reason" in params:
        return UNDECODED[str(params["reason"])]
    if finding.params == UNKEPT:
        return None if code in _WITHOUT_DETAILS else _UNKEPT_SENTENCES.get(code, _ONE_OF_MANY)
    if code == "file.too_large" and "unpacked" in params:
        return UNPACKED[str(params["unpacked"])]
    if code == "row.too_large" and params.get("of") == "values":
        return TOO_MANY_VALUES
    if code == "csv.quote" and finding.params.get("more"):
        return _QUOTE_TAKES
    if "meant" in params and code != "field.misspelt":
        return _MEANT.get(code, _KEY_MEANT)
    if code == "csv.extra_column" and (not params["name"] or "columns" in params):
        return _LONG_FORM if params["name"] else _NAMELESS
    if code == "file.converted" and str(params["encoding"]).lower() in NOT_CERTAIN:
        return _NOT_CERTAIN
    return None


NOT_CERTAIN = frozenset(("gb18030", "cp1252"))
"""Encodings that nothing in a file proves."""
_PLAIN = frozenset(("csv.columns", "file.encoding", "file.unknown_format", "rubric.duplicate"))
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


# --- formats, encodings, repairs -------------------------------------------------------------------------------


def format_name(code: str) -> str:
    """The name of a format, or a text for an unknown one."""
    fmt = format_called(code)
    return translated(FORMAT_NAMES[fmt]) if fmt else _("not recognised")


def format_why(version: Version) -> str:
    """A sentence on how the version's format was determined."""
    name = str(version.format_why.get("why", ""))
    made_by = {"attach": "attached", "import": "imported"}.get(version.origin, name)
    why = FORMAT_WHY.get(made_by if name == "forced" else name)
    return translated(why, with_thousands(version.format_why)) if why else ""


def encoding_name(code: str) -> str:
    """The name of an encoding as reported by the reader."""
    return translated(ENCODING_NAMES.get(code, code))


def repair_labels(names: Sequence[str]) -> list[str]:
    """A sentence for each repair; repairs that form one step share a sentence."""
    listed = [name for name in names if name not in ("strip_comments", "strip_trailing_commas")]
    return [translated(REPAIRS[name].label) for name in (listed if "to_jsonl" in names else names)]


def repairs_made(version: Version) -> list[str]:
    """The repairs applied to a version's file."""
    return repair_labels(
        list(dict.fromkeys(step["name"] for step in version.repairs if step["name"] in REPAIRS))
    )


# --- imports of other tools' files -----------------------------------------------------------------------------


def source_name(name: str) -> str:
    """The display name of a source."""
    return translated(SOURCE_NAMES.get(name, name))


def becomes_label(becomes: str) -> str:
    """The label of what a column or a part of a record becomes."""
    return translated(BECOMES[becomes])


def left_out_reason(code: str) -> str:
    """Why something is left out, or is taken only with a warning; unknown codes are returned unchanged."""
    return translated(sentence_of(code))


def not_usable(error: NotUsable) -> str:
    """The reason why files cannot be read."""
    return not_usable_sentence(error.code, error.params)


def not_usable_sentence(code: str, params: dict[str, str]) -> str:
    """The same for a stored code."""
    text = NOT_USABLE.get(code) or gettext_noop("The files cannot be read.")
    unknown = dict.fromkeys(("column", "columns", "lists", "sheet", "sheets", "part", "count"), "")
    words = {"file": _("The file"), **unknown}
    if "why" in params:
        params = params | {"why": left_out_reason(params["why"])}
    return translated(text, words | {name: value[:_LONGEST] for name, value in params.items()})


_LONGEST = 500
