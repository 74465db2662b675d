"""The list of metrics and the editor with its preview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import get_language, pgettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.models import Project
from evalsite.web.numbers import whole
from judging.core.builtin import BUILTINS, Builtin
from judging.core.pipeline import MetricDefinition
from judging.metrics import editing, selectors, services
from judging.metrics.access import get_metric
from judging.metrics.forms import MetricForms, metric_forms, starting_definition
from judging.metrics.judge_forms import with_change
from judging.metrics.lint_views import LintShown, lint_shown
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.recommending import with_script
from judging.metrics.rules import views as rule_views

_SHOWING = ("go", "look", "change", "read", "check")  # buttons that neither save nor ask that all be right
_LOOKING = (*_SHOWING, "try")  # buttons that save nothing


@login_required
@require_GET
def metrics(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's metrics, or those that were archived."""
    project = access.get_project(request, slug, May.METRICS)
    archived = request.GET.get("archived") == "1"
    context = {"lines": selectors.metrics_of(project, archived=archived), "archived": archived}
    return render(request, "metrics/list.html", context)


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """Choose a template to start from, then write."""
    project = access.get_project(request, slug, May.METRICS)
    start = request.POST.get("start", request.GET.get("start"))
    if start is None:
        return render(request, "metrics/start.html", {"starts": starts(), "language": _language()})
    before = starting_definition(start, start_name(start))
    page = EditorPage(request, project, before, start=start)
    if page.wants_saving and page.forms.is_valid():
        try:
            made = services.metric_create(
                project=project, definition=page.forms.result(), user=signed_in(request)
            )
        except ValidationError as error:
            page.forms.metric.add_error(None, error)
        else:
            messages.success(request, _("“%(name)s” is saved.") % {"name": made.name})
            return redirect("metrics:edit", slug, made.pk)
    return page.render()


@login_required
def edit(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """The newest version in the editor; saving makes a new one."""
    found = get_metric(request, slug, metric)
    newest = selectors.newest_version(found)
    if MetricDefinition.from_json(newest.definition).rules:
        return rule_views.edit(request, found, newest)
    began = request.POST.get("began", str(newest.number))
    before = editing.definition_at(found.project, str(found.pk), began)
    page = EditorPage(request, found.project, before, metric=found, newest=newest)
    if page.wants_saving and page.forms.is_valid():
        try:
            saved = services.metric_edit(
                metric=found,
                definition=page.forms.result(),
                based_on=whole(page.seen) or 0,
                user=signed_in(request),
            )
        except services.StaleEdit as stale:
            return page.render(stale=stale.newest)
        except ValidationError as error:
            page.forms.metric.add_error(None, error)
        else:
            rule_views.tell_saved(request, newest, saved)
            return redirect("metrics:edit", slug, found.pk)
    return page.render()


@dataclass
class EditorPage:
    """One request for the editor: its forms, what is previewed, and how it is shown."""

    request: HttpRequest
    project: Project
    before: MetricDefinition
    start: str = ""
    metric: Metric | None = None
    newest: MetricVersion | None = None

    def __post_init__(self) -> None:
        self.typed: QueryDict = self.request.POST
        if "change" in self.typed:
            self.typed = with_script(with_change(self.typed, len(self.before.judges)))
        checked = not any(name in self.typed for name in _SHOWING)
        self.forms: MetricForms = metric_forms(self.typed or None, self.project, self.before, checked=checked)

    @property
    def wants_saving(self) -> bool:
        return self.request.method == "POST" and not any(name in self.typed for name in _LOOKING)

    @property
    def seen(self) -> str:
        """The newest version that the visitor knows of."""
        return self.typed.get("seen", str(self.newest.number) if self.newest else "")

    def render(self, stale: MetricVersion | None = None) -> HttpResponse:
        look = editing.look(self.project, self.before, self.typed)
        tried = editing.tried_at_once(look, self.forms) if "try" in self.typed else None
        failed = self.wants_saving and self.forms.has_errors
        context: dict[str, Any] = {
            "metric": self.metric,
            "newest": self.newest,
            "forms": self.forms,
            "start": self.start,
            "began": self.typed.get("began", self.newest.number if self.newest else ""),
            "seen": stale.number if stale else self.seen,
            "stale": stale,
            "look": look,
            "tried": tried,
            "sample_reply": self.typed.get("sample_reply", ""),
            "lint": self._lint(),
            "past": editing.past_replies(self.metric, self.before, self.typed),
            "failed": failed,
            "templates": [(one.name, template_label(one)) for one in starts()],
        }
        return render(
            self.request, "metrics/edit.html", context, status=409 if stale else 422 if failed else 200
        )

    def _lint(self) -> LintShown | None:
        """Only where it is asked for: the page itself need not wait for all rows."""
        check = "check" in self.typed
        return lint_shown(self.project, self.before, self.typed, check=True) if check else None


@login_required
@require_POST
def preview(request: HttpRequest, slug: str) -> HttpResponse:
    """The preview of what is typed, as a fragment."""
    project = access.get_project(request, slug, May.METRICS)
    before = _before(request, project)
    look = editing.look(project, before, request.POST)
    judges = metric_forms(request.POST, project, before, checked=False).judges
    return render(request, "metrics/_preview_answer.html", {"look": look, "judges": judges})


@login_required
@require_POST
def past_replies(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """What the way of reading that is typed makes of replies to this metric's runs, as a fragment."""
    found = get_metric(request, slug, metric)
    past = editing.past_replies(found, _before(request, found.project), request.POST)
    return render(request, "metrics/_past_replies.html", {"past": past})


@login_required
@require_POST
def try_row(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The prompt on this row sent to the judge model; its reply is streamed, nothing is stored."""
    project = access.get_project(request, slug, May.METRICS)
    before = _before(request, project)
    look = editing.look(project, before, request.POST)
    forms = metric_forms(request.POST, project, before)
    answer = StreamingHttpResponse(editing.events(look, forms), content_type="application/x-ndjson")
    answer["Content-Encoding"] = "identity"  # compressing would hold pieces back
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


def _before(request: HttpRequest, project: Project) -> MetricDefinition:
    typed = request.POST
    return editing.definition_at(
        project, typed.get("metric", ""), typed.get("began", ""), typed.get("start", "")
    )


def starts() -> list[Builtin]:
    """The built-in templates in the reader's language."""
    return [builtin for builtin in BUILTINS.values() if builtin.language == _language()]


def template_label(builtin: Builtin) -> str:
    """What a built-in template is called in a list."""
    kinds = {
        "score": pgettext("template", "Score"),
        "comparison": _("Compare with the reference"),
        "reference": _("Score against the reference"),
    }
    turns = _("single turn") if builtin.name.startswith("single_turn") else _("multi-turn")
    return f"{kinds[builtin.kind]} · {turns}"


def start_name(start: str) -> str:
    """What a metric that starts from a built-in template is called at first."""
    names = {"score": _("Quality"), "comparison": _("Against the reference"), "reference": _("Correctness")}
    return names[BUILTINS[start].kind] if start in BUILTINS else ""


def _language() -> str:
    return "zh" if (get_language() or "").startswith("zh") else "en"
