"""What lint says about the template that is being typed, beside the editor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_POST

from datasets.models import Version
from evalsite import access, engine
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.core.lint.findings import Finding, Lint
from judging.core.pipeline import MetricDefinition
from judging.lint_messages import sentence
from judging.messages import reason_sentence
from judging.metrics import editing, linting, samples


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
class LintShown:
    """What is known of the template that is typed; `result` None: not looked at, or being looked at (`waits`)."""

    version: Version
    judge: int
    size: int
    result: Lint | None = None
    waits: bool = False
    done: int = 0
    problem: str = ""
    worker_missing: str = ""  # see engine.obstacle

    @property
    def findings(self) -> list[FoundShown]:
        assert self.result is not None
        errors = [FoundShown("error", one, sentence(one)) for one in self.result.errors]
        return errors + [FoundShown("warning", one, sentence(one)) for one in self.result.warnings]


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
    size = linting.size_of(version)
    at_once = size <= linting.AT_ONCE
    found = linting.begin(version, *texts) if check or at_once else linting.known(version, *texts)
    more: dict[str, Any] = {}
    if found is not None:
        waits = not found.result and not found.problem
        more = {
            "result": linting.result_of(found),
            "waits": waits,
            "done": found.subjects_done,
            "problem": reason_sentence(found.problem) if found.problem else "",
            "worker_missing": engine.obstacle(engine.DATA) if waits and not at_once else "",
        }
    return LintShown(version, judge, size, **more)
