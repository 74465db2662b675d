"""Run views: the list, the form for a new run, the run page, and actions on a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from datasets.models import Version
from datasets.selectors import usable_versions
from datasets.versions.run_answers import version_of_answers
from evalsite import access, archiving
from evalsite.access import May
from evalsite.accounts.drafts import form_draft, newest_draft
from evalsite.accounts.models import Project
from evalsite.audit import Action
from evalsite.names import join_sentences
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from judging.endpoints import connection_test
from judging.endpoints.selectors import endpoints_of
from judging.engine import stopping
from judging.engine.budget import spent_out
from judging.engine.candidates import generating_candidates, source_of
from judging.filters.counts import common_details, counts_in_force, counts_of_runs, failed_answers, reasons
from judging.filters.judgement_filter import Filters
from judging.messages import localized, reason_sentence, why_no_answer
from judging.records.access import get_run
from judging.records.models import PEOPLE, JudgementState, Run
from judging.records.servers import server_changes
from judging.runs import selectors, services
from judging.runs.endpoint_outages import endpoint_states, endpoint_to_fix, failing, nothing_answers
from judging.runs.forms import RunForm, create_once, raise_budget_form
from judging.runs.preflight import lint_notes, preflight, unverified_endpoints
from judging.runs.selectors import money_of


@login_required
def runs(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's runs, newest first; with ?archived=1 the archived ones."""
    project = access.get_project(request, slug, May.READ_JUDGEMENTS)
    archived, before = "archived" in request.GET, whole(request.GET.get("before", ""))
    page, further = selectors.runs_page(project, before, archived=archived)
    obstacle = selectors.workers_missing(run for run in page if not run.only_worker)
    counted = counts_of_runs(page)
    context = {
        "runs": counted,
        "further": further,
        "before": before,
        "archived": archived,
        "worker_missing": obstacle,
    }
    return render(request, "runs/list.html", context)


@login_required
def new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form for a new run. The cost estimate is updated with every change."""
    project = access.get_project(request, slug, May.RUN)
    versions = usable_versions(project)
    version = chosen_version(request, project, "run")
    choices = selectors.metric_choices(project)
    context: dict[str, Any] = {"version": version, "versions": versions, "choices": choices}
    context["unusable"] = selectors.unusable_versions(project)
    if version is None or not choices:
        return render(request, "runs/new.html", context)
    metric = request.GET.get("metric", "")
    draft = form_draft(request, project, "run", f"version-{version.pk}")
    if draft.data is not None and metric and metric not in draft.data.getlist("metrics"):
        draft = replace(draft, data=None)  # a link to this metric leads to it, whatever was typed for others
    form = RunForm(
        draft.data or _sent(request),
        versions=versions,
        version=version,
        choices=choices,
        metric=metric,
        endpoints=endpoints_of(project),
    )
    valid = form.is_valid()
    chosen = form.chosen()
    cost = selectors.cost_of(
        version, chosen.candidates, chosen.metrics, chosen.sample_size, chosen.candidate_models
    )
    if draft.data is not None:
        form.forget_errors()
    name = services.proposed_name(project, version, [metric.definition for metric in chosen.metrics])
    form.initial["name"] = name
    context |= {
        "draft": draft,
        "proposed_name": name,
        "form": form,
        "cost": cost,
        "notes": lint_notes(version, chosen.metrics),
    }
    context["preflight"] = preflight(
        version, chosen.metrics, cost, chosen.candidate_models, batched=chosen.batched
    )
    unverified = unverified_endpoints(chosen.metrics, chosen.candidate_models)
    context["unverified"] = [(endpoint, connection_test.last_result(endpoint)) for endpoint in unverified]
    if part_wanted(request) and "part" in request.GET:
        return render(request, "runs/_cost.html", context)
    if request.method == "POST" and valid:
        run = _start(request, project, form)
        if run is not None:
            draft.delete()
            return redirect("runs:detail", slug, run.pk)
    return render(request, "runs/new.html", context, status=422 if request.method == "POST" else 200)


def _sent(request: HttpRequest) -> Any:
    if request.method == "POST":
        return request.POST
    return request.GET if "part" in request.GET else None


def chosen_version(request: HttpRequest, project: Project, form: str) -> Version | None:
    """The version named in the query string or form, else the one of the form's last draft, else the newest usable
    one."""
    usable = usable_versions(project)
    number = whole((request.POST if request.method == "POST" else request.GET).get("version", ""))
    if number is None and (draft := newest_draft(access.signed_in(request), project, form)):
        number = whole(QueryDict(draft.data).get("version", ""))
    return usable.filter(pk=number or 0).first() or usable.first()


def _start(request: HttpRequest, project: Project, form: RunForm) -> Run | None:
    """Create the run, or return None with errors on the form. Submitting the same form twice creates one run."""
    sent, chosen, user = form.cleaned_data, form.chosen(), access.signed_in(request)
    same = {"version": sent["version"], "sample_size": sent["sample_size"], "seed": sent["seed"]}
    return create_once(
        form,
        lambda: services.run_create(
            project=project,
            name=sent["name"],
            candidates=chosen.candidates,
            metrics=[services.ChosenMetric(choice.definition, choice.version) for choice in chosen.metrics],
            user=user,
            options=form.options(),
            candidate_models=chosen.candidate_models,
            **same,
        ),
        lambda: Run.objects.filter(project=project, name=sent["name"], created_by=user, **same).first(),
    )


@login_required
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A run's page: progress, problems and metrics. The page polls every second until the run has ended."""
    run = get_run(request, slug, pk)
    if run.kind == PEOPLE:
        return redirect("people:detail", slug, pk)
    polled = part_wanted(request) and "seen" in request.GET
    if polled and request.GET["seen"] != run.state:
        return HttpResponseClientRefresh()  # buttons and sections change
    selectors.prefetch_metrics(run)
    context = _progress(request, run)
    if polled:
        return render(request, "runs/_progress.html", context)
    context["metrics"] = selectors.frozen_metrics(run)
    if run.imported:
        context["imported"] = selectors.imported_facts[0](run)
    context["server_changes"] = server_changes(run)
    context["further_rows"] = run.version.valid_rows - run.rows
    context["further"] = context["further_rows"] * run.total // max(1, run.rows)
    context["candidates"] = [
        run_candidate.candidate
        for run_candidate in run.run_candidates.select_related("candidate").order_by("candidate__name")
    ]
    return render(request, "runs/detail.html", context)


