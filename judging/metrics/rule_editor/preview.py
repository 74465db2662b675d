"""Previews of the rule editor: errors, the sample row line by line, and how often each line scores 1."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from datasets.messages import translated
from datasets.models import Version
from evalsite.accounts.models import Project
from evalsite.truncation import truncate
from judging.core.metric_definition import MetricDefinition
from judging.core.paste_repair import PasteRepair, repaired_program
from judging.core.preparation import prepared
from judging.core.results import JudgedItem
from judging.core.rules import keywords
from judging.core.rules.check import CheckedProgram, read_program
from judging.core.rules.evaluate import (
    ANSWER_LACKS,
    NOT_ASKED,
    LineResult,
    Result,
    RuleEvaluation,
    conclude,
    evaluate,
    needs_answers,
    reference_for,
)
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.program import ARGUMENTS, Problem, Reason, Scored
from judging.core.rules.python_blocks import run_code
from judging.core.rules.values import from_python, text_of
from judging.core.sandbox.job import SandboxError
from judging.core.values import value_texts
from judging.messages import repair_sentences
from judging.metrics.editor import samples
from judging.metrics.editor.samples import Sample
from judging.metrics.editor.scripts import ScriptRun, failed_sentence, script_runs
from judging.metrics.editor.step_forms import typed_rules, typed_scripts
from judging.metrics.lint import Scripts
from judging.metrics.rule_editor.sample_rows import (
    ENDED,
    LOOKED_AT,
    LineCounts,
    count_lines,
    fields_seen,
    items_of,
    references_of,
)
from judging.rule_messages import problem_sentence, reason_sentence
from judging.sandboxes import preview_sandbox

_CUT = 300  # characters of a value in the table
_WITH_SCRIPT = 40  # rows that preprocess runs on for a live preview
TO_BE_ASKED = "to_be_asked"


@dataclass(frozen=True, slots=True)
class LineView:
    """A program line's result for one field of the sample row, and its counts over several rows; `score`: '' if it has
    none."""

    line: int
    field: str
    function: str
    score: str
    reason: str
    answer: str
    judged: bool
    lowest: int = 0
    counted: int = 0
    question: int | None = None  # its index, if the judge model can be tried on it


@dataclass
class RulePreview:
    """The preview of the program in the editor. Without a sample row, only its errors."""

    project: Project
    definition: MetricDefinition
    sample: Sample | None
    versions: list[Version]
    runs: dict[str, ScriptRun]
    """The scripts' results on the sample row, by the form's fields."""

    address = "metrics:rules_preview"  # posted to by the row picker
    prompt = None
    judge = 0

    @property
    def source(self) -> str:
        return self.definition.rules

    @property
    def scripts(self) -> Scripts:
        """The scripts before the program."""
        return self.definition.first_scripts

    @cached_property
    def reading(self) -> CheckedProgram:
        return read_program(self.source)

    @property
    def problems(self) -> list[tuple[Problem, str]]:
        return [(problem, problem_sentence(problem)) for problem in self.reading.problems]

    @cached_property
    def repair(self) -> PasteRepair | None:
        """The program without what copying it from a document left behind."""
        return repaired_program(self.source)

    @property
    def repair_sentences(self) -> list[str]:
        return repair_sentences(self.repair) if self.repair else []

    @cached_property
    def prepared(self) -> tuple[JudgedItem | None, str]:
        """The sample's item after preprocess, or None and the error message."""
        if self.sample is None or self.sample.response is None:
            return None, ""
        if not self.scripts:
            return self.sample.item, ""
        prepared, why = after_scripts(self.scripts, [self.sample.item])
        return (prepared[0], "") if prepared else (None, why)

    @property
    def script_error(self) -> str:
        return self.prepared[1]

    @cached_property
    def result(self) -> Result | None:
        """The sample row's scores, as far as possible without a judge model."""
        item, program = self.prepared[0], self.reading.program
        if item is None or program is None:
            return None
        evaluation = evaluate(program, item)
        results = by_blocks(evaluation) if needs_answers(evaluation) else {}
        to_ask = {question.line: Reason(TO_BE_ASKED) for question in evaluation.questions}
        return conclude(evaluation, to_ask | results)

    @property
    def answer_text(self) -> str:
        item = self.prepared[0]
        return str(item.response.get("content") or "") if item else ""

    @property
    def reference_text(self) -> str:
        reference = reference_for(self.prepared[0]) if self.prepared[0] else None
        return "" if reference is None else text_of(from_python(reference))

    @property
    def failure(self) -> str:
        """Why the sample's answer does not have the program's format; '' if it does."""
        return reason_sentence(self.result.failure) if self.result and self.result.failure else ""

    @property
    def score(self) -> int | float | None:
        return self.result.score if self.result else None

    @cached_property
    def counts(self) -> LineCounts | None:
        program = self.reading.program
        if program is None or self.sample is None or self.sample.response is None or self.prepared[0] is None:
            return None
        most = _WITH_SCRIPT if self.scripts else LOOKED_AT
        items = items_of(self.sample.version, self.sample.response.candidate, most)
        if self.scripts:
            items, _why = after_scripts(self.scripts, items)
        return count_lines(
            [evaluate(program, item) for item in items], None if self.hangs else preview_sandbox()
        )

    @property
    def hangs(self) -> bool:
        """Whether a block was terminated on the sample row, so that it is not run on others."""
        error = self.result.error if self.result else None
        return error is not None and error.params.get("why") in ENDED

    @property
    def lines(self) -> list[LineView]:
        """The sample row's lines, each with its counts over several rows."""
        counts = self.counts.lines if self.counts else {}
        lines = self.result.lines if self.result else ()
        scores = value_texts([line.score for line in lines])
        return [
            _line_view(number, line, score, counts)
            for number, (line, score) in enumerate(zip(lines, scores, strict=True))
        ]

    @property
    def words(self) -> str:
        """JSON for the editor's completion: fields of the version's references, functions, settings."""
        form = self.reading.program.format if self.reading.program else None
        references = list(references_of(self.sample.version)) if self.sample else []
        names = [seen.name for seen in fields_seen(references, form)]
        return json.dumps({"fields": names, **language_words()}, ensure_ascii=False)


