"""The editor of rule metrics: beginning, writing, looking while one types, all references, the reference page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.models import Project
from evalsite.web.numbers import whole
from judging.core.pipeline import MetricDefinition
from judging.core.rules import words
from judging.core.rules.functions import FUNCTIONS
from judging.metrics import editing, samples, services
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.recommending import with_script
from judging.metrics.rules.forms import RuleForm, new_rules
from judging.metrics.rules.guiding import chosen_lines, field_rules, guide, program_text
from judging.metrics.rules.lint_shown import lint_shown
from judging.metrics.rules.looking import look
from judging.metrics.rules.trying import try_line
from judging.rule_messages import ARGUMENTS, HELP, spoken

_LOOKING = ("go", "look", "change", "try")
BLANK = {
    "zh": "# DSL\n@全部字段:精确匹配\n@聚合方式:mean\n@格式限制:JSON\n",
    "en": "# DSL\n@all:exact_match\n@aggregate:mean\n@format:JSON\n",
}


@login_required
def start(request: HttpRequest, slug: str) -> HttpResponse:
    """A guided form: from the fields of a version's references to a program, which is then edited."""
    project = access.get_project(request, slug, May.METRICS)
    typed = request.POST or request.GET
    version = samples.chosen_version(project, {name: str(typed[name]) for name in typed})
    found = guide(version) if version else None
    fields = field_rules(found, request.POST) if found else []
    aggregate = request.POST.get("aggregate", "")
    aggregate = aggregate if aggregate in words.AGGREGATES else "mean"
    if found and "build" in request.POST:
        program = program_text(chosen_lines(fields, spoken()), aggregate, found.form, spoken())
        return EditorPage(request, project, new_rules(program, _("Fields"))).render()
    context = {
        "guide": found,
        "fields": fields,
        "aggregate": aggregate,
        "versions": samples.versions_offered(project),
        "functions": [(one.code, one.name.in_language(spoken()), HELP[one.code]) for one in FUNCTIONS],
        "aggregates": words.AGGREGATES,
    }
    return render(request, "metrics/rules_start.html", context)


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """A new rule metric."""
    project = access.get_project(request, slug, May.METRICS)
    page = EditorPage(request, project, new_rules(BLANK[spoken()], _("Fields")))
    if page.wants_saving and page.form.is_valid():
        try:
            made = services.metric_create(
                project=project, definition=page.form.result(), user=signed_in(request)
            )
        except ValidationError as error:
            page.form.add_error(None, error)
        else:
            messages.success(request, _("“%(name)s” is saved.") % {"name": made.name})
            return redirect("metrics:edit", slug, made.pk)
    return page.render()


def edit(request: HttpRequest, found: Metric, newest: MetricVersion) -> HttpResponse:
    """The newest version of a rule metric in the editor; `found` was got through the metrics' door."""
    began = request.POST.get("began", str(newest.number))
    before = editing.definition_at(found.project, str(found.pk), began)
    page = EditorPage(request, found.project, before, metric=found, newest=newest)
    if page.wants_saving and page.form.is_valid():
        try:
            saved = services.metric_edit(
                metric=found,
                definition=page.form.result(),
                based_on=whole(page.seen) or 0,
                user=signed_in(request),
            )
        except services.StaleEdit as stale:
            return page.render(stale=stale.newest)
        except ValidationError as error:
            page.form.add_error(None, error)
        else:
            tell_saved(request, newest, saved)
            return redirect("metrics:edit", found.project.slug, found.pk)
    return page.render()


def tell_saved(request: HttpRequest, before: MetricVersion, saved: MetricVersion) -> None:
    """In a notice: a new version, or that nothing had changed."""
    if saved.pk == before.pk:
        messages.info(request, _("Nothing had changed, so there is no new version."))
    else:
        sentence = _("Saved as version %(number)s. Runs that used an earlier one keep it.")
        messages.success(request, sentence % {"number": saved.number})


@dataclass
class EditorPage:
    """One request for the editor of rules."""

    request: HttpRequest
    project: Project
    before: MetricDefinition
    metric: Metric | None = None
    newest: MetricVersion | None = None

    def __post_init__(self) -> None:
        post = with_script(self.request.POST)
        self.typed = post if "rules" in post else None  # the guided form sends something else
        self.form = RuleForm(self.typed, project=self.project, before=self.before)

    @property
    def wants_saving(self) -> bool:
        return self.typed is not None and not any(name in self.typed for name in _LOOKING)

    @property
    def seen(self) -> str:
        """The newest version that the visitor knows of."""
        number = str(self.newest.number) if self.newest else ""
        return self.typed.get("seen", number) if self.typed else number

    def render(self, stale: MetricVersion | None = None) -> HttpResponse:
        failed = self.wants_saving and bool(self.form.errors)
        shown = look(self.project, self.before, self.typed or self.request.POST)
        tried = (
            try_line(shown, self.form, self.typed.get("try", ""))
            if self.typed and "try" in self.typed
            else None
        )
        context: dict[str, Any] = {
            "metric": self.metric,
            "newest": self.newest,
            "form": self.form,
            "began": self.newest.number if self.newest else "",
            "seen": stale.number if stale else self.seen,
            "stale": stale,
            "look": shown,
            "tried": tried,
            "failed": failed,
            "functions": [(one, HELP[one.code], ARGUMENTS[one.argument]) for one in FUNCTIONS],
            "spoken": spoken(),
        }
        status = 409 if stale else 422 if failed else 200
        return render(self.request, "metrics/rules_edit.html", context, status=status)


@login_required
@require_POST
def looked(request: HttpRequest, slug: str) -> HttpResponse:
    """Errors, the sample row and the counts for what is typed, as a fragment."""
    project = access.get_project(request, slug, May.METRICS)
    context = {"look": look(project, MetricDefinition(name=""), request.POST)}
    return render(request, "metrics/_rules_look.html", context)


@login_required
@require_POST
def try_row(request: HttpRequest, slug: str) -> HttpResponse:
    """The judge model asked about one line on the sample row, as a fragment; nothing is stored."""
    project = access.get_project(request, slug, May.METRICS)
    typed = request.POST
    before = editing.definition_at(project, typed.get("metric", ""), typed.get("began", ""))
    form = RuleForm(typed, project=project, before=before)
    tried = try_line(look(project, before, typed), form, typed.get("try", ""))
    return render(request, "metrics/_trial.html", {"tried": tried})


@login_required
@require_POST
def lint(request: HttpRequest, slug: str) -> HttpResponse:
    """The typed program held against all references of the chosen version, as a fragment.

    With `check` a large version is looked through too, by a worker, while the page asks again.
    """
    project = access.get_project(request, slug, May.METRICS)
    shown = lint_shown(project, request.POST, check="check" in request.POST)
    return render(request, "metrics/_rules_lint.html", {"lint": shown})
