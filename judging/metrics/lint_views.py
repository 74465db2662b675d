"""What lint says about the template that is being typed, beside the editor."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.core.lint.findings import Finding, Lint
from judging.core.metric_definition import MetricDefinition
from judging.lint_messages import sentence
from judging.metrics import editing, linting, samples
from judging.metrics.lint_state import LintState


@dataclass(frozen=True, slots=True)
class FoundShown:
    """A finding in words; `in_template`: its line is one of the template's."""

    kind: str
    finding: Finding
    sentence: str

    @property
    def in_template(self) -> bool:
        return self.finding.line is not None and self.finding.name != "preprocess"

    @property
    def more(self) -> int:
        return self.finding.rows - len(self.finding.first_rows)


@dataclass(frozen=True, slots=True)
class LintShown(LintState):
    """What is known of the template that is typed; `size`: how many renders it takes to know."""

    judge: int = 0
    size: int = 0

    @property
    def result(self) -> Lint | None:
        return linting.read_result(self.found)

    @property
    def findings(self) -> list[FoundShown]:
        result = self.result
        assert result is not None
        errors = [FoundShown("error", one, sentence(one)) for one in result.errors]
        return errors + [FoundShown("warning", one, sentence(one)) for one in result.warnings]


@login_required
@require_POST
def lint(request: HttpRequest, slug: str) -> HttpResponse:
    """The fragment; with `check` a large version is looked through too, by a worker, while the page asks again."""
    project = access.get_project(request, slug, May.METRICS)
    before = editing.definition_at(
        project, *(request.POST.get(name, "") for name in ("metric", "began", "start"))
    )
    shown = lint_shown(project, before, request.POST, check="check" in request.POST)
    return render(request, "metrics/_lint.html", {"lint": shown})


def lint_shown(
    project: Project, before: MetricDefinition, typed: QueryDict, *, check: bool
) -> LintShown | None:
    """None without a version to look through or a judge model to look at."""
    definition, judge = editing.typed_judge(before, typed)
    version = samples.chosen_version(project, {name: str(typed[name]) for name in typed})
    if version is None or not definition.judges:
        return None
    texts = (
        definition.judges[judge].template,
        definition.preprocess if definition.preprocess.strip() else "",
    )
    look = linting.begin if check or linting.is_quick(version) else linting.known
    return LintShown.of(version, look(version, *texts), judge=judge, size=linting.size_of(version))
