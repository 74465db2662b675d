"""A new human evaluation."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from datasets.models import Candidate, Version
from datasets.selectors import models_in_column, usable_versions
from evalsite import access
from evalsite.access import May
from evalsite.accounts.drafts import form_draft
from evalsite.accounts.models import Project
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from judging.core.people.criteria import Scale
from judging.filters.filter_form import FilterForm
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.people.blindness import HIDEABLE, Blindness, blindness
from judging.people.forms import (
    CriteriaForms,
    EvaluationForm,
    proposed_criteria,
    refuse_model_names,
)
from judging.people.models import Evaluation, Scheme
from judging.people.presets import (
    candidates_of,
    criteria_of_run,
    instructions_of_run,
    presets_of,
    presets_of_run,
    preview,
)
from judging.people.services import evaluation_create
from judging.records.access import get_run
from judging.records.models import Run
from judging.runs.forms import create_once
from judging.runs.selectors import unusable_versions
from judging.runs.views import chosen_version

_PREFIX = "criteria"
_PARTS = {"criteria": "_criteria_forms", "sides": "_side_names"}


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form for a new evaluation; a preview shows the current selection as raters will see it."""
    project = access.get_project(request, slug, May.RUN)
    versions = usable_versions(project)
    about = _run_named(request, slug)
    version = about.version if about else chosen_version(request, project, "evaluation")
    context: dict[str, Any] = {
        "about": about,
        "versions": versions,
        "version": version,
        "unusable": unusable_versions(project),
    }
    if version is None:
        return render(request, "people/new.html", context)
    if about and not criteria_of_run(about):
        messages.error(request, _("People cannot rate on the scales of this run's metrics."))
        return redirect("runs:detail", slug, about.pk)
    version.dataset.project = project
    draft = form_draft(
        request, project, "evaluation", f"run-{about.pk}" if about else f"version-{version.pk}"
    )
    form, criteria = _forms(request, version, about, draft.data)
    if form is None:
        return render(request, "people/new.html", context)
    if draft.data is not None:
        for filled in (form, *criteria):
            filled.errors.clear()  # a draft: not complete yet
    context |= {"draft": draft, "form": form, "criteria": criteria, "shown": _preview(form, version)}
    context["blind"] = _blindness(form, version)
    instructions = instructions_of_run(about) if about else {}
    for criterion_form in criteria:
        criterion_form.instruction = instructions.get(criterion_form["name"].value(), "")
    context["models_in_column"] = [] if about else models_in_column(version)
    context["candidates"] = form.fields["candidates"].queryset  # type: ignore[attr-defined]
    if part_wanted(request) and "part" in request.GET:
        part = _PARTS.get(request.GET["part"], "_preview")
        return render(request, f"people/{part}.html", context)
    sent = request.method == "POST" and "more" not in request.POST and "choose" not in request.POST
    if sent and _valid(form, criteria):
        evaluation = _create(request, project, form, criteria)
        if evaluation is not None:
            draft.delete()
            return redirect("people:detail", slug, evaluation.run_id)
    return render(request, "people/new.html", context, status=422 if sent else 200)


def _run_named(request: HttpRequest, slug: str) -> Run | None:
    """The run whose answers are to be drawn; None if the form starts from a data set."""
    sent = request.POST if request.method == "POST" else request.GET
    if not sent.get("run"):
        return None
    run = get_run(request, slug, whole(sent["run"]) or 0)
    if run.by_people:
        raise Http404
    return run


def _filters(request: HttpRequest, about: Run | None) -> Filters:
    """Filters for the run's answers: `filter` is the query string of a list of its judgements."""
    sent = request.POST if request.method == "POST" else request.GET
    if about is None or not sent.get("filter"):
        return ANYTHING
    return FilterForm(QueryDict(sent["filter"]), about).filters


def _forms(
    request: HttpRequest, version: Version, about: Run | None, draft: QueryDict | None
) -> tuple[EvaluationForm | None, Any]:
    """The two forms; None if the version has nothing to rate."""
    offered = presets_of_run() if about else presets_of(version)
    if not offered:
        return None, None
    sent: QueryDict | None = request.POST if request.method == "POST" else draft
    if sent is None and "part" in request.GET:
        sent = request.GET
    form = EvaluationForm(
        sent,
        version=version,
        offered=offered,
        about=about,
        filters=_filters(request, about),
    )
    return form, _criteria(sent, form, about)


