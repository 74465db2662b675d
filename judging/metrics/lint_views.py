"""Lint results for the template or rule program in the editor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

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
from judging.lint_messages import sentence
from judging.messages import reason_sentence
from judging.metrics import lint
from judging.metrics.editor import samples
from judging.metrics.editor.judge_forms import unified
from judging.metrics.editor.preview import definition_before, typed_judge
from judging.metrics.models import TemplateLint
from judging.rule_messages import reason_sentence as rule_reason_sentence


@dataclass(frozen=True, slots=True)
class LintState:
    """`found`: the stored result. If it is empty and not `waits`, no check was requested yet."""

    version: Version
    found: str = ""
    waits: bool = False
    done: int = 0
    problem: str = ""
    worker_missing: str = ""  # see workers.obstacle

    @classmethod
    def of(cls, version: Version, stored: TemplateLint | None, **more: Any) -> Self:
        """`more`: additional fields of a subclass."""
        if stored is None:
            return cls(version, **more)
        waits = not stored.result and not stored.problem
        by_worker = waits and not lint.is_quick(version, lint.Kind(stored.kind))
        return cls(
            version,
            stored.result,
            waits,
            stored.subjects_done,
            reason_sentence(stored.problem) if stored.problem else "",
            workers.obstacle(workers.DATA) if by_worker else "",
            **more,
        )


# --- of a template ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindingView:
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


@dataclass(frozen=True, slots=True)
class TemplateLintView(LintState):
    """Lint of the template in the editor. `size`: the number of renders."""

    judge: int = 0
    size: int = 0

    @property
    def result(self) -> Lint | None:
        return lint.template_result(self.found) if self.found else None

    @property
    def findings(self) -> list[FindingView]:
        result = self.result
        assert result is not None
        errors = [FindingView("error", one, sentence(one)) for one in result.errors]
        return errors + [FindingView("warning", one, sentence(one)) for one in result.warnings]


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
    """The lint of the submitted template; None without a version or a judge model."""
    definition, judge = typed_judge(before, typed)
    version = samples.chosen_version(project, typed)
    if version is None or not definition.judges:
        return None
    preprocess = definition.preprocess if definition.preprocess.strip() else ""
    find = lint.begin if check or lint.is_quick(version) else lint.known
    stored = find(version, definition.judges[judge].template, preprocess)
    return TemplateLintView.of(version, stored, judge=judge, size=lint.size_of(version))


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


@dataclass(frozen=True, slots=True)
class RuleLintView(LintState):
    """Lint of the references with the program in the editor."""

    @property
    def result(self) -> ReferenceLint | None:
        return lint.rules_result(self.found) if self.found else None

    @property
    def complaints(self) -> list[ComplaintView]:
        result = self.result
        return [ComplaintView(one) for one in result.complaints] if result else []


@login_required
@require_POST
def lint_rules(request: HttpRequest, slug: str) -> HttpResponse:
    """The lint fragment. With `check`, references are checked; for large versions by a worker, while the page polls."""
    project = access.get_project(request, slug, May.METRICS)
    view = rule_lint_view(project, request.POST, check="check" in request.POST)
    return render(request, "metrics/_rules_lint.html", {"lint": view})


def rule_lint_view(project: Project, typed: QueryDict, *, check: bool) -> RuleLintView | None:
    """The lint of the submitted program; None without a version, or if the program has errors."""
    version = samples.chosen_version(project, typed)
    source, preprocess = (unified(typed.get(name, "")) for name in ("rules", "preprocess"))
    if version is None or read_program(source).program is None:
        return None
    find = lint.begin if check else lint.known
    stored = find(version, source, preprocess if preprocess.strip() else "", lint.Kind.RULES)
    return RuleLintView.of(version, stored)
