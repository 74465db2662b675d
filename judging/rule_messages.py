"""Localized messages of the rule language: errors of a program, reasons of a line."""

from __future__ import annotations

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from datasets.core.texts import Text
from datasets.messages import json_problem, translated
from judging.core.answer_format import Language
from judging.core.rules import evaluate, formats, functions, keywords, lint, python_blocks
from judging.core.rules.evaluate import FORGIVEN
from judging.core.rules.functions import BY_WORD
from judging.core.rules.lint import KINDS
from judging.core.rules.problems import sentence_of
from judging.core.rules.program import Problem, Reason
from judging.messages import localized
from judging.messages import reason_sentence as judge_sentence

REASONS: dict[str, Text] = {
    code: sentence
    for module in (functions, formats, evaluate, python_blocks, lint)
    for code, sentence in module.REASONS.items()
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


def reader_language() -> Language:
    """The user's language, restricted to the two that programs can be written in."""
    return "zh" if (get_language() or "").startswith("zh") else "en"


def problem_sentence(problem: Problem) -> str:
    """The message for a problem, with advice."""
    language = problem.params.get("language") or reader_language()
    own = {name: pair.in_language(language) for name, pair in _NAMED.items()}
    params = {**own, **problem.params, "detail": localized(problem.params.get("detail", ""))}
    sentence = translated(sentence_of(problem), params)
    near = problem.params.get("near")
    if not near:
        return sentence
    return _("%(sentence)s Did you mean “%(near)s”?") % {"sentence": sentence, "near": near}


def reason_sentence(reason: Reason) -> str:
    """Why a line has its score or none. A judge model's reason is quoted."""
    sentence = _reason_sentence(reason)
    if FORGIVEN not in reason.params:
        return sentence
    return _("%(sentence)s (Trailing commas and comments in the reference were left out.)") % {
        "sentence": sentence
    }


def _reason_sentence(reason: Reason) -> str:
    if reason.code == "judge_said":
        return reason.params["said"]
    variant = f"{reason.code}.{reason.params.get('why')}"
    sentence = REASONS.get(variant) or REASONS.get(reason.code)
    if sentence is None:
        return judge_sentence(reason.code, reason.params.get("detail", ""), "rules")
    if reason.code == "reference.other_type":
        kinds = {name: translated(KINDS[reason.params[name]]) for name in ("met", "usual")}
        return translated(sentence, {**reason.params, **kinds})
    return _with_details(_filled(sentence, reason.params), reason)


def _filled(sentence: Text, params: dict[str, str]) -> str:
    """The sentence with its parameters. For invalid JSON, with the first syntax error."""
    text = translated(sentence, params)
    if sentence != REASONS["not_json"] or "problem" not in params:
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
