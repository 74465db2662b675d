"""Metric views: the list, the editor, versions and their differences, and the reference pages."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from datasets.messages import translated
from evalsite import access, archiving
from evalsite.access import May, signed_in
from evalsite.audit import Action
from judging.core.gallery import start_of
from judging.core.metric_definition import SCRIPT_KINDS, JudgeModel, MetricDefinition, Script, Step
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.keywords import AGGREGATES
from judging.guides import guide as shown_guide
from judging.metrics import selectors, services
from judging.metrics.access import get_metric, get_metric_version
from judging.metrics.editor import samples
from judging.metrics.editor.kind_fields import GIVES_NAMES, form_kind
from judging.metrics.editor.page import EditorPage, JudgeEditor, new_judge_metric
from judging.metrics.editor.starting_points import definition_of
from judging.metrics.gallery.views import show_gallery
from judging.metrics.rule_editor.guide import field_rules, guide, program_text
from judging.metrics.rule_editor.page import RuleEditor, new_rule_metric
from judging.metrics.version_diff import parts_of_definitions
from judging.rule_messages import reader_language

REFERENCE_PAGES = ("rules", "prompts", "metrics-file", "results", "imports")


@login_required
@require_GET
def metrics(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's metrics, or its archived ones."""
    project = access.get_project(request, slug, May.METRICS)
    archived = request.GET.get("archived") == "1"
    context = {"lines": selectors.metrics_of(project, archived=archived), "archived": archived}
    return render(request, "metrics/list.html", context)