def _progress(request: HttpRequest, run: Run) -> dict[str, Any]:
    progress = selectors.progress_of(
        run,
        done_before=_number(request, "done", int),
        at_before=_number(request, "at", float),
        rate_before=_number(request, "rate", float),
    )
    worker_missing = selectors.worker_missing(run)
    states = [] if worker_missing else endpoint_states(run)  # without a worker, endpoints are not called
    problem = run.problem or spent_out(run)
    return {
        "run": run,
        "progress": replace(progress, left=None) if any(state.is_down for state in states) else progress,
        "counts": counts_in_force(run),
        "batches": selectors.batches_of(run),
        "problem": reason_sentence(problem, run.problem_detail) if problem else "",
        "worker_missing": worker_missing,
        "failing": failing(states),
        "waiting_for_server": nothing_answers(states),
        "raising": raise_budget_form(run) if problem.startswith("budget_") else None,
        "endpoint_to_fix": endpoint_to_fix(run),
        "set_aside": stopping.is_set_aside(run),
        "money": money_of(run),
        "reasons": _reasons(run),
        "generating": generating_candidates(run),
    }


def _reasons(run: Run) -> list[dict[str, Any]]:
    """Reasons for missing scores, with the most frequent detail, for example the name that was undefined."""
    details, entries = common_details(run), []
    for state, code, count in reasons(run):
        failures = _failed_answers(run) if code == "answer_failed" else []
        has_details = state == JudgementState.ERROR and not failures
        entries.append(
            {
                "state": state,
                "code": code,
                "sentence": reason_sentence(code, shown_in="rules" if has_details else "run"),
                "detail": _detail_text(code, details.get(code, ("", 0))[0]) if has_details else "",
                "failures": failures,
                "count": count,
                "query": Filters(state=state, reason=code).query(),
            }
        )
    return entries


def _failed_answers(run: Run) -> list[tuple[str, int]]:
    """The ways in which answers failed, if there is more than one."""
    failures = failed_answers(run)
    return [(why_no_answer(code), count) for code, count in failures] if len(failures) > 1 else []


def _detail_text(code: str, detail: str) -> str:
    return why_no_answer(detail)[:500] if code == "answer_failed" and detail else localized(detail)[:300]


def _number(request: HttpRequest, name: str, kind: type[int] | type[float]) -> Any:
    """A number from the query string or form; None if missing or invalid."""
    sent = request.POST if request.method == "POST" else request.GET
    try:
        return kind(sent[name])
    except (KeyError, ValueError):
        return None


