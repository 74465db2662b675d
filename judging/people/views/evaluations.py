"""Evaluations for organisers: list, detail, items, settings, import and export of ratings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from evalsite.names import join_sentences
from evalsite.tasks import jobs
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from evalsite.web.request_limits import allow, file_too_large, upload_page
from judging.core.people.item_outcomes import ItemKind
from judging.core.results_file.records import RefusedLine
from judging.people import assignments, gold_rule, progress, services, states
from judging.people.access import get_evaluation, get_item, rates_here
from judging.people.attention import with_attention
from judging.people.blindness import HIDEABLE, sides_of, sides_rename
from judging.people.forms import SidesForm
from judging.people.inviting.offers import offers_to
from judging.people.item_criteria import content_of, criteria_for
from judging.people.item_view import shown_in
from judging.people.labels import (
    bad_line_sentence,
    import_problem,
    kind_names,
    labelled_gold,
    labelled_kinds,
    labelled_values,
    scale_name,
    values_of,
)
from judging.people.marked_spans import marked_by_raters
from judging.people.models import (
    SENT_ONLY,
    Assignment,
    AssignmentState,
    Evaluation,
    EvaluationRater,
    Item,
    Rating,
    SkipReason,
)
from judging.people.notices import organiser_notices
from judging.people.outcomes import item_kinds, items_of_kind
from judging.people.quota import uncovered
from judging.people.rating_import import JOB, MOST_BYTES, import_begin, import_stop
from judging.people.selectors import (
    WHICH,
    evaluations_page,
    item_counts,
    items_page,
    possible_raters,
    rating_tasks,
)
from judging.people.timeline import timeline_of
from judging.people.views.gold import GoldValuesForm
from judging.people.views.raters import rater_lines
from judging.records.seal import sealed_count, sealed_items

SEE = May.READ_JUDGEMENTS


@login_required
def evaluations(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's human evaluations, newest first, for organisers those that need attention before the others; with
    ?archived=1 the archived ones."""
    project = access.get_project(request, slug, SEE)
    archived, before = "archived" in request.GET, whole(request.GET.get("before", ""))
    page, further = evaluations_page(project, archived=archived, before=before)
    organises = May.RUN in access.permissions(request, project) and not archived
    if organises:
        page = with_attention(page)
    context = {"evaluations": page, "further": further, "before": before, "archived": archived}
    context["attention"] = organises and any(evaluation.attention.needed for evaluation in page)  # type: ignore[attr-defined]
    return render(request, "people/list.html", context)


@login_required
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One evaluation: progress, raters, remaining items. The results are loaded as a separate fragment."""
    evaluation = get_evaluation(request, slug, pk, SEE)
    overall, raters = progress.overall(evaluation), rater_lines(request, evaluation)
    context: dict[str, Any] = {
        "evaluation": evaluation,
        "run": evaluation.run,
        "overall": overall,
        "uncovered": uncovered(evaluation, overall.left) if raters["raters"] else 0,
        "timeline": timeline_of(evaluation),
        **raters,
        **organiser_notices(evaluation),
        "criteria": [(criterion, scale_name(criterion)) for criterion in evaluation.criteria.values()],
        "sides": sides_of(evaluation),
        "hidden_roles": [HIDEABLE[role] for role in evaluation.hidden_roles],
        "candidates": [
            entry.candidate for entry in evaluation.run.run_candidates.select_related("candidate")
        ],
        "gold": progress.gold_counts(evaluation),
        "repeats": evaluation.items.filter(repeat_of__isnull=False, version_repeat=None).count(),
        "skipped": Assignment.objects.filter(evaluation=evaluation, state=AssignmentState.SKIPPED).count(),
        "counts": item_counts(evaluation),
    }
    if part_wanted(request) and "part" in request.GET:
        return render(request, "people/_progress.html", context)
    context["sealed"] = sealed_count([evaluation.run])
    rows = evaluation.run.version.valid_rows
    context["first_answers"] = evaluation.scheme and any(
        candidate.responses > rows for candidate in context["candidates"]
    )
    current = evaluation.raters.filter(left_at=None).values("user")
    context["possible"] = possible_raters(evaluation.run.project).exclude(pk__in=current)
    return render(request, "people/detail.html", context)


_ACTIONS: dict[str, tuple[Callable[..., bool], Any]] = {
    "open": (states.study_open, gettext_lazy("Opened. Raters can begin.")),
    "pause": (
        states.study_pause,
        gettext_lazy("Paused. All ratings are kept; reserved items are free again."),
    ),
    "resume": (states.study_resume, gettext_lazy("Resumed. Raters can continue.")),
    "end_pilot": (
        states.pilot_end,
        gettext_lazy("The pilot has ended. All raters get the rest of the items."),
    ),
    "close": (
        services.evaluation_close,
        gettext_lazy("Closed. All ratings are kept, and you can reopen it."),
    ),
    "reopen": (services.evaluation_reopen, gettext_lazy("Reopened. Raters can continue.")),
    "archive": (
        services.evaluation_archive,
        gettext_lazy("Archived and closed. You can restore it from the archive."),
    ),
    "restore": (
        services.evaluation_restore,
        gettext_lazy("Restored. The evaluation is still closed."),
    ),
}


@login_required
@require_POST
def act(request: HttpRequest, slug: str, pk: int, action: str) -> HttpResponse:
    """Open, pause, resume, close, reopen, archive or restore the evaluation, or end its pilot."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    service, done = _ACTIONS[action]
    if service(evaluation=evaluation, by=access.signed_in(request)):
        messages.success(request, done)
    return redirect("people:detail", slug, pk)


