"""The page that says what goes with an object and deletes it once its name is typed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.deletion.kinds import KINDS, contents
from judging.deletion.labels import content_texts
from judging.deletion.services import delete_begin, obstacle
from judging.records.models import PEOPLE

SECTIONS = {"dataset": "datasets", "version": "datasets", "run": "runs", "evaluation": "people"}
"""Of the navigation, by kind of object."""


class DeleteForm(forms.Form):
    """The object's name, typed; and whether the runs that use it go, too."""

    name = forms.CharField(max_length=500)
    with_runs = forms.BooleanField(
        label=gettext_lazy("Also delete the runs and human evaluations that use it"), required=False
    )

    def __init__(self, data: Any, name: str, *, asks_for_runs: bool) -> None:
        super().__init__(data)
        self.wanted = name
        self.fields["name"].label = _("Type “%(name)s” to confirm") % {"name": name}
        self.fields["name"].widget.attrs |= {"autocomplete": "off", "autocapitalize": "off"}
        if not asks_for_runs:
            del self.fields["with_runs"]

    def clean_name(self) -> str:
        typed: str = self.cleaned_data["name"]
        if typed.strip() != self.wanted.strip():
            raise ValidationError(_("This is not the name."))
        return typed


@login_required
def delete(request: HttpRequest, slug: str, kind: str, pk: int) -> HttpResponse:
    """What goes with an object, and the form that deletes it."""
    project = access.get_project(request, slug, May.MANAGE)
    thing = _thing(project, kind, pk)
    definition, counts = KINDS[kind], contents(kind, pk)
    name = definition.name(thing)
    used = definition.uses and bool(counts.get("runs") or counts.get("evaluations"))
    form = DeleteForm(request.POST or None, name, asks_for_runs=used)
    if request.method == "POST" and form.is_valid():
        with_runs = form.cleaned_data.get("with_runs", False)
        try:
            delete_begin(kind=kind, thing=thing, by=access.signed_in(request), with_runs=with_runs)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(request, _("“%(name)s” was deleted.") % {"name": name})
            return redirect(_list(kind, slug))
    context = {
        "form": form,
        "kind": kind,
        "name": name,
        "contents": content_texts(counts),
        "obstacle": obstacle(kind, pk, with_runs=True),
        "back": _page(kind, slug, thing),
        "section": SECTIONS.get(kind, "project"),
    }
    return render(request, "deletion/delete.html", context, status=422 if form.errors else 200)


def _thing(project: Project, kind: str, pk: int) -> Any:
    """An object of the project. Raises Http404."""
    if kind not in KINDS:
        raise Http404
    if kind == "project":
        return get_object_or_404(Project, pk=project.pk) if pk == project.pk else _raise_404()
    things = KINDS[kind].model._default_manager.all()
    if kind == "version":
        return get_object_or_404(
            things.select_related("dataset__project"),
            dataset__project=project,
            dataset__deleted_at=None,
            number__gt=0,
            pk=pk,
        )
    if kind == "evaluation":
        things = things.filter(kind=PEOPLE)
    elif kind == "run":
        things = things.exclude(kind=PEOPLE)
    return get_object_or_404(things.select_related("project"), project=project, pk=pk)


def _raise_404() -> Any:
    raise Http404


def _list(kind: str, slug: str) -> str:
    """The page after the deletion."""
    names = {
        "run": "runs:list",
        "evaluation": "people:list",
        "version": "datasets:list",
        "dataset": "datasets:list",
    }
    return reverse(names[kind], args=[slug]) if kind in names else reverse("home")


def _page(kind: str, slug: str, thing: Any) -> str:
    """The object's own page."""
    if kind == "version":
        return reverse("datasets:version", args=[slug, thing.dataset_id, thing.number])
    names = {"run": "runs:detail", "evaluation": "people:detail", "dataset": "datasets:dataset"}
    return (
        reverse(names[kind], args=[slug, thing.pk])
        if kind in names
        else reverse("accounts:project_settings", args=[slug])
    )
