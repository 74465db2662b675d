"""Writing metrics: one editor for both kinds, its fragments, and what a new metric starts from."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from judging.core.pipeline import MetricDefinition
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.keywords import AGGREGATES
from judging.metrics import selectors
from judging.metrics.access import get_metric
from judging.metrics.editor import samples
from judging.metrics.editor.page import EditorPage, JudgeEditor, new_judge_metric, templates
from judging.metrics.rule_editor.guide import chosen_lines, field_rules, guide, program_text
from judging.metrics.rule_editor.page import RuleEditor, new_rule_metric
from judging.rule_messages import HELP, spoken


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """A new judge metric: choose a template to start from, then write."""
    project = access.get_project(request, slug, May.METRICS)
    start = request.POST.get("start", request.GET.get("start"))
    if start is None:
        return render(request, "metrics/start.html", {"starts": templates()})
    return JudgeEditor(request, project, new_judge_metric(start)).respond()


@login_required
def new_rules(request: HttpRequest, slug: str) -> HttpResponse:
    """A new rule metric."""
    project = access.get_project(request, slug, May.METRICS)
    return RuleEditor(request, project, new_rule_metric()).respond()


@login_required
def guided_rules(request: HttpRequest, slug: str) -> HttpResponse:
    """A guided form: from the fields of a version's references to a program, which is then edited."""
    project = access.get_project(request, slug, May.METRICS)
    version = samples.chosen_version(project, request.POST or request.GET)
    found = guide(version) if version else None
    fields = field_rules(found, request.POST) if found else []
    aggregate = request.POST.get("aggregate", "")
    aggregate = aggregate if aggregate in AGGREGATES else "mean"
    if found and "build" in request.POST:
        program = program_text(chosen_lines(fields, spoken()), aggregate, found.form, spoken())
        return RuleEditor(request, project, new_rule_metric(program)).render()
    context = {
        "guide": found,
        "fields": fields,
        "aggregate": aggregate,
        "versions": samples.versions_offered(project),
        "functions": [(one.code, one.name.in_language(spoken()), HELP[one.code]) for one in FUNCTIONS],
        "aggregates": AGGREGATES,
    }
    return render(request, "metrics/rules_start.html", context)


@login_required
def edit(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """The newest version in the editor of its kind; saving makes a new one."""
    found = get_metric(request, slug, metric)
    newest = selectors.newest_version(found)
    kind = RuleEditor if MetricDefinition.from_json(newest.definition).rules else JudgeEditor
    return kind.of_version(request, found, newest).respond()


@login_required
@require_POST
def preview(request: HttpRequest, slug: str, kind: type[EditorPage[Any]]) -> HttpResponse:
    """The preview of what is typed, as a fragment."""
    return kind.of_fragment(request, access.get_project(request, slug, May.METRICS)).preview()


@login_required
@require_POST
def try_row(request: HttpRequest, slug: str, kind: type[EditorPage[Any]]) -> HttpResponseBase:
    """A judge model asked about the sample row; nothing is stored."""
    return kind.of_fragment(request, access.get_project(request, slug, May.METRICS)).try_on_row()


@login_required
@require_POST
def past_replies(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """What the parser that is typed reads from replies to this metric's runs, as a fragment."""
    found = get_metric(request, slug, metric)
    page = JudgeEditor.of_version(request, found, selectors.newest_version(found))
    return render(request, "metrics/_past_replies.html", {"past": page.past_replies()})
