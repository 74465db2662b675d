"""Previews of the judge metric editor: the definition being edited and its prompt for a sample row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from django.http import QueryDict

from datasets.core.kinds import CHECKLIST
from datasets.models import Version
from evalsite.accounts.models import Project
from evalsite.web.numbers import whole
from judging.core.checklists import rubric_of
from judging.core.metric_definition import MetricDefinition
from judging.core.pipeline import swapped_context
from judging.core.placeholders import Hint, hints, with_suggestions
from judging.core.preparation import prepared
from judging.core.prompts import Piece, TemplatePreview, estimated_tokens, preview, render_item
from judging.core.results import JudgedItem
from judging.core.sandbox.job import SandboxError, SandboxFailure
from judging.core.values import Value
from judging.messages import hint_sentence
from judging.metrics.editor import samples
from judging.metrics.editor.forms import starting_definition, typed_definition
from judging.metrics.editor.judge_forms import prompt_sentence
from judging.metrics.editor.samples import OfferedName, Sample
from judging.metrics.editor.scripts import ScriptRun, failed_sentence, script_runs
from judging.metrics.editor.starting_points import definition_of
from judging.metrics.editor.step_forms import judge_numbers, typed_scripts
from judging.metrics.models import MetricVersion
from judging.sandboxes import preview_sandbox

MAX_SHOWN = 100_000  # characters of a prompt shown on the page


def definition_before(project: Project, typed: QueryDict) -> MetricDefinition:
    """The definition that the form started from, according to its hidden fields."""
    return definition_at(project, *(typed.get(name, "") for name in ("metric", "began", "start")))


def definition_at(project: Project, metric: str, number: str, start: str = "") -> MetricDefinition:
    """Version `number` of a metric, or the starting point `start`."""
    version = MetricVersion.objects.filter(
        metric__project=project, metric=whole(metric) or 0, number=whole(number) or 0
    ).first()
    if version is not None:
        return MetricDefinition.from_json(version.definition)
    return definition_of(project, start) or starting_definition(start, "")


def typed_judge(before: MetricDefinition, typed: QueryDict) -> tuple[MetricDefinition, int]:
    """The definition being edited, and the number of the previewed judge model."""
    definition = typed_definition(typed, before) if typed else before
    chosen = whole(typed.get("row_judge", "")) or 0
    return definition, chosen if chosen < len(definition.judges) else 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered prompt in pieces, which may be cut. `script_error`: why a script before it failed. `criteria`: of the
    row's rubric; `criterion`: the number from 1 of the one that it is about, 0 if it is about all of them or there is
    none."""

    shown: TemplatePreview
    pieces: tuple[Piece, ...]
    script_error: str = ""
    preprocess_result: Value | None = None
    was_cut: bool = False
    criteria: tuple[str, ...] = ()
    criterion: int = 0

    @property
    def text(self) -> str:
        return self.shown.text

    @property
    def tokens(self) -> int:
        return estimated_tokens(self.text)

    @property
    def failed(self) -> bool:
        return self.shown.error is not None


def preview_prompt(
    definition: MetricDefinition,
    judge: int,
    item: JudgedItem,
    *,
    swapped: bool = False,
    criterion: int = 1,
) -> Prompt | None:
    """The prompt of one judge model for an item; None if `swapped` and the item has no two sides. Failures are part of
    the result. `criterion`: the number of the one that it is about, where they are asked one by one."""
    criteria: tuple[str, ...] = ()
    try:
        (result,) = prepared(preview_sandbox(), definition.first_scripts, [item])
        if result.failure is not None:
            return Prompt(TemplatePreview(()), (), failed_sentence(definition.first_scripts, result))
        seen = swapped_context(result.context) if swapped else result.context
        if seen is None:
            return None
        template = definition.judges[judge].template
        if definition.gives == CHECKLIST and (rubric := rubric_of(result.context.item.data)):
            criteria = tuple(line.text for line in rubric.criteria)
        if definition.asks_by_criterion:
            seen = replace(seen, criterion=max(1, min(criterion, len(criteria))))
        shown = preview(preview_sandbox(), template, render_item(seen, definition))
    except SandboxError as error:
        return Prompt(TemplatePreview((), error=SandboxFailure("refused", str(error))), ())
    pieces, was_cut = _cut(shown.pieces)
    return Prompt(shown, pieces, "", seen.preprocess_result, was_cut, criteria, seen.criterion)