@login_required
@require_POST
def copy(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Copy a metric."""
    duplicate = services.metric_copy(metric=get_metric(request, slug, metric), user=signed_in(request))
    messages.success(request, _("This is the copy, “%(name)s”.") % {"name": duplicate.name})
    return redirect("metrics:edit", slug, duplicate.pk)


@login_required
@require_POST
def archive(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Hide a metric from the list; nothing is deleted."""
    row = get_metric(request, slug, metric)
    archiving.archive(row, Action.METRIC_ARCHIVED, row.project)
    text = _("“%(name)s” archived. Nothing was deleted, and runs keep it. You can restore it.")
    messages.success(request, text % {"name": row.name})
    return redirect("metrics:list", slug)


@login_required
@require_POST
def restore(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Show an archived metric in the list again."""
    row = get_metric(request, slug, metric)
    archiving.restore(row, Action.METRIC_RESTORED, row.project)
    messages.success(request, _("“%(name)s” was restored.") % {"name": row.name})
    return redirect("metrics:edit", slug, row.pk)


# --- writing: one editor for both kinds ----------------------------------------------------------------------


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """A new judge metric: choose one from the gallery, then edit."""
    project = access.get_project(request, slug, May.METRICS)
    start = request.POST.get("start", request.GET.get("start"))
    if start is None:
        return show_gallery(request, project)
    if (definition := definition_of(project, start)) is not None:
        return JudgeEditor.of_new(request, project, definition, start).respond()
    of_gallery = start_of(start)
    start = of_gallery.text if of_gallery else ""
    return JudgeEditor.of_new(request, project, new_judge_metric(start), start).respond()


@login_required
def new_rules(request: HttpRequest, slug: str) -> HttpResponse:
    """A new rule metric."""
    project = access.get_project(request, slug, May.METRICS)
    return RuleEditor.of_new(request, project, new_rule_metric()).respond()


@login_required
def guided_rules(request: HttpRequest, slug: str) -> HttpResponse:
    """A guided form that builds a program from the fields of a version's references, for further editing."""
    project = access.get_project(request, slug, May.METRICS)
    version = samples.chosen_version(project, request.POST or request.GET)
    choices = guide(version) if version else None
    fields = field_rules(choices, request.POST) if choices else []
    aggregate = request.POST.get("aggregate", "")
    aggregate = aggregate if aggregate in AGGREGATES else "mean"
    if choices and "build" in request.POST:
        program = program_text(fields, aggregate, choices.form, reader_language())
        return RuleEditor.of_new(request, project, new_rule_metric(program)).render()
    context = {
        "guide": choices,
        "fields": fields,
        "aggregate": aggregate,
        "versions": samples.versions_offered(project),
        "functions": [
            (function.code, function.name.in_language(reader_language()), translated(function.help))
            for function in FUNCTIONS
        ],
        "aggregates": AGGREGATES,
    }
    return render(request, "metrics/rules_start.html", context)


@login_required
def edit(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Edit the newest version in the editor of its kind. Saving creates a new version."""
    row = get_metric(request, slug, metric)
    newest = selectors.newest_version(row)
    kind = RuleEditor if MetricDefinition.from_json(newest.definition).rules else JudgeEditor
    return kind.of_version(request, row, newest).respond()


@login_required
@require_POST
def preview(request: HttpRequest, slug: str, kind: type[EditorPage[Any]]) -> HttpResponse:
    """The preview of the current input, as a fragment."""
    return kind.of_fragment(request, access.get_project(request, slug, May.METRICS)).preview()


@login_required
@require_POST
def try_row(request: HttpRequest, slug: str, kind: type[EditorPage[Any]]) -> HttpResponseBase:
    """Call the judge model on the sample row. Nothing is stored."""
    return kind.of_fragment(request, access.get_project(request, slug, May.METRICS)).try_on_row()


@login_required
@require_POST
def past_replies(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Results of the parser in the form on replies in this metric's runs, as a fragment."""
    row = get_metric(request, slug, metric)
    page = JudgeEditor.of_version(request, row, selectors.newest_version(row))
    return render(request, "metrics/_past_replies.html", {"past": page.past_replies()})


# --- versions --------------------------------------------------------------------------------------------------


@login_required
@require_GET
def versions(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """All versions, newest first."""
    row = get_metric(request, slug, metric)
    notes = [note for notes_of in selectors.history_notes for note in notes_of(row)]
    context = {"metric": row, "versions": selectors.versions_of(row), "notes": notes}
    return render(request, "metrics/versions.html", context)


@login_required
@require_GET
def version(request: HttpRequest, slug: str, metric: int, number: int) -> HttpResponse:
    """One version of a metric."""
    row = get_metric_version(request, slug, metric, number)
    definition = MetricDefinition.from_json(row.definition)
    names = selectors.endpoint_names(row.metric.project_id)
    context = {
        "metric": row.metric,
        "version": row,
        "newest": selectors.newest_version(row.metric),
        "definition": definition,
        "gives": GIVES_NAMES.get(form_kind(definition), definition.kind),
        "steps": [_step(definition, step, names) for step in definition.steps],
    }
    return render(request, "metrics/version.html", context)


def _step(
    definition: MetricDefinition, step: Step, endpoints: dict[int, str]
) -> tuple[Script | None, JudgeModel | None, str]:
    """A step's script, or its judge model and endpoint; a rule program may have none."""
    if step.type in SCRIPT_KINDS:
        return definition.scripts[step.number], None, ""
    judge = definition.judges[step.number] if definition.judges else None
    return None, judge, endpoints.get(judge.endpoint or 0, "") if judge else ""


@login_required
@require_POST
def restore_version(request: HttpRequest, slug: str, metric: int, number: int) -> HttpResponse:
    """Restore an old version as a new one."""
    row = get_metric_version(request, slug, metric, number)
    restored = services.metric_restore_version(version=row, user=signed_in(request))
    sentence = _("Version %(old)s restored as version %(new)s.")
    messages.success(request, sentence % {"new": restored.number, "old": row.number})
    return redirect("metrics:edit", slug, row.metric_id)


@login_required
@require_GET
def compare(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Compare the versions `from` and `to`; by default the newest and the one before it."""
    row = get_metric(request, slug, metric)
    versions = list(selectors.versions_of(row))
    by_number = {str(version.number): version for version in versions}
    after = by_number.get(request.GET.get("to", ""), versions[0])
    earlier = versions[min(versions.index(after) + 1, len(versions) - 1)]
    before = by_number.get(request.GET.get("from", ""), earlier)
    definitions = [MetricDefinition.from_json(version.definition) for version in (before, after)]
    context = {
        "metric": row,
        "versions": versions,
        "before": before,
        "after": after,
        "parts": parts_of_definitions(row.project_id, *definitions),
    }
    return render(request, "metrics/compare.html", context)


# --- reference pages, rendered from docs/ -----------------------------------------------------------------------


@login_required
@require_GET
def reference(request: HttpRequest, slug: str, page: str) -> HttpResponse:
    """A reference page in the user's language, or in the one given by `in`. Links between pages stay in the app."""
    access.get_project(request, slug, May.METRICS)
    if page not in REFERENCE_PAGES:
        raise Http404

    def address_of(name: str) -> str:
        if name in REFERENCE_PAGES:
            return reverse("metrics:reference", args=[slug, name])
        return reverse("guide", args=[name])

    title, html = shown_guide(page, request.GET.get("in", ""), address_of)
    context = {"title": title, "html": html, "page": page}
    return render(request, "metrics/reference.html", context)
