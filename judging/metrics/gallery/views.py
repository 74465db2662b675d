"""The gallery: ready-made metrics, and the page on which one is fitted to the project's data and used."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May, signed_in
from evalsite.accounts.drafts import drafts_of_new
from evalsite.accounts.models import Project
from judging.core.gallery import gallery
from judging.core.gallery.own import OwnCard
from judging.metrics import services
from judging.metrics.access import get_metric
from judging.metrics.editor.page import JudgeEditor
from judging.metrics.gallery.cards import gives_choices, own_cards, shown_tasks, task_choices
from judging.metrics.gallery.own import EntryForm, entry_of, entry_remove, entry_save, own_card
from judging.metrics.gallery.page import CardPage


def show_gallery(request: HttpRequest, project: Project) -> HttpResponse:
    """The gallery, filtered by the query. Call only for users who may write metrics."""
    context = {
        "own": own_cards(project, request.GET),
        "tasks": shown_tasks(request.GET, project),
        "task_choices": task_choices(request.GET),
        "gives_choices": gives_choices(request.GET),
        "filtered": any(request.GET.get(name) for name in ("q", "task", "gives")),
        "drafts": drafts_of_new(signed_in(request), project, JudgeEditor.draft_form),
    }
    return render(request, "gallery/list.html", context)


@login_required
def card(request: HttpRequest, slug: str, card: str) -> HttpResponse:
    """A metric of the gallery, with its columns to choose and its prompt on a row. `use` in a POST creates the metric
    and leads to a new run, `edit` leads to the editor."""
    project = access.get_project(request, slug, May.METRICS)
    chosen = gallery().get(card) or own_card(project, card)
    if chosen is None:
        raise Http404
    page = CardPage(request, project, chosen, request.POST if request.method == "POST" else request.GET)
    if request.method == "POST" and "edit" in request.POST:
        return _edited(page)
    if request.method == "POST" and "use" in request.POST and page.can_use:
        return _used(request, page)
    return render(request, "gallery/card.html", page.context())


def _used(request: HttpRequest, page: CardPage) -> HttpResponse:
    """Create the metric, and go on to a new run of it on the previewed version."""
    slug = page.project.slug
    version = services.metric_ensure(
        project=page.project, definition=page.definition, user=signed_in(request)
    )
    messages.success(request, _("“%(name)s” saved.") % {"name": version.metric.name})
    if page.sample is None or May.RUN not in access.permissions(request, page.project):
        return redirect("metrics:edit", slug, version.metric_id)
    query = urlencode({"metric": version.pk, "version": page.sample.version.pk})
    return redirect(f"{reverse('runs:new', args=[slug])}?{query}")


def _edited(page: CardPage) -> HttpResponse:
    """The editor: of a new metric that starts here, or for one of the project, of a copy with the chosen columns."""
    slug = page.project.slug
    if not isinstance(page.card, OwnCard):
        start = urlencode({"start": page.start.text})
        return redirect(f"{reverse('metrics:new', args=[slug])}?{start}")
    version = services.metric_ensure(
        project=page.project, definition=page.definition, user=signed_in(page.request)
    )
    return redirect("metrics:edit", slug, version.metric_id)


@login_required
def keep(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Save a metric's newest version to the project's gallery, with a sentence on what it is for."""
    row = get_metric(request, slug, metric)
    form = EntryForm(request.POST or None, initial={"sentence": getattr(entry_of(row), "sentence", "")})
    if request.method == "POST" and form.is_valid():
        entry_save(metric=row, sentence=form.cleaned_data["sentence"], user=signed_in(request))
        messages.success(request, _("“%(name)s” is in this project's gallery.") % {"name": row.name})
        return redirect("metrics:new", slug)
    status = 422 if form.errors else 200
    return render(
        request, "gallery/keep.html", {"metric": row, "form": form, "entry": entry_of(row)}, status=status
    )


@login_required
@require_POST
def leave(request: HttpRequest, slug: str, metric: int) -> HttpResponse:
    """Take a metric out of the project's gallery; the metric stays."""
    row = get_metric(request, slug, metric)
    entry_remove(metric=row)
    messages.success(request, _("“%(name)s” is no longer in this project's gallery.") % {"name": row.name})
    return redirect("metrics:edit", slug, row.pk)
