"""Localized messages for the core's codes: what happened and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, pgettext

from datasets.messages import left_out_reason, translated
from evalsite.templatetags.show import duration
from evalsite.truncation import truncate
from judging.core.judges.errors import ERROR_KINDS, Held
from judging.core.judges.reply_reader import ONLY_REASONING
from judging.core.lint import LintFinding
from judging.core.paste_repair import PROBLEMS as PASTE_PROBLEMS
from judging.core.paste_repair import PasteRepair
from judging.core.placeholders import Hint
from judging.core.reasons import REASONS, ReasonKind, ShownIn
from judging.core.results_file.records import REFUSALS, VALUE_KINDS, RefusedLine
from judging.core.sandbox.texts import MESSAGES, PARTS, RUNNING, SYNTAX
from judging.core.values import Value, value_of, value_text, value_texts

KINDS: dict[str, ReasonKind] = {**REASONS, **ERROR_KINDS}
"""Of every code of a judgement's reason, a call's error or a run's problem."""


def pass_or_fail(value: bool) -> str:
    return pgettext("verdict", "Pass") if value else pgettext("verdict", "Fail")


def verdict_text(value: Value | None) -> str:
    """A verdict for display: pass or fail in words, a label as it is, a number without trailing zeros; '' for None."""
    return pass_or_fail(value) if isinstance(value, bool) else value_text(value)


def stored_verdict_text(text: str | None) -> str:
    """The same for a stored value, which is JSON."""
    return verdict_text(value_of(text))


def verdict_texts(values: Sequence[Value | None]) -> list[str]:
    """The verdicts of a column: as `verdict_text`, but all numbers have the same number of decimals."""
    texts = zip(values, value_texts(values), strict=True)
    return [pass_or_fail(value) if isinstance(value, bool) else text for value, text in texts]


def reason_sentence(code: str, detail: str = "", shown_in: ShownIn = "") -> str:
    """Why a judgement has no score and what to do, with the server's or Python's message, if any.

    `code`: a judgement's reason or a call's error code; unknown codes are returned unchanged. The advice for a reply
    without a score depends on where it is `shown_in`.
    """
    kind = KINDS.get(code)
    sentence = translated(kind.sentence) if kind else code
    if (
        kind and kind.advice and detail and shown_in != "rules"
    ):  # what the judge or its server said instead of a verdict
        sentence = _("%(sentence)s It says “%(detail)s”.") % {"sentence": sentence, "detail": detail}
        detail = ""
    if kind and shown_in in kind.advice:
        params = {"sentence": sentence, "advice": translated(kind.advice[shown_in])}
        sentence = _("%(sentence)s %(advice)s") % params
    if not detail:
        return sentence
    if code == "answer_failed":
        return f"{sentence} {why_no_answer(detail)}"
    if code == "held_down":  # the detail is another code with its detail
        inner, _colon, words_of_it = detail.partition(": ")
        return f"{sentence} {reason_sentence(inner, words_of_it)}"
    if code == "empty_reply" and detail == ONLY_REASONING:
        return _(_ONLY_REASONING)
    if code in Held.codes:  # the detail is a number of seconds
        pattern = _("%(sentence)s Next attempt in %(time)s.")
        return pattern % {"sentence": sentence, "time": duration(detail)}
    if code in ERROR_KINDS:
        return _with_details(sentence, detail)
    return _("%(sentence)s (%(detail)s)") % {"sentence": sentence, "detail": localized(detail)}


_ONLY_REASONING = gettext_noop(
    "The model returned an empty reply; its whole text is in the reasoning. Turn off reasoning in the generation "
    "parameters or on the server, or raise max_tokens."
)


def in_short(code: str, status: int | None) -> str:
    """How a call failed, in a word or as its HTTP status."""
    kind = KINDS.get(code)
    return translated(kind.short) if kind and kind.short else str(status or code)


def why_down(code: str, detail: str) -> str:
    """How the last requests to a failed endpoint ended. Gives no advice to retry, since that happens automatically."""
    kind = KINDS.get(code)
    if kind is None or kind.while_down is None:
        return reason_sentence(code, detail)
    return _with_details(translated(kind.while_down), detail)


