"""One judgement's comments, tags, flag, assignee and exclusion, on its page and in the panel next to the grid."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalsite.access import May, signed_in
from evalsite.names import join_sentences
from evalsite.web.headers import part_wanted
from evalsite.web.numbers import whole
from judging.filters.addresses import filters_in, judgement_url, query_in
from judging.filters.conditions import by_response
from judging.filters.search import nearest
from judging.markdown import MarkupBudget, html_of
from judging.records.access import get_judgement, get_run
from judging.records.models import Judgement
from judging.records.seal import unsealed
from judging.review.selectors import neighbours
from judging.review.teamwork.forms import CommentForm, change_of, form_for
from judging.teamwork import comments
from judging.teamwork.inbox import readers_of
from judging.teamwork.marks import CHANGES, Kind, MarkConflict, change_one, current_marks, tag_names
from judging.teamwork.models import FLAG, Comment, MarkKind


def teamwork_of(judgement: Judgement) -> dict[str, Any]:
    """Context of a judgement's section for reviewers."""
    project, budget = judgement.run.project, MarkupBudget()
    readers = list(readers_of(project))
    by_kind: dict[str, list[Any]] = {kind: [] for kind in MarkKind}
    for mark in current_marks(judgement):
        by_kind[mark.kind].append(mark)
    return {
        "run": judgement.run,
        "judgement": judgement,
        "tags": [mark for mark in by_kind[MarkKind.TAG] if mark.name != FLAG],
        "flag": next((mark for mark in by_kind[MarkKind.TAG] if mark.name == FLAG), None),
        "assigned": next(iter(by_kind[MarkKind.ASSIGNED]), None),
        "excluded": next(iter(by_kind[MarkKind.EXCLUDED]), None),
        "comments": [(comment, html_of(comment.text, budget)) for comment in comments.comments_of(judgement)],
        "tag_names": tag_names(project),
        "reviewers": [reader for reader in readers if reader.reviews],  # type: ignore[attr-defined]
        "readers": readers,
        "comment_form": CommentForm(auto_id="comment_%s"),
    }


@login_required
@require_POST
def mark(request: HttpRequest, slug: str, pk: int, judgement_pk: int, kind: str) -> HttpResponse:
    """Change a mark; `seen` in the form is the mark that it replaces."""
    judgement = get_judgement(request, slug, pk, judgement_pk, May.REVIEW)
    if kind not in CHANGES:
        raise Http404
    if "flag" in request.POST:
        kind = {Kind.TAG: "flag", Kind.UNTAG: "unflag"}.get(Kind(kind), kind)
    form = form_for(kind, judgement.run.project, request.POST)
    if not form.is_valid():
        problem = join_sentences(text for errors in form.errors.values() for text in errors)
        return _teamwork_response(
            request, judgement, problem=problem, unsaved_reason=request.POST.get("reason", ""), status=422
        )
    change = change_of(kind, form)
    onward = _after(request, judgement) if "next" in request.POST else ""
    try:
        seen = whole(request.POST.get("seen", ""))
        change_one(judgement=judgement, change=change, by=signed_in(request), seen=seen)
    except MarkConflict:
        problem = _("Someone else changed this in the meantime. Check what it is now, then try again.")
        return _teamwork_response(
            request, judgement, problem=problem, unsaved_reason=change.reason, status=409
        )
    return redirect(onward) if onward else _teamwork_response(request, judgement)


@login_required
@require_POST
def comment(request: HttpRequest, slug: str, pk: int, judgement_pk: int) -> HttpResponse:
    """Comment on an answer and a metric."""
    judgement = get_judgement(request, slug, pk, judgement_pk, May.REVIEW)
    form = CommentForm(request.POST, auto_id="comment_%s")
    if not form.is_valid():
        return _teamwork_response(request, judgement, comment_form=form, status=422)
    comments.comment_add(judgement=judgement, text=form.cleaned_data["text"], by=signed_in(request))
    return _teamwork_response(request, judgement)


@login_required
@require_POST
def comment_change(
    request: HttpRequest, slug: str, pk: int, judgement_pk: int, comment_pk: int
) -> HttpResponse:
    """Edit or delete one's own comment."""
    judgement = get_judgement(request, slug, pk, judgement_pk, May.REVIEW)
    user = signed_in(request)
    same = {"run": judgement.run, "run_metric": judgement.run_metric_id, "response": judgement.response_id}
    own = get_object_or_404(Comment.objects.select_related("author"), pk=comment_pk, **same)
    if own.author != user:
        raise PermissionDenied
    own.run = judgement.run
    if "delete" in request.POST:
        comments.comment_delete(comment=own, by=user)
        return _teamwork_response(request, judgement)
    form = CommentForm(request.POST)
    if not form.is_valid():
        return _teamwork_response(request, judgement, edited=own.pk, edited_form=form, status=422)
    sent = form.cleaned_data
    try:
        comments.comment_edit(comment=own, text=sent["text"], version=sent["version"] or 0)
    except comments.CommentChanged:
        form.add_error(
            None, _("You changed this comment elsewhere in the meantime. Send again to replace it.")
        )
        form.data = dict(form.data.items()) | {"version": own.version}
        return _teamwork_response(request, judgement, edited=own.pk, edited_form=form, status=409)
    return _teamwork_response(request, judgement)


def _teamwork_response(
    request: HttpRequest, judgement: Judgement, *, status: int = 200, **more: Any
) -> HttpResponse:
    """The section for htmx; else redirect to the judgement's page, or show the errors on a page of their own."""
    if part_wanted(request):
        # htmx swaps in responses with status 422, but no other errors.
        context = teamwork_of(judgement) | {"here": query_in(request, judgement.run)} | more
        return render(request, "review/_teamwork.html", context, status=422 if status >= 400 else 200)
    if status < 400:
        return redirect(judgement_url(judgement.run, judgement.pk, query_in(request, judgement.run)))
    return render(request, "review/teamwork.html", teamwork_of(judgement) | more, status=status)


def _after(request: HttpRequest, judgement: Judgement) -> str:
    """URL of the next judgement that matches the filter; after the last one, the reviewer's queue."""
    filters = filters_in(request, judgement.run)
    _before, after = neighbours(judgement, filters)
    if after is None:
        return reverse("runs:mine", args=(judgement.run.project.slug,))
    return judgement_url(judgement.run, after, filters.query())


@login_required
def first(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Redirect to the first judgement that matches the filter."""
    run = get_run(request, slug, pk)
    filters = filters_in(request, run)
    matches = nearest(run, filters, None, 1).matches
    if not matches:
        return redirect(reverse("runs:judgements", args=(slug, pk)) + filters.query())
    return redirect(judgement_url(run, matches[0].pk, filters.query()))


@login_required
def at(request: HttpRequest, slug: str, pk: int, metric: int, response: int) -> HttpResponseRedirect:
    """Redirect to the current judgement of an answer by a metric."""
    run = get_run(request, slug, pk)
    judgements = Judgement.objects.filter(run=run, run_metric=metric, response=response, current=True)
    newest = unsealed(run, judgements).filter(by_response(run)).order_by("position").first()
    if newest is None:
        raise Http404
    return redirect("runs:judgement", slug, pk, newest.pk)
