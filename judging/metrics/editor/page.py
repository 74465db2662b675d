"""The metric editor: drafting, previewing and saving, shared by both kinds of metrics.

`EditorPage` implements the flow; subclasses implement the form and previews: `JudgeEditor` here, `RuleEditor` in
rule_editor.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from evalsite.access import signed_in
from evalsite.accounts.drafts import FormDraft, form_draft
from evalsite.accounts.models import Project
from evalsite.web.numbers import whole
from judging.core.builtin import BUILTINS, PAIR
from judging.core.gallery import gallery, start_of
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.replies import ParserError, make_parser
from judging.metrics import services
from judging.metrics.editor import samples, try_prompt
from judging.metrics.editor.forms import (
    MetricForms,
    judge_before,
    metric_forms,
    starting_definition,
    typed_definition,
)
from judging.metrics.editor.judge_forms import JudgeForm, parser_problem, parser_spec, written_parse
from judging.metrics.editor.preview import PromptPreview, definition_at, definition_before, prompt_preview
from judging.metrics.editor.scripts import ScriptRun, reply_history, with_script_change
from judging.metrics.editor.starting_points import metric_saved
from judging.metrics.editor.step_forms import ScriptForm, with_step_change
from judging.metrics.lint_views import template_lint_view
from judging.metrics.models import Metric, MetricVersion
from judging.rule_messages import reader_language

MAX_START = 96  # characters of a start in a draft's key


class EditorForm(Protocol):
    """The form interface that EditorPage requires."""

    @property
    def errors(self) -> Any: ...

    def is_valid(self) -> bool: ...

    def add_error(self, field: str | None, error: Any) -> None: ...

    def result(self) -> MetricDefinition:
        """The definition. Call only after is_valid."""
        ...


Form = TypeVar("Form", bound=EditorForm)


class EditorPage(ABC, Generic[Form]):
    """One request for the editor. `newest` is None for a new metric."""

    template: ClassVar[str]
    draft_form: ClassVar[str]  # accounts.drafts.FORMS
    previewing: ClassVar[tuple[str, ...]]  # names of buttons that don't save

    def __init__(
        self,
        request: HttpRequest,
        project: Project,
        before: MetricDefinition,
        metric: Metric | None = None,
        newest: MetricVersion | None = None,
        *,
        draft: FormDraft | None = None,
    ) -> None:
        self.request, self.project, self.before = request, project, before
        self.metric, self.newest = metric, newest
        self.draft = draft
        self.typed = self.changed(_typed(request, draft))

    @cached_property
    def form(self) -> Form:
        return self.make_form()

    @cached_property
    def last_version(self) -> int:
        """The version that the visitor previewed last, or that a link to a new metric names (`row_version`)."""
        return samples.last_version(self.request, self.project, self.typed or self.request.GET)

    @classmethod
    def of_version(cls, request: HttpRequest, metric: Metric, newest: MetricVersion) -> Self:
        """The editor of a stored metric, based on the version that the form started from."""
        draft = form_draft(request, metric.project, cls.draft_form, str(metric.pk))
        began = _typed(request, draft).get("began", str(newest.number))
        before = definition_at(metric.project, str(metric.pk), began)
        return cls(request, metric.project, before, metric, newest, draft=draft)

    @classmethod
    def of_new(
        cls, request: HttpRequest, project: Project, before: MetricDefinition, start: str = ""
    ) -> Self:
        """The editor of an unsaved metric. Each starting template has a separate draft."""
        draft = form_draft(request, project, cls.draft_form, _draft_key(start))
        return cls(request, project, before, draft=draft)

    @classmethod
    def of_fragment(cls, request: HttpRequest, project: Project) -> Self:
        """The editor for rendering a fragment of its page."""
        return cls(request, project, definition_before(project, request.POST))

    def changed(self, typed: QueryDict) -> QueryDict:
        """The form data after the action of the pressed button."""
        return typed

    @abstractmethod
    def make_form(self) -> Form: ...

    @abstractmethod
    def context(self) -> dict[str, Any]:
        """Additional template context of this kind of editor."""

    @abstractmethod
    def preview(self) -> HttpResponse:
        """Render the preview of the current input as a fragment."""

    @abstractmethod
    def try_on_row(self) -> HttpResponseBase:
        """Call the judge model on the sample row. Nothing is stored."""

    @property
    def wants_saving(self) -> bool:
        return self.request.method == "POST" and not any(name in self.typed for name in self.previewing)

    @property
    def seen(self) -> str:
        """The number of the newest version that the user has seen."""
        return self.typed.get("seen", str(self.newest.number) if self.newest else "")

    def respond(self) -> HttpResponse:
        """Save the input if requested and valid; otherwise render the page."""
        if not (self.wants_saving and self.form.is_valid()):
            return self.render()
        try:
            metric = self._save()
        except services.StaleEdit as stale:
            return self.render(stale=stale.newest)
        except ValidationError as error:
            self.form.add_error(None, error)
            return self.render()
        if self.draft is not None:
            self.draft.delete()
        address = reverse("metrics:edit", args=[self.project.slug, metric.pk])
        return redirect(f"{address}?saved=1")

    def _save(self) -> Metric:
        definition, user = self.form.result(), signed_in(self.request)
        if self.metric is None or self.newest is None:
            with transaction.atomic():
                created = services.metric_create(project=self.project, definition=definition, user=user)
                more = metric_saved(self.project, self.typed.get("start", ""), created, user)
            messages.success(self.request, _("“%(name)s” saved.") % {"name": created.name})
            if more:
                messages.info(self.request, more)
            return created
        saved = services.metric_edit(
            metric=self.metric, definition=definition, based_on=whole(self.seen) or 0, user=user
        )
        if saved.pk == self.newest.pk:
            messages.info(self.request, _("No changes, so no new version was saved."))
        else:
            sentence = _("Saved as version %(number)s. Earlier runs keep the version they were started with.")
            messages.success(self.request, sentence % {"number": saved.number})
        return self.metric

    def render(self, stale: MetricVersion | None = None) -> HttpResponse:
        failed = self.wants_saving and bool(self.form.errors)
        context = {
            "metric": self.metric,
            "saved": "saved" in self.request.GET,
            "newest": self.newest,
            "form": self.form,
            "began": self.typed.get("began", self.newest.number if self.newest else ""),
            "seen": stale.number if stale else self.seen,
            "stale": stale,
            "failed": failed,
            "draft": self.draft,
            **self.context(),
        }
        status = 409 if stale else 422 if failed else 200
        return render(self.request, self.template, context, status=status)


def _draft_key(start: str) -> str:
    """The key of a new metric's draft. A long start is cut and ends with a digest, since keys have a limit."""
    if len(start) > MAX_START:
        start = start[: MAX_START - 13] + "~" + hashlib.sha256(start.encode()).hexdigest()[:12]
    return f"new-{start}" if start else "new"


