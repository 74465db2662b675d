"""Saved views: named filters of judgements that can be opened in every run of the project, personal or shared."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalsite.access import signed_in
from evalsite.accounts.models import Project, User
from judging.filters.filter_form import form_in
from judging.records.access import get_run
from judging.records.models import Run
from judging.review.models import SavedView

MOST_VIEWS = 100  # per menu
PAGES = {"grid": "runs:items", "list": "runs:judgements"}


class SavedViewForm(forms.Form):
    """`page`: the page to return to."""

    name = forms.CharField(max_length=100)
    shared = forms.BooleanField(required=False)
    page = forms.ChoiceField(choices=[(name, name) for name in PAGES])


def views_for(project: Project, user: User) -> QuerySet[SavedView]:
    """The user's own views and those that other members share."""
    views = SavedView.objects.filter(Q(owner=user) | Q(shared=True), project=project)
    return views.select_related("owner").order_by("name", "pk")[:MOST_VIEWS]


@login_required
@require_POST
def save(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Save the current filter under a name."""
    run = get_run(request, slug, pk)
    query = form_in(request, run).filters.query().removeprefix("?")
    form, user = SavedViewForm(request.POST), signed_in(request)
    if not form.is_valid():
        messages.error(request, _("Enter a name of at most 100 characters."))
        return _back(request, run, query)
    name, shared = form.cleaned_data["name"], form.cleaned_data["shared"]
    _view, created = SavedView.objects.get_or_create(
        project=run.project, owner=user, name=name, defaults={"query": query, "shared": shared}
    )
    if created:
        messages.success(request, _("View “%(name)s” saved.") % {"name": name})
    else:
        messages.error(request, _taken(name))
    return _back(request, run, query)


@login_required
@require_POST
def change(request: HttpRequest, slug: str, pk: int, view_pk: int) -> HttpResponse:
    """Rename, share or unshare one of the user's own views."""
    run, view = _own_view(request, slug, pk, view_pk)
    form = SavedViewForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Enter a name of at most 100 characters."))
        return _back(request, run, view.query)
    view.name = name = form.cleaned_data["name"]
    view.shared = form.cleaned_data["shared"]
    try:
        with transaction.atomic():
            view.save(update_fields=["name", "shared"])
    except IntegrityError:
        messages.error(request, _taken(name))
    else:
        messages.success(request, _("View “%(name)s” saved.") % {"name": name})
    return _back(request, run, view.query)


@login_required
@require_POST
def delete(request: HttpRequest, slug: str, pk: int, view_pk: int) -> HttpResponse:
    """Delete one of the user's own views, for everyone."""
    run, view = _own_view(request, slug, pk, view_pk)
    view.delete()
    messages.success(request, _("View “%(name)s” deleted.") % {"name": view.name})
    return _back(request, run, form_in(request, run).filters.query().removeprefix("?"))


def _taken(name: str) -> str:
    return _("You already have a view “%(name)s”. Choose another name.") % {"name": name}


def _own_view(request: HttpRequest, slug: str, pk: int, view_pk: int) -> tuple[Run, SavedView]:
    run = get_run(request, slug, pk)
    view = SavedView.objects.filter(project=run.project, pk=view_pk).first()
    if view is None:
        raise Http404
    if view.owner != signed_in(request):
        raise PermissionDenied
    return run, view


def _back(request: HttpRequest, run: Run, query: str) -> HttpResponse:
    page = PAGES.get(request.POST.get("page", ""), PAGES["grid"])
    address = reverse(page, args=(run.project.slug, run.pk))
    return redirect(f"{address}?{query}" if query else address)