@login_required
def rename_sides(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Rename the two compared files."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    sides = sides_of(evaluation)
    if not sides:
        raise Http404
    form = SidesForm(request.POST or None, sides)
    if request.method == "POST" and form.is_valid():
        try:
            sides_rename(evaluation=evaluation, **form.cleaned_data, by=access.signed_in(request))
        except ValidationError as error:
            form.add_error("there", error)
        else:
            messages.success(request, _("Names changed."))
            return redirect("people:detail", slug, pk)
    context = {"evaluation": evaluation, "form": form}
    return render(request, "people/sides.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def add_raters(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Add raters, or bring back former ones."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    numbers = [number for text in request.POST.getlist("user") if (number := whole(text)) is not None]
    users = list(possible_raters(evaluation.run.project).filter(pk__in=numbers))
    if users:
        assignments.raters_add(evaluation=evaluation, users=users, by=access.signed_in(request))
        names = ", ".join(user.username for user in users)
        messages.success(request, _("Raters added: %(names)s") % {"names": names})
    return redirect("people:detail", slug, pk)


@login_required
@require_POST
def leave(request: HttpRequest, slug: str, pk: int, rater: int) -> HttpResponse:
    """Remove a rater."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    leaving = get_object_or_404(
        EvaluationRater.objects.select_related("user"), evaluation=evaluation, pk=rater
    )
    assignments.rater_leave(rater=leaving, by=access.signed_in(request))
    messages.success(
        request,
        _("%(name)s was removed. Submitted ratings are kept; reserved items are available to others again.")
        % {"name": leaving.user.username},
    )
    return redirect("people:detail", slug, pk)


@login_required
@require_POST
def pause_rater(request: HttpRequest, slug: str, pk: int, rater: int, *, pause: bool) -> HttpResponse:
    """Pause a rater, or let a paused one go on."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    row = get_object_or_404(EvaluationRater.objects.select_related("user"), evaluation=evaluation, pk=rater)
    change = gold_rule.rater_pause if pause else gold_rule.rater_resume
    if change(rater=row, by=access.signed_in(request)):
        text = _("%(name)s is paused.") if pause else _("%(name)s can go on.")
        messages.success(request, text % {"name": row.user.username})
    return redirect("people:detail", slug, pk)


@login_required
def items(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The items and their raters."""
    evaluation = get_evaluation(request, slug, pk, SEE)
    which = request.GET.get("which", "all")
    which = which if which in WHICH else "all"
    after = whole(request.GET.get("after", "")) or 0
    outcomes = {} if rates_here(request, evaluation.run) else _outcomes(evaluation)
    outcome = request.GET.get("outcome", "")
    outcome = outcome if outcome in outcomes else ""
    among = items_of_kind(evaluation, outcome) if outcome else None
    pseudonyms = dict(evaluation.raters.order_by("pk").values_list("pseudonym", "pk"))
    rater = request.GET.get("rater", "")
    rater = rater if rater in pseudonyms else ""
    page, further = items_page(evaluation, which, after, among=among, rater=pseudonyms.get(rater))
    kinds = item_kinds(evaluation, [item.pk for item in page]) if outcomes else {}
    context = {"evaluation": evaluation, "which": which, "further": further, "after": after}
    context["sent"] = evaluation.items.filter(SENT_ONLY).exists()
    context |= {"outcomes": outcomes, "outcome": outcome, "pseudonyms": list(pseudonyms), "rater": rater}
    context["items"] = [
        (
            item,
            list(item.assignments.select_related("rater").order_by("pk")),
            labelled_kinds(evaluation.criteria, kinds.get(item.pk, {})),
        )
        for item in page
    ]
    return render(request, "people/items.html", context)


def _outcomes(evaluation: Evaluation) -> dict[ItemKind, str]:
    """The kinds of outcome to filter by, named; none where all criteria are free text."""
    named = {
        kind: name
        for criterion in evaluation.criteria.values()
        for kind, name in kind_names(criterion).items()
    }
    return {} if all(criterion.scale == "text" for criterion in evaluation.criteria.values()) else named


@login_required
def item(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """One item: its contents, its raters, and all verdicts and comments."""
    evaluation = get_evaluation(request, slug, pk, SEE)
    item = get_item(evaluation, number)
    if rates_here(request, evaluation.run):
        return render(request, "reports/hidden.html", {"run": evaluation.run})
    return render(request, "people/item.html", _item_context(evaluation, item))


def _item_context(evaluation: Evaluation, item: Item) -> dict[str, Any]:
    criteria = criteria_for(evaluation, item)
    names = item.candidate_names
    sealed = item.row_id in sealed_items(evaluation.run)
    ratings = Rating.objects.filter(assignment__item=item).select_related("rater__user", "assignment")
    decisions = item.adjudications.select_related("by").order_by("-pk")
    skipped = dict(SkipReason.choices)
    active = EvaluationRater.objects.filter(evaluation=evaluation, left_at=None)
    return {
        "evaluation": evaluation,
        "item": item,
        "names": names,
        "sides": sides_of(evaluation),
        "shown": shown_in(evaluation, item, 1, with_reference=not item.rates_reference),
        "assignments": item.assignments.select_related("rater__user").order_by("pk"),
        "ratings": [
            (rating, labelled_values(criteria, values_of(rating.values), names), skipped.get(rating.reason))
            for rating in (() if sealed else ratings.order_by("pk"))
        ],
        "marked": [] if sealed else marked_by_raters(criteria, item, ratings.order_by("pk")),
        "decisions": [
            (adjudication, labelled_values(criteria, values_of(adjudication.values), names))
            for adjudication in (() if sealed else decisions)
        ],
        "sealed": ratings.count() + decisions.count() if sealed else 0,
        "kinds": labelled_kinds(criteria, item_kinds(evaluation, [item.pk]).get(item.pk, {})),
        "gold": labelled_gold(criteria, values_of(item.gold), names),
        "gold_possible": any(not each.is_written or each.marks_spans for each in criteria.values()),
        "content": content_of(item),
        "values_form": GoldValuesForm(None, criteria=criteria) if item.counts and not item.assigned else None,
        "others": active.exclude(assignments__item=item).select_related("user"),
    }


@login_required
@require_POST
def reassign(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Take an item from a rater, and assign it to another one or to anyone."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    item = get_item(evaluation, number)
    held = get_object_or_404(item.assignments, pk=whole(request.POST.get("assignment", "")) or 0)
    to = evaluation.raters.filter(pk=whole(request.POST.get("to", "")) or 0, left_at=None).first()
    try:
        assignments.item_reassign(assignment=held, to=to, by=access.signed_in(request))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))
    else:
        messages.success(request, _("Item reassigned."))
    return redirect("people:item", slug, pk, number)


@login_required
def queue(request: HttpRequest, slug: str) -> HttpResponse:
    """A rater's evaluations in this project; like all pages for raters, without model names."""
    project = access.get_project(request, slug, May.RATE)
    user, here = access.signed_in(request), Project.objects.filter(pk=project.pk)
    return render(
        request, "people/queue.html", {"duties": rating_tasks(user, here), "offers": offers_to(user, here)}
    )


_SHOWN = 20


@upload_page
@login_required
def import_ratings(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Import ratings from a file; list earlier imports."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    allow(request, MOST_BYTES, file_too_large(MOST_BYTES))
    return _import(request, evaluation)


@csrf_protect
def _import(request: HttpRequest, evaluation: Evaluation) -> HttpResponse:
    context: dict[str, Any] = {"evaluation": evaluation, "most": MOST_BYTES}
    if request.method == "POST":
        sent = request.FILES.get("file")
        try:
            if sent is None or sent.size is None or sent.size > MOST_BYTES:
                raise ValidationError(_("Choose a file of at most 50 MB."))
            name = sent.name or ""
            ratings_import = import_begin(
                evaluation=evaluation, file=sent, file_name=name, by=access.signed_in(request)
            )
        except ValidationError as error:
            context["refused"] = join_sentences(error.messages)
        else:
            return redirect(
                "people:imported", evaluation.run.project.slug, evaluation.run_id, ratings_import.pk
            )
    context["earlier"] = evaluation.imports.select_related("created_by").order_by("-pk")[:_SHOWN]
    return render(request, "people/import.html", context, status=422 if "refused" in context else 200)


@login_required
def imported(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Progress and result of an import."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    taken = get_object_or_404(evaluation.imports.select_related("created_by"), pk=number)
    wrong = [
        (line, bad_line_sentence(RefusedLine(line, code, params))) for line, code, params in taken.bad_lines
    ]
    context = {"evaluation": evaluation, "taken": taken, "wrong": wrong, "why": import_problem(taken.problem)}
    context["obstacle"] = "" if taken.ended_at else jobs.obstacle(jobs.of(JOB, taken.pk))
    if not part_wanted(request):
        return render(request, "people/imported.html", context)
    if taken.ended_at is None:
        return render(request, "people/_importing.html", context)
    return HttpResponseClientRefresh()


@login_required
@require_POST
def stop(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponse:
    """Stop an import and undo it."""
    evaluation = get_evaluation(request, slug, pk, May.RUN)
    import_stop(ratings_import=get_object_or_404(evaluation.imports, pk=number))
    return redirect("people:imported", slug, pk, number)
