"""Runs: the list, a new one, the page of one while it works and after, and what steers it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from datasets.models import Version
from datasets.selectors import usable_versions
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project, User
from judging.messages import reason_sentence
from judging.reports.shown import report_shown
from judging.runs import selectors, services
from judging.runs.access import get_run
from judging.runs.filters import Filters, reasons
from judging.runs.forms import RunForm
from judging.runs.models import JudgementState, Run


@login_required
def runs(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's runs, newest first."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    before = _number(request, "before", int)
    found, further = selectors.runs_page(project, before)
    return render(request, "runs/list.html", {"runs": found, "further": further, "before": before})


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form of a new run; what it would cost is worked out again with every choice."""
    project = access.get_project(request, slug, May.RUN)
    versions = usable_versions(project)
    version = _chosen_version(request, project)
    choices = selectors.metric_choices(project)
    context: dict[str, Any] = {"version": version, "versions": versions, "choices": choices}
    context["unusable"] = selectors.unusable_versions(project)
    if version is None or not choices:
        return render(request, "runs/new.html", context)
    form = RunForm(
        _sent(request),
        versions=versions,
        version=version,
        choices=choices,
        name=services.free_name(project, version.dataset.name),
    )
    context |= {"form": form, "cost": _cost(form, version)}
    if request.htmx and "part" in request.GET:  # type: ignore[attr-defined]
        return render(request, "runs/_cost.html", context)
    if request.method == "POST" and form.is_valid():
        run = _start(request, project, form)
        if run is not None:
            return redirect("runs:detail", slug, run.pk)
    return render(request, "runs/new.html", context, status=422 if request.method == "POST" else 200)


def _sent(request: HttpRequest) -> Any:
    if request.method == "POST":
        return request.POST
    return request.GET if "part" in request.GET else None


def _chosen_version(request: HttpRequest, project: Project) -> Version | None:
    """The version that the address or the form names, or the newest usable one."""
    usable = usable_versions(project)
    wanted = _number(request, "version", int)
    return (usable.filter(pk=wanted).first() if wanted is not None else None) or usable.first()


def _cost(form: RunForm, version: Version) -> selectors.Cost:
    """Of what is chosen so far; of what is proposed before anything is."""
    if not form.is_bound:
        candidates, metrics = form.initial["candidates"], [form.choices[pk] for pk in form.initial["metrics"]]
        return selectors.cost_of(version, candidates, metrics, None)
    form.is_valid()
    sent = form.cleaned_data
    metrics = [form.choices[pk] for pk in sent.get("metrics", [])]
    return selectors.cost_of(version, list(sent.get("candidates", [])), metrics, sent.get("sample_size"))


def _start(request: HttpRequest, project: Project, form: RunForm) -> Run | None:
    """The run, or None with the reason on the form. The same form sent twice is the same run."""
    sent = form.cleaned_data
    user = request.user
    assert isinstance(user, User)
    same = {"version": sent["version"], "sample_size": sent["sample_size"], "seed": sent["seed"]}
    try:
        return services.run_create(
            project=project,
            name=sent["name"],
            candidates=list(sent["candidates"]),
            metrics=[services.ChosenMetric(one.definition, one.version) for one in form.chosen_metrics()],
            user=user,
            **same,
        )
    except IntegrityError:
        earlier = Run.objects.filter(project=project, name=sent["name"], created_by=user, **same).first()
        if earlier is None:
            form.add_error("name", _("There is a run with this name already. Choose another."))
        return earlier
    except ValidationError as error:
        form.add_error(None, error)
        return None


@login_required
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One run: how far it is, what went wrong, what it judges by. While it works the page asks every second."""
    run = get_run(request, slug, pk)
    polled = bool(request.htmx) and "seen" in request.GET  # type: ignore[attr-defined]
    if polled and request.GET["seen"] != run.state:
        response = HttpResponse()
        response["HX-Refresh"] = "true"  # other buttons, other sections: the page is drawn anew, once
        return response
    context = _progress(request, run)
    if polled:
        return render(request, "runs/_progress.html", context)
    if run.ended and run.scored:
        context["report"] = report_shown(run)
    context["metrics"] = selectors.frozen_metrics(run)
    context["candidates"] = [one.candidate for one in run.run_candidates.select_related("candidate")]
    return render(request, "runs/detail.html", context)


def _progress(request: HttpRequest, run: Run) -> dict[str, Any]:
    progress = selectors.progress_of(
        run,
        done_before=_number(request, "done", int),
        at_before=_number(request, "at", float),
        rate_before=_number(request, "rate", float),
    )
    return {
        "run": run,
        "progress": progress,
        "problem": reason_sentence(run.problem, run.problem_detail) if run.problem else "",
        "worker_missing": selectors.worker_missing(run),
        "reasons": [
            {
                "state": state,
                "code": code,
                "sentence": reason_sentence(code),
                "count": count,
                "query": Filters(state=state, reason=code).query(),
            }
            for state, code, count in reasons(run)
        ],
    }


def _number(request: HttpRequest, name: str, kind: type[int] | type[float]) -> Any:
    """A number that the address or the form names; None for nonsense."""
    sent = request.POST if request.method == "POST" else request.GET
    try:
        return kind(sent[name])
    except (KeyError, ValueError):
        return None


@login_required
@require_POST
def pause(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Ask no further for now."""
    run = get_run(request, slug, pk, May.RUN)
    if services.run_pause(run):
        messages.success(
            request, _("Paused. Replies that are under way are still stored; nothing new is asked.")
        )
    else:
        messages.info(request, _("The run is not running, so there was nothing to pause."))
    return redirect("runs:detail", slug, pk)


@login_required
@require_POST
def resume(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Go on with a paused or cancelled run."""
    run = get_run(request, slug, pk, May.RUN)
    if not services.run_resume(run):
        messages.info(request, _("The run is neither paused nor cancelled."))
    return redirect("runs:detail", slug, pk)


@login_required
@require_POST
def cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """End a run early."""
    run = get_run(request, slug, pk, May.RUN)
    if services.run_cancel(run):
        messages.success(
            request, _("Cancelled. What was judged is kept; the rest is not run, and can be taken up again.")
        )
    else:
        messages.info(request, _("The run had ended already."))
    return redirect("runs:detail", slug, pk)


@login_required
@require_POST
def retry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Ask again where it failed; with `state` also, or only, where the reply could not be read."""
    run = get_run(request, slug, pk, May.RUN)
    made = services.run_retry(run, tuple(request.POST.getlist("state")) or (JudgementState.ERROR,))
    if made:
        text = ngettext(
            "%(n)s new attempt is made; the old one is kept.",
            "%(n)s new attempts are made; the old ones are kept.",
            made,
        )
        messages.success(request, text % {"n": made})
    else:
        messages.info(request, _("There is nothing to try again, or the run is still under way."))
    return redirect("runs:detail", slug, pk)
