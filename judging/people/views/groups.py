"""Groups of raters."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project, User
from evalsite.web.numbers import whole
from judging.people.forms import RaterChoice
from judging.people.inviting.groups import group_delete, group_members, group_save, groups_of
from judging.people.inviting.models import RaterGroup
from judging.people.selectors import possible_raters


class GroupForm(forms.Form):
    """A name, and who belongs to the group."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    users = RaterChoice(
        User.objects.none(), label=gettext_lazy("Raters"), widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, data: Any, project: Project, **more: Any) -> None:
        super().__init__(data, **more)
        self.fields["users"].queryset = possible_raters(project)  # type: ignore[attr-defined]


@login_required
def groups(request: HttpRequest, slug: str) -> HttpResponse:
    """The project's groups, and a form for a new one; with ?from=RUN it proposes an evaluation's raters."""
    project = access.get_project(request, slug, May.RUN)
    chosen = possible_raters(project).filter(
        evaluations__evaluation__run=whole(request.GET.get("from", "")) or 0, evaluations__left_at=None
    )
    form = GroupForm(
        request.POST if request.method == "POST" else None,
        project,
        initial={"users": list(chosen.filter(evaluations__evaluation__run__project=project))},
    )
    if request.method == "POST" and form.is_valid() and _save(request, project, None, form):
        return redirect("people:groups", slug)
    context = {"groups": groups_of(project), "form": form}
    return render(request, "people/inviting/groups.html", context, status=422 if form.errors else 200)


@login_required
def group(request: HttpRequest, slug: str, group: int) -> HttpResponse:
    """Change a group."""
    project = access.get_project(request, slug, May.RUN)
    row = get_object_or_404(RaterGroup, project=project, pk=group)
    initial = {"name": row.name, "users": list(row.users.all())}
    form = GroupForm(request.POST if request.method == "POST" else None, project, initial=initial)
    if request.method == "POST" and form.is_valid() and _save(request, project, row, form):
        return redirect("people:groups", slug)
    unable = group_members(row).exclude(pk__in=possible_raters(project).values("pk"))
    context = {"group": row, "form": form, "unable": unable}
    return render(request, "people/inviting/group.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def delete_group(request: HttpRequest, slug: str, group: int) -> HttpResponse:
    """Delete a group; its people stay members and raters."""
    project = access.get_project(request, slug, May.RUN)
    row = get_object_or_404(RaterGroup, project=project, pk=group)
    group_delete(group=row, by=access.signed_in(request))
    messages.success(request, _("Group deleted. Its people stay members and raters."))
    return redirect("people:groups", slug)


def _save(request: HttpRequest, project: Project, row: RaterGroup | None, form: GroupForm) -> bool:
    sent = form.cleaned_data
    try:
        with transaction.atomic():
            group_save(
                project=project,
                group=row,
                name=sent["name"],
                users=list(sent["users"]),
                by=access.signed_in(request),
            )
    except IntegrityError:
        form.add_error("name", _("A group of this name exists. Choose another name."))
        return False
    messages.success(request, _("Saved."))
    return True