def rule_preview(
    project: Project, before: MetricDefinition, typed: QueryDict, last_version: int = 0
) -> RulePreview:
    """The preview of the current input for the row selected in the same form, or one of `last_version`."""
    sample = samples.choose_sample(project, typed, last_version)
    definition = typed_rules(typed, before)
    fields = [placed.field for placed in typed_scripts(typed, before)]
    runs = script_runs(definition, sample, None, "")
    return RulePreview(
        project,
        definition,
        sample,
        samples.versions_offered(project, sample),
        {field: replace(run, field=field) for field, run in zip(fields, runs, strict=True)},
    )


def after_scripts(scripts: Scripts, items: list[JudgedItem]) -> tuple[list[JudgedItem], str]:
    """The items after the scripts, without those on which one fails, and the message of the first failure."""
    try:
        results = prepared(preview_sandbox(), scripts, items)
    except SandboxError as error:
        return [], str(error)
    failed = [result for result in results if result.failure]
    left = [result.context.item for result in results if not result.failure]
    return left, failed_sentence(scripts, failed[0]) if failed else ""


def by_blocks(evaluation: RuleEvaluation) -> dict[int, Scored | Reason]:
    """The results of the program's Python blocks for the sample row, by line index."""
    results: dict[int, Scored | Reason] = {}
    try:
        for call in evaluation.calls:
            (results[call.line],) = run_code(preview_sandbox(), call.code, [call])
    except SandboxError:
        return results
    return results


def _line_view(
    index: int, line: LineResult, score: str, counts: dict[tuple[int, str], tuple[int, int]]
) -> LineView:
    number, judged = line.rule.place.line, line.rule.function.by == "judge"
    lowest, counted = counts.get((number, line.name), (0, 0))
    if line.reason.code in (TO_BE_ASKED, NOT_ASKED):
        reason = (
            _("Judge models are only called in runs; this preview makes no calls.")
            if judged
            else _("Not run here.")
        )
    else:
        reason = reason_sentence(line.reason)
    answer = "" if line.reason.code == ANSWER_LACKS else truncate(text_of(line.answer), _CUT)
    question = index if line.reason.code == TO_BE_ASKED else None
    return LineView(
        number, line.name, line.rule.word, score, reason, answer, judged, lowest, counted, question
    )


def language_words() -> dict[str, Any]:
    """The rule language's vocabulary: functions with Chinese and English names, help and argument; settings."""
    functions = [
        {
            "zh": function.name.zh,
            "en": function.name.en,
            "help": translated(function.help),
            "argument": function.argument,
        }
        for function in FUNCTIONS
    ]
    return {
        "functions": functions,
        "arguments": {kind: translated(sentence) for kind, sentence in ARGUMENTS.items()},
        "names": [pair.both() for pair in keywords.OWN_NAMES],
        "aggregates": list(keywords.AGGREGATE_WORDS),
        "formats": keywords.FORMATS,
    }