@login_required
@require_POST
def pause(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Pause a run."""
    run = get_run(request, slug, pk, May.RUN)
    done = _("Paused. Calls in progress will finish and be stored; no new calls are made.")
    return _back(request, run, stopping.run_pause(run), done, _("The run is not running."))


def _back(request: HttpRequest, run: Run, worked: bool, done: str, nothing: str) -> HttpResponse:
    """Go back to the run's page with a message: `done` if the action worked, else `nothing`."""
    if worked:
        messages.success(request, done)
    else:
        messages.info(request, nothing)
    return redirect("runs:detail", run.project.slug, run.pk)


@login_required
@require_POST
def resume(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Continue a paused or cancelled run."""
    run = get_run(request, slug, pk, May.RUN)
    form = raise_budget_form(run, request.POST) if "budget_calls" in request.POST else None
    try:
        if form is not None and not form.is_valid():
            messages.error(
                request, join_sentences(error for errors in form.errors.values() for error in errors)
            )
        elif not services.run_resume(run, budget=form.budget() if form else None):
            messages.info(request, _("The run is not paused or cancelled."))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    return redirect("runs:detail", slug, pk)


@login_required
@require_POST
def cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Cancel a run."""
    run = get_run(request, slug, pk, May.RUN)
    done = _("Cancelled. Completed judgements are kept. You can continue the run later.")
    return _back(request, run, stopping.run_cancel(run), done, _("The run has already ended."))


@login_required
@require_POST
def archive(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Archive: hide from lists without deleting anything."""
    return _archived(request, slug, pk, _("Archived. You can restore it here, or from the archive."))


@login_required
@require_POST
def restore(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Restore an archived run."""
    return _archived(request, slug, pk, _("Restored."), restores=True)


def _archived(request: HttpRequest, slug: str, pk: int, done: str, *, restores: bool = False) -> HttpResponse:
    """Archive or restore a run. Human evaluations have pages of their own for it."""
    access.get_project(request, slug, May.RUN)
    run = get_run(request, slug, pk)
    if run.by_people:
        raise Http404
    change, action = (
        (archiving.restore, Action.RUN_RESTORED) if restores else (archiving.archive, Action.RUN_ARCHIVED)
    )
    if change(run, action, run.project):
        messages.success(request, done)
    return redirect("runs:detail", slug, pk)


@login_required
@require_POST
def retry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Retry failed judgements; `state` selects errors, unparsed replies or both."""
    run = get_run(request, slug, pk, May.RUN)
    created = services.run_retry(run, tuple(request.POST.getlist("state")) or (JudgementState.ERROR,))
    nothing = _("Nothing to retry, or the run is still in progress.")
    return _back(request, run, created > 0, queued_text(created), nothing)


def queued_text(count: int) -> str:
    """That this many judgements are to be re-judged."""
    text = ngettext(
        "%(n)s judgement queued for re-judging. The earlier attempt is kept.",
        "%(n)s judgements queued for re-judging. Earlier attempts are kept.",
        count,
    )
    return text % {"n": count}


@login_required
@require_POST
def extend(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Extend a finished run to a total number of rows, or to all rows."""
    run = get_run(request, slug, pk, May.RUN)
    wanted = None if "all" in request.POST else whole(request.POST.get("rows", "")) or 0
    nothing = _("Nothing to extend: enter more rows than have been judged.")
    try:
        extended = services.run_extend(run, wanted)
        return _back(request, run, extended, _("The run was extended. Judged rows are kept."), nothing)
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
        return redirect("runs:detail", slug, pk)


@login_required
@require_POST
def keep_answers(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Save the run's generated answers as a new version of the data set, in the background."""
    run = get_run(request, slug, pk, May.RUN)
    access.get_project(request, slug, May.UPLOAD)
    candidates = generating_candidates(run)
    if not run.ended or not any(candidate.counts.answered for candidate in candidates):
        messages.info(request, _("No answers to save yet, or the run is still in progress."))
        return redirect("runs:detail", slug, pk)
    version = version_of_answers(
        version=run.version, source=source_of(run), name=run.name, user=access.signed_in(request)
    )
    missing = sum(candidate.wanted - candidate.counts.answered for candidate in candidates)
    if missing:
        text = ngettext(
            "%(n)s failed answer is not included.", "%(n)s failed answers are not included.", missing
        )
        messages.info(request, text % {"n": missing})
    return redirect("datasets:version", slug, version.dataset_id, version.number)