def _cut(pieces: tuple[Piece, ...]) -> tuple[tuple[Piece, ...], bool]:
    """The first MAX_SHOWN characters, and whether there are more."""
    first, left = [], MAX_SHOWN
    for piece in pieces:
        if left > 0:
            first.append(Piece(piece.kind, piece.text[:left], piece.name, piece.line))
        left -= len(piece.text)
    return tuple(first), left < 0


@dataclass(frozen=True)
class PromptPreview:
    """The preview of a judge metric. `prompt` is None without a sample row; `scripts`: by the form's fields."""

    definition: MetricDefinition
    judge: int
    sample: Sample | None
    prompt: Prompt | None
    versions: list[Version]
    scripts: dict[str, ScriptRun]
    judge_number: int = 0
    """The judge model's number in the form, which stays when others are moved."""

    address = "metrics:preview"  # posted to by the row picker

    @property
    def error(self) -> str:
        """Why the template could not be rendered; '' if it was."""
        failure = self.prompt.shown.error if self.prompt else None
        return prompt_sentence(failure) if failure else ""

    @property
    def script_error(self) -> str:
        """Why a script before the prompt failed on this row."""
        return self.prompt.script_error if self.prompt else ""

    @cached_property
    def hints(self) -> list[Hint]:
        """Placeholders of other tools in the template, and what to write instead."""
        fields = self.sample.version.fields_found if self.sample else ()
        return hints(self.template, fields)

    @property
    def hint_sentences(self) -> list[tuple[Hint, str]]:
        return [(hint, hint_sentence(hint)) for hint in self.hints]

    @property
    def with_suggestions(self) -> str:
        return with_suggestions(self.template, self.hints)

    @property
    def template(self) -> str:
        return self.definition.judges[self.judge].template if self.definition.judges else ""

    @property
    def can_try(self) -> bool:
        """Whether there is a prompt, and two answers where candidates are compared."""
        if self.prompt is None or self.prompt.failed or self.script_error:
            return False
        has_both = self.sample is not None and self.sample.other is not None
        return has_both or not self.definition.compares_candidates

    def swapped_prompt(self) -> Prompt | None:
        """The prompt in the other order, for a judge model that is asked in both."""
        if self.sample is None or not self.definition.judges[self.judge].both_orders:
            return None
        return preview_prompt(
            self.definition, self.judge, self.sample.item_for(self.definition), swapped=True
        )

    @property
    def names(self) -> list[OfferedName]:
        answers = ("a", "b") if self.definition.compares_candidates else ("response",)
        return samples.names_offered(self.sample, self.judge, answers) if self.sample else []


def prompt_preview(
    project: Project, before: MetricDefinition, typed: QueryDict, last_version: int = 0
) -> PromptPreview:
    """The preview of the current input for the row selected in the same form, or one of `last_version`."""
    definition, judge = typed_judge(before, typed)
    sample = samples.choose_sample(project, typed, last_version)
    prompt = (
        preview_prompt(
            definition,
            judge,
            sample.item_for(definition),
            criterion=whole(typed.get("row_criterion", "")) or 1,
        )
        if sample and definition.judges
        else None
    )
    runs = script_runs(definition, sample, whole(typed.get("metric", "")), typed.get("sample_reply", ""))
    fields = [placed.field for placed in typed_scripts(typed or None, before)]
    scripts = {field: replace(run, field=field) for field, run in zip(fields, runs, strict=True)}
    numbers = judge_numbers(typed or None, before)
    number = numbers[judge] if judge < len(numbers) else 0
    versions = samples.versions_offered(project, sample)
    return PromptPreview(definition, judge, sample, prompt, versions, scripts, number)