def _criteria(sent: QueryDict | None, form: EvaluationForm, about: Run | None) -> Any:
    """The submitted criteria, plus an empty one if requested."""
    scale = form.proposes
    if sent is None or f"{_PREFIX}-TOTAL_FORMS" not in sent:
        return CriteriaForms(prefix=_PREFIX, initial=proposed_criteria(scale, about))
    others = {offer.proposes for offer in form.offered.values()} - {scale}
    if sent.get("part") == "criteria" and any(_as_proposed(sent, other, about) for other in others):
        return CriteriaForms(prefix=_PREFIX, initial=proposed_criteria(scale, about))
    total = str(sent[f"{_PREFIX}-TOTAL_FORMS"])
    if "more" in sent and total.isdecimal() and len(total) == 1:
        sent = sent.copy()
        sent[f"{_PREFIX}-TOTAL_FORMS"] = str(int(total) + 1)
        sent[f"{_PREFIX}-{total}-required"] = "on"
        sent[f"{_PREFIX}-{total}-scale"] = scale
    return CriteriaForms(sent, prefix=_PREFIX)


def _as_proposed(sent: QueryDict, scale: Scale, about: Run | None) -> bool:
    """Whether the criteria are still the proposed ones with this scale."""
    proposed = proposed_criteria(scale, about)
    fields = ("name", "scale", "categories", "guideline")
    typed = [
        [sent.get(f"{_PREFIX}-{place}-{field}", "").replace("\r\n", "\n") for field in fields]
        for place in range(len(proposed))
    ]
    expected = [[str(criterion.get(field) or "") for field in fields] for criterion in proposed]
    return sent.get(f"{_PREFIX}-TOTAL_FORMS") == str(len(proposed)) and typed == expected


def _valid(form: EvaluationForm, criteria: Any) -> bool:
    if not (form.is_valid() and criteria.is_valid()):
        return False
    names = form.names()
    for criterion_form in criteria:
        refuse_model_names(criterion_form, names)
    return bool(criteria.is_valid())


def _preview(form: EvaluationForm, version: Version) -> Any:
    """An item as raters will see it; with proposed settings before anything is chosen."""
    if form.is_bound:
        form.is_valid()
    sent = form.cleaned_data if form.is_bound else form.initial
    chosen: list[Candidate] = list(sent.get("candidates") or candidates_of(version))
    return preview(
        version,
        form.chosen_kind,
        chosen,
        baseline=sent.get("baseline"),
        other=sent.get("other_version"),
        with_reference=bool(sent.get("shows_reference")),
        hides=sent.get("hidden_roles") or (),
    )


def _blindness(form: EvaluationForm, version: Version) -> Blindness:
    """Texts that may reveal the rated model; the form offers to hide the roles that occur."""
    sent = form.cleaned_data if form.is_bound else form.initial
    other = sent.get("other_version") if form.chosen_kind == Scheme.VERSIONS else None
    revealing = blindness(
        [version, other] if other else [version], form.names(), sent.get("hidden_roles") or ()
    )
    form.fields["hidden_roles"].widget.choices = [(role, HIDEABLE[role]) for role in revealing.roles]
    return revealing


def _create(request: HttpRequest, project: Project, form: EvaluationForm, criteria: Any) -> Evaluation | None:
    """Create the evaluation; None if the form has errors. Submitting the same form twice creates one."""
    sent, user = form.cleaned_data, access.signed_in(request)
    mine = Evaluation.objects.filter(run__project=project, run__name=sent["name"], run__created_by=user)
    return create_once(
        form,
        lambda: evaluation_create(
            project=project,
            name=sent["name"],
            choice=form.choice(),
            criteria=[
                criterion_form.criterion()
                for criterion_form in criteria
                if criterion_form.cleaned_data["name"]
            ],
            raters=list(sent["raters"]),
            user=user,
            terms=form.terms(),
        ),
        lambda: mine.filter(seed=sent["seed"], run__version=form.version).first(),
    )