def why_no_answer(detail: str) -> str:
    """Why a candidate model gave no answer, from the detail of an `answer_failed` judgement ("code: message")."""
    code, _colon, words = detail.partition(": ")
    kind = KINDS.get(code)
    if kind is None or kind.of_candidate is None:
        return reason_sentence(code, words)
    return _with_details(translated(kind.of_candidate), words)


def _with_details(sentence: str, detail: str) -> str:
    if not detail:
        return sentence
    return _("%(sentence)s Details: %(detail)s") % {"sentence": sentence, "detail": detail}


# --- checks of templates ---------------------------------------------------------------------------------------

_MOST_SHOWN = 120


def lint_sentence(finding: LintFinding) -> str:
    """The message for a finding of a template's check, with advice."""
    return translated(
        finding.sentence,
        {
            "name": _shortened(finding.name),
            "rows": finding.rows,
            "suggestion": _shortened(finding.suggestion),
            "message": localized(finding.message),
        },
    )


def hint_sentence(hint: Hint) -> str:
    """What to write instead of another tool's placeholder."""
    params = {"name": _shortened(hint.text), "suggestion": _shortened(hint.suggestion)}
    return translated(hint.sentence, params)


def repair_sentences(repair: PasteRepair) -> list[str]:
    """What happened to a script or a program that was copied from a document."""
    lines = ", ".join(map(str, repair.uncertain))
    return [translated(PASTE_PROBLEMS[problem], {"lines": lines}) for problem in repair.problems]


def _shortened(text: str | None) -> str | None:
    return text if text is None else truncate(text, _MOST_SHOWN)


# --- results files ---------------------------------------------------------------------------------------------


def refused_sentence(refused: RefusedLine) -> str:
    """Why a line of a results file was refused."""
    params = dict(refused.params)
    if "left_out" in params:  # of another tool's file
        return left_out_reason(refused.code)
    if "wanted" in params:
        params["wanted"] = translated(VALUE_KINDS[params["wanted"]])
    return translated(REFUSALS[refused.code], params)


def source_label(kind: str, name: str) -> str:
    """The display name of an imported verdict's source."""
    if kind == "rules":
        return _("Rules")
    if kind == "script":
        return _("Script")
    return _("Judges combined") if kind == "combined" else name


# --- messages stored in English --------------------------------------------------------------------------------

_NAME = re.compile(r"%\((\w+)\)s")
_SYNTAX_ERROR = re.compile(r"((?:Syntax|Indentation|Tab)Error|error): (.*)", re.S)  # `error` is raised by re
_PLACE = re.compile(
    r"line (?P<line>\d+) of the (?P<kind>preprocess|postprocess) script(?:: (?P<rest>.*))?", re.S
)


def localized(message: str) -> str:
    """The message in the active language, including a leading line number and script name."""
    place = _PLACE.fullmatch(message)
    if place is not None:
        words = {"line": place["line"], "kind": place["kind"], "detail": localized(place["rest"] or "")}
        if not words["detail"]:
            return _("line %(line)s of the %(kind)s script") % words
        return _("line %(line)s of the %(kind)s script: %(detail)s") % words
    syntax = _SYNTAX_ERROR.fullmatch(message)
    if syntax is not None:
        return f"{syntax[1]}: {localized(syntax[2])}"
    return _translated(message, (*MESSAGES, *SYNTAX, *RUNNING), _PART_NAMES)


_PART_NAMES = frozenset(("wanted", "met", "what", "tags"))


def _translated(message: str, msgids: tuple[str, ...], parts: frozenset[str]) -> str:
    """Translate by the first matching msgid; more specific ones come first. Values in `parts` are translated too."""
    for msgid in msgids:
        match = _pattern(msgid).fullmatch(message)
        if match is not None:
            return _(msgid) % {
                name: _translated(value, PARTS, frozenset(("one", "other"))) if name in parts else value
                for name, value in match.groupdict().items()
            }
    return message


@cache
def _pattern(msgid: str) -> re.Pattern[str]:
    """The pattern `more than (?P<most>.+?) characters` for `more than %(most)s characters`."""
    parts = enumerate(_NAME.split(msgid))
    texts = (f"(?P<{part}>.+?)" if number % 2 else re.escape(part) for number, part in parts)
    return re.compile("".join(texts), re.S)