def _typed(request: HttpRequest, draft: FormDraft | None) -> QueryDict:
    """The submitted data, or else the draft's."""
    return request.POST or (draft and draft.data) or request.POST


class JudgeEditor(EditorPage[MetricForms]):
    """The editor of a metric scored by judge models."""

    draft_form = "metric"
    template = "metrics/edit.html"
    previewing = ("go", "look", "change", "read", "check", "try")

    def changed(self, typed: QueryDict) -> QueryDict:
        if "change" not in typed:
            return typed
        return with_script_change(with_step_change(typed, self.before))

    def make_form(self) -> MetricForms:
        """Create the forms. Preview buttons and drafts don't show errors for unfinished fields."""
        checked = self.request.method == "POST" and not any(
            name in self.typed for name in self.previewing if name != "try"
        )
        return metric_forms(self.typed or None, self.project, self.before, checked=checked)

    def context(self) -> dict[str, Any]:
        preview = prompt_preview(self.project, self.before, self.typed, self.last_version)
        return {
            "start": self.typed.get("start", self.request.GET.get("start", "")),
            "steps": shown_steps(self.form, preview),
            "preview": preview,
            "tried": try_prompt.tried_at_once(preview, self.form, every=self.typed["try"] == "all")
            if "try" in self.typed
            else None,
            "lint": template_lint_view(self.project, self.before, self.typed, check=True)
            if "check" in self.typed
            else None,
            "sample_reply": self.typed.get("sample_reply", ""),
            "past": self.past_replies(),
            "templates": templates(),
        }

    def preview(self) -> HttpResponse:
        forms = metric_forms(self.typed, self.project, self.before, checked=False)
        preview = prompt_preview(self.project, self.before, self.typed, self.last_version)
        context = {"preview": preview, "steps": shown_steps(forms, preview)}
        return render(self.request, "metrics/_preview_answer.html", context)

    def try_on_row(self) -> HttpResponseBase:
        """Stream the judge's reply."""
        preview = prompt_preview(self.project, self.before, self.typed, self.last_version)
        forms = metric_forms(self.typed, self.project, self.before)
        answer = StreamingHttpResponse(
            try_prompt.events(preview, forms, every="all" in self.request.GET),
            content_type="application/x-ndjson",
        )
        answer["Content-Encoding"] = "identity"  # compression would delay chunks
        answer["X-Accel-Buffering"] = "no"
        return answer

    def past_replies(self) -> PastReplies | None:
        """Try the submitted parser of the judge model number in `read` on replies in this metric's runs."""
        number = whole(self.typed.get("read", ""))
        if self.metric is None or number is None:
            return None
        prefix = f"judge-{number}-"
        kind, pattern = self.typed.get(f"{prefix}parse"), self.typed.get(f"{prefix}pattern", "")
        definition = msgspec.structs.replace(typed_definition(self.typed, self.before), name=self.metric.name)
        spec = parser_spec(kind or written_parse(judge_before(self.before, number), definition.kind), pattern)
        try:
            parser = make_parser(spec, definition.reading_of(JudgeModel(name="", template="", parse=spec)))
        except ParserError as error:
            return PastReplies(number, [], parser_problem(error))
        is_saved = number < len(self.before.judges)
        return PastReplies(
            number, reply_history[0].try_on_newest_runs(self.metric, number, parser) if is_saved else []
        )


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step of the form: a judge model, with its place among them from 0, or a script with its result on the row."""

    judge: JudgeForm | None
    script: ScriptForm | None
    run: ScriptRun | None
    place: int

    @property
    def number(self) -> int:
        return self.place + 1


def shown_steps(forms: MetricForms, preview: PromptPreview) -> list[ShownStep]:
    steps: list[ShownStep] = []
    place = 0
    for form in forms.chain:
        if isinstance(form, ScriptForm):
            steps.append(ShownStep(None, form, preview.scripts.get(form["source"].html_name), place))
        else:
            steps.append(ShownStep(form, None, None, place))
            place += 1
    return steps


@dataclass(frozen=True, slots=True)
class PastReplies:
    """Past replies of the form's judge model with this number, re-parsed; or the parser's error."""

    number: int
    replies: Sequence[Any]
    error: str = ""


def templates() -> list[tuple[str, str]]:
    """(name, label) of the built-in templates in the user's language."""
    language = reader_language()
    cards = ((f"{card.id}.{language}", card) for card in gallery().values())
    return [(name, card.name.text(language)) for name, card in cards if name in BUILTINS]


def new_judge_metric(start: str) -> MetricDefinition:
    """A new metric that starts from the gallery, or from scratch."""
    names = {
        "score": _("Quality"),
        "comparison": _("Against the reference"),
        "reference": _("Correctness"),
        "pass_fail": _("Solved"),
        "category": _("Kind of answer"),
        "checklist": _("Checklist"),
        PAIR: _("Better answer"),
    }
    of_gallery = start_of(start)
    if of_gallery is None:
        return starting_definition("", "")
    card = of_gallery.card
    builtin = BUILTINS.get(f"{card.id}.{of_gallery.language}")
    return starting_definition(start, names[builtin.kind] if builtin else card.name.text(reader_language()))
