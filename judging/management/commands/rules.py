"""manage.py rules: check a scoring-rule program, or score one answer with it. Needs a database only for --judge."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from evalsite.secrets import Undecryptable
from evalsite.storage import data_dir
from evalsite.terminal import terminal_language
from judging.core.judges.client import AskResult, ask_with_retries
from judging.core.judges.http_clients import HttpClients
from judging.core.judges.settings import JudgeSettings, build_request
from judging.core.rules.ask import read_reply
from judging.core.rules.check import CheckedProgram, read_program
from judging.core.rules.evaluate import (
    NO_JUDGE,
    LineQuestion,
    Result,
    RuleEvaluation,
    conclude,
    needs_answers,
    plan,
)
from judging.core.rules.program import Problem, Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.rules.values import from_python, json_text
from judging.core.values import value_text
from judging.endpoints.connection_test import endpoint_settings
from judging.endpoints.models import Endpoint
from judging.management.command_line import HAS_ERRORS, WRONG_USAGE, add_json_option, refusals, text_of
from judging.messages import reason_sentence as judge_sentence
from judging.rule_messages import problem_sentence, reason_sentence
from judging.sandboxes import shared_sandbox

Document = dict[str, Any]


class Command(BaseCommand):
    help = "Check a scoring-rule program (# DSL), or score one answer by it."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="check | score")
        check = actions.add_parser(
            "check", help="list all errors and warnings of a program with their positions"
        )
        score = actions.add_parser("score", help="score one answer, line by line")
        for action in (check, score):
            action.add_argument("program", type=Path, metavar="PROGRAM")
            add_json_option(action)
        score.add_argument("--answer", required=True, metavar="TEXT")
        score.add_argument("--reference", required=True, metavar="TEXT")
        score.add_argument("--judge", metavar="NAME", help="endpoint for lines that need a judge model")

    def handle(self, *, action: str, program: Path, **options: Any) -> None:
        with translation.override(terminal_language()):
            reading = read_program(text_of(program))
            if action == "check":
                document = check_document(reading)
                failed, words = bool(document["errors"]), check_in_words(document)
            else:
                document = score_answer(reading, options["answer"], options["reference"], options["judge"])
                failed, words = document["error"] is not None, score_in_words(document)
        as_json = options["json"]
        text = document_json(document) if as_json else words
        self.stdout.write(encodable(text, getattr(self.stdout, "encoding", None), as_json=as_json))
        if failed:
            raise SystemExit(HAS_ERRORS)


# --- check -----------------------------------------------------------------------------------------------------


def check_document(reading: CheckedProgram) -> Document:
    """The JSON document of `check --json`."""
    return {
        "errors": [problem_document(problem) for problem in reading.errors],
        "warnings": [problem_document(problem) for problem in reading.warnings],
    }


def problem_document(problem: Problem) -> Document:
    return {
        "line": problem.place.line,
        "column": problem.place.column,
        "code": problem.code,
        "message": problem_sentence(problem),
    }


def check_in_words(document: Document) -> str:
    """A line per problem, or a message that there are none."""
    kinds = (
        (pgettext("finding", "error"), document["errors"]),
        (pgettext("finding", "warning"), document["warnings"]),
    )
    lines = [
        f"{problem['line']}:{problem['column']}: {kind} {problem['code']}: {problem['message']}"
        for kind, problems in kinds
        for problem in problems
    ]
    return "\n".join(lines or [_("The program has no errors.")])


# --- score -----------------------------------------------------------------------------------------------------


def score_answer(reading: CheckedProgram, answer: str, reference: str, judge: str | None) -> Document:
    """The JSON document of `score --json`.

    `error`: the first error of the program or the row; `errors`: all errors of the program. `format_reason`: why the
    answer does not match the program's format, None if it does or the program has errors.
    """
    settings = settings_of(judge) if judge is not None else None
    if reading.program is None:
        errors = [problem_document(problem) for problem in reading.errors]
        first = {name: errors[0][name] for name in ("code", "line", "message")}
        document = {"score": None, "format_ok": None, "format_reason": None}
        return {**document, "lines": [], "error": first, "errors": errors}
    evaluation = plan(reading.program, answer, reference)
    results = results_for(evaluation, settings) if needs_answers(evaluation) else {}
    result = conclude(evaluation, results)
    return score_document(result)


def score_document(result: Result) -> Document:
    lines = [
        {
            "field": line.name,
            "function": line.rule.word,
            "score": line.score,
            "reason": reason_sentence(line.reason),
            "answer": line.answer,
            "reference": line.reference,
        }
        for line in result.lines
    ]
    return {
        "score": result.score,
        "format_ok": result.format_ok,
        "format_reason": reason_sentence(result.failure) if result.failure else None,
        "lines": lines,
        "error": result.error
        and {
            "code": result.error.code,
            "line": result.error.line,
            "message": reason_sentence(Reason(result.error.code, result.error.params)),
        },
        "errors": [],
    }


def results_for(evaluation: RuleEvaluation, settings: JudgeSettings | None) -> dict[int, Scored | Reason]:
    """Results from the sandbox and the judge model for the lines that need them, by line index."""
    results: dict[int, Scored | Reason] = {}
    with refusals():
        for call in evaluation.calls:
            (results[call.line],) = run_code(shared_sandbox(), call.code, [call])
    if any(isinstance(result, Reason) for result in results.values()):
        return results  # already failed, so don't call the judge model
    if settings is None:
        return results | {question.line: Reason(NO_JUDGE) for question in evaluation.questions}
    return results | asyncio.run(ask_judge(evaluation.questions, settings))


async def ask_judge(
    questions: tuple[LineQuestion, ...], settings: JudgeSettings
) -> dict[int, Scored | Reason]:
    """Send all questions to the judge model concurrently."""
    async with HttpClients() as clients:
        client = clients.of(settings)
        requests = [build_request(settings, question.prompt) for question in questions]
        replies = await asyncio.gather(*(ask_with_retries(client, settings, request) for request in requests))
    return {question.line: read_answer(reply) for question, reply in zip(questions, replies, strict=True)}


def read_answer(ask_result: AskResult) -> Scored | Reason:
    if ask_result.error is not None or ask_result.reply is None:
        code, words = (
            (ask_result.error.code, ask_result.error.message) if ask_result.error else ("empty_reply", "")
        )
        return Reason(code, {"detail": words})
    return read_reply(ask_result.reply.content)


def settings_of(name: str) -> JudgeSettings:
    """The settings of the endpoint with this name. Raises CommandError (status 2) unless there is exactly one."""
    data_dir.prepare()
    endpoints = list(Endpoint.objects.filter(name=name, archived_at=None, draft=False)[:2])
    if len(endpoints) != 1:
        sentences = (
            _("No endpoint named %(name)s."),
            _("Several projects have an endpoint called %(name)s; rename one."),
        )
        sentence = sentences[len(endpoints) > 1]
        raise CommandError(sentence % {"name": name}, returncode=WRONG_USAGE)
    try:
        return endpoint_settings(endpoints[0])
    except Undecryptable:
        raise CommandError(judge_sentence("key_unreadable"), returncode=WRONG_USAGE) from None


def score_in_words(document: Document) -> str:
    """A line per scored rule, then the total score or the errors."""
    lines = [
        f"{line['field']} · {line['function']}: {'–' if line['score'] is None else line['score']}  {line['reason']}"
        for line in document["lines"]
    ]
    if document["error"]:
        errors = document["errors"] or [document["error"]]
        lines += [
            _("line %(line)s: %(sentence)s") % {"line": error["line"], "sentence": error["message"]}
            for error in errors
        ]
        return "\n".join(lines)
    if document["format_reason"]:
        sentence = _("The answer doesn't match the program's format: %(why)s")
        lines.append(sentence % {"why": document["format_reason"]})
    return "\n".join([*lines, _("Score: %(score)s") % {"score": value_text(document["score"])}])


# --- writing ---------------------------------------------------------------------------------------------------


def document_json(document: Document) -> str:
    """The document as JSON, with numbers exactly as written in the answer."""
    return json_text(from_python(document))


def encodable(text: str, encoding: str | None, *, as_json: bool) -> str:
    """The text with characters escaped that the terminal's encoding lacks."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        if as_json:
            return "".join(sign if sign.isascii() else json.dumps(sign)[1:-1] for sign in text)
        return text.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")
    return text
