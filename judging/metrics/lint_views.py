"""Lint results for the template or rule program in the editor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_POST

from datasets.models import Version
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.tasks import workers
from judging.core.lint import Lint, LintFinding
from judging.core.metric_definition import MetricDefinition
from judging.core.rules.check import read_program
from judging.core.rules.lint import BREAKS_RULE, ReferenceFinding, ReferenceLint
from judging.messages import lint_sentence, reason_sentence
from judging.metrics import lint
from judging.metrics.editor import samples
from judging.metrics.editor.judge_forms import unified
from judging.metrics.editor.preview import definition_before, typed_judge
from judging.metrics.editor.step_forms import typed_rules
from judging.metrics.lint import StoredLint
from judging.rule_messages import reason_sentence as rule_reason_sentence


@dataclass(frozen=True)
class LintView:
    """`stored` is None if no check was requested yet."""

    version: Version
    stored: StoredLint | None

    @property
    def waits(self) -> bool:
        return self.stored is not None and self.stored.waits

    @property
    def done(self) -> int:
        return self.stored.job.done if self.stored and self.stored.job else 0

    @property
    def problem(self) -> str:
        return reason_sentence(self.stored.problem) if self.stored and self.stored.problem else ""

    @property
    def worker_missing(self) -> str:
        """See workers.obstacle."""
        by_worker = self.stored and self.waits and not lint.is_quick(self.version, self.stored.kind)
        return workers.obstacle(workers.DATA) if by_worker else ""


# --- of a template ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LintFindingView:
    """A finding with its message. `in_template`: its line number refers to the template."""

    kind: str
    finding: LintFinding
    sentence: str

    @property
    def in_template(self) -> bool:
        return self.finding.line is not None and self.finding.name != "preprocess"

    @property
    def more(self) -> int:
        return self.finding.rows - len(self.finding.first_rows)


@dataclass(frozen=True)
class TemplateLintView(LintView):
    """Lint of the template of the judge model number `judge` in the editor."""

    judge: int

    @cached_property
    def size(self) -> int:
        """The number of renders."""
        return lint.size_of(self.version)

    @cached_property
    def result(self) -> Lint | None:
        return lint.result_of(self.stored) if self.stored else None

    @property
    def findings(self) -> list[LintFindingView]:
        if self.result is None:
            return []
        errors = [LintFindingView("error", finding, lint_sentence(finding)) for finding in self.result.errors]
        return errors + [
            LintFindingView("warning", finding, lint_sentence(finding)) for finding in self.result.warnings
        ]


@login_required
@require_POST
def lint_template(request: HttpRequest, slug: str) -> HttpResponse:
    """The lint fragment. With `check`, large versions are also checked, by a worker, while the page polls."""
    project = access.get_project(request, slug, May.METRICS)
    before = definition_before(project, request.POST)
    view = template_lint_view(project, before, request.POST, check="check" in request.POST)
    return render(request, "metrics/_lint.html", {"lint": view})


def template_lint_view(
    project: Project, before: MetricDefinition, typed: QueryDict, *, check: bool
) -> TemplateLintView | None:
    """The lint of the submitted template; None without a version or a judge model, or if scripts between judges run
    before it."""
    definition, judge = typed_judge(before, typed)
    version = samples.chosen_version(project, typed)
    if version is None or not definition.judges:
        return None
    if judge not in definition.first_row:
        return None  # what its prompt contains depends on replies
    find = lint.request if check or lint.is_quick(version) else lint.load
    template, of_pairs = definition.judges[judge].template, definition.compares_candidates
    stored = find(version, template, definition.first_scripts, of_pairs=of_pairs)
    return TemplateLintView(version, stored, judge)


# --- of a rule program -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComplaintView:
    """A problem of references with its message about the first affected row."""

    finding: ReferenceFinding

    @property
    def sentence(self) -> str:
        return rule_reason_sentence(self.finding.reason)

    @property
    def breaks_itself(self) -> bool:
        return self.finding.code == BREAKS_RULE

    @property
    def more(self) -> bool:
        return self.finding.rows > len(self.finding.first)


class RuleLintView(LintView):
    """Lint of the references with the program in the editor."""

    @cached_property
    def result(self) -> ReferenceLint | None:
        return lint.rules_result(self.stored.result) if self.stored and self.stored.result else None

    @property
    def complaints(self) -> list[ComplaintView]:
        return [ComplaintView(complaint) for complaint in self.result.complaints] if self.result else []


@login_required
@require_POST
def lint_rules(request: HttpRequest, slug: str) -> HttpResponse:
    """The lint fragment. With `check`, references are checked; for large versions by a worker, while the page polls."""
    project = access.get_project(request, slug, May.METRICS)
    before = definition_before(project, request.POST)
    view = rule_lint_view(project, before, request.POST, check="check" in request.POST)
    return render(request, "metrics/_rules_lint.html", {"lint": view})


def rule_lint_view(
    project: Project, before: MetricDefinition, typed: QueryDict, *, check: bool
) -> RuleLintView | None:
    """The lint of the submitted program; None without a version, or if the program has errors."""
    version = samples.chosen_version(project, typed)
    source = unified(typed.get("rules", ""))
    if version is None or read_program(source).program is None:
        return None
    find = lint.request if check else lint.load
    stored = find(version, source, typed_rules(typed, before).first_scripts, lint.RULES)
    return RuleLintView(version, stored)
