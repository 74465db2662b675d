"""Actions on all judgements that match a filter: preview, confirmation, list, and undo."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from evalsite.access import May, signed_in
from evalsite.tasks import workers
from evalsite.templatetags.show import number
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from evalsite.web.paging import newest_first
from judging.filters.addresses import filters_in, items_url
from judging.filters.judgement_filter import Filters
from judging.filters.page_limits import LIMITS
from judging.records.access import get_run
from judging.records.models import Run
from judging.review.teamwork.forms import FLAG_KINDS, change_of, form_for
from judging.teamwork.batches import change_many, first_pairs, undo
from judging.teamwork.marks import Kind, count_marks, tag_names
from judging.teamwork.models import FLAG, ReviewAction

PER_PAGE = 50
TITLES = {
    "tag": gettext_lazy("Add a tag"),
    "untag": gettext_lazy("Remove a tag"),
    "flag": gettext_lazy("Flag"),
    "unflag": gettext_lazy("Remove flags"),
    "assign": gettext_lazy("Assign to a reviewer"),
    "unassign": gettext_lazy("Remove assignments"),
    "exclude": gettext_lazy("Exclude from figures"),
    "include": gettext_lazy("Include in figures again"),
}
AFTER = {
    "tag": gettext_lazy("All of them have the tag you enter."),
    "untag": gettext_lazy("None of them has the tag you enter."),
    "flag": gettext_lazy("All of them are flagged."),
    "unflag": gettext_lazy("None of them is flagged."),
    "assign": gettext_lazy(
        "All of them are assigned to the reviewer you choose. This replaces earlier assignments."
    ),
    "unassign": gettext_lazy("None of them is assigned to anyone."),
    "exclude": gettext_lazy("Reports of this run exclude all of them, and state who excluded them and why."),
    "include": gettext_lazy("Reports of this run count all of them again."),
}


@login_required
def act(request: HttpRequest, slug: str, pk: int, kind: str) -> HttpResponse:
    """Show the action's effect as a form; on POST, run it or wake a worker to do so."""
    run = get_run(request, slug, pk, May.REVIEW)
    if kind not in TITLES:
        raise Http404
    filters = filters_in(request, run)
    form = form_for(kind, run.project, request.POST if request.method == "POST" else None)
    if form.is_valid():
        change = change_of(kind, form)
        action = change_many(run=run, filters=filters, change=change, by=signed_in(request))
        if action.under_way:
            return redirect("runs:actions", slug, pk)
        _report_done(request, run, action)
        return redirect(items_url(request, run, filters.query()))
    context = {
        "run": run,
        "form": form,
        "title": TITLES[kind],
        "after": AFTER[kind],
        "kind": kind,
        "back": items_url(request, run, filters.query()),
        "filtered": bool(filters.query()),
        "tag_names": tag_names(run.project) if kind in (Kind.TAG, Kind.UNTAG) else [],
        **_before(run, filters, kind),
    }
    return render(request, "review/act.html", context, status=422 if request.method == "POST" else 200)


def _before(run: Run, filters: Filters, kind: str) -> dict[str, Any]:
    """The number of matches and their current marks, for very many only of the first ones. `count`: None if unknown."""
    pairs = first_pairs(run, filters)
    if pairs is None:
        return {"count": None}
    many = len(pairs) > LIMITS.counted
    named, of_kind = {"name": FLAG} if kind in FLAG_KINDS else {}, FLAG_KINDS.get(kind, kind)
    marks = count_marks(pairs[: LIMITS.counted], of_kind, **named)
    unnamed = _("flagged") if of_kind in (Kind.TAG, Kind.UNTAG) else _("excluded")
    return {
        "count": len(pairs),
        "shown": f"{number(LIMITS.counted)}+" if many else number(len(pairs)),
        "many": many,
        "before": [(tag or user or unnamed, count) for tag, user, count in marks.counts[:20]],
        "unmarked": min(len(pairs), LIMITS.counted) - marks.marked,
    }


def _report_done(request: HttpRequest, run: Run, action: ReviewAction) -> None:
    """Add the message with its undo button."""
    text = ngettext("%(n)s judgement changed.", "%(n)s judgements changed.", action.changed)
    address = reverse("runs:undo_action", args=(run.project.slug, run.pk, action.pk))
    shown = text % {"n": number(action.changed)}
    messages.success(request, shown, extra_tags=address if action.changed else "")


@login_required
def actions(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Reviewers' actions in this run, newest first; polls while one is in progress."""
    run = get_run(request, slug, pk)
    before = whole(request.GET.get("before", ""))
    page, further = newest_first(
        run.review_actions.select_related("by", "user", "undone_by"), PER_PAGE, before
    )
    live = any(action.under_way for action in page)
    context = {
        "run": run,
        "actions": page,
        "further": further,
        "paged": before is not None,
        "live": live,
        "unattended": workers.obstacle(workers.DATA) if live else "",
    }
    return render(request, "review/_actions.html" if part_wanted(request) else "review/actions.html", context)


@login_required
@require_POST
def undo_action(request: HttpRequest, slug: str, pk: int, action_pk: int) -> HttpResponse:
    """Undo an action."""
    run = get_run(request, slug, pk, May.REVIEW)
    action = get_object_or_404(run.review_actions.select_related("by", "user"), pk=action_pk)
    action.run = run
    if not undo(action=action, by=signed_in(request)):
        messages.info(request, _("This action is still running, or was undone already."))
    elif not action.under_way:
        messages.success(request, _("Undone. Later changes by others are kept."))
    return redirect("runs:actions", slug, pk)
