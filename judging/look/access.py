"""Access to looks with permission checks. Views must load them through here."""

from __future__ import annotations

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from evalsite import access
from evalsite.access import May
from judging.look.models import Look, LookAnswer, NoteGroup
from judging.people.access import rates_here


def get_look(request: HttpRequest, slug: str, pk: int, may: May = May.READ_JUDGEMENTS) -> Look:
    """A look of the project, unless its run is deleted or its results are hidden from the user, who rates in it.

    Raises Http404 or PermissionDenied.
    """
    project = access.get_project(request, slug, may)
    looks = Look.objects.select_related("version__dataset", "run", "by_score_of", "created_by")
    looks = looks.filter(project=project, version__deleted_at=None, version__dataset__deleted_at=None)
    look = get_object_or_404(looks, pk=pk)
    if look.run is not None:
        look.run.project = project
        if look.run.deleted_at is not None or rates_here(request, look.run):
            raise Http404
    look.project = project
    return access.loaded(request, look)


def get_answer(request: HttpRequest, slug: str, pk: int, place: int, may: May) -> LookAnswer:
    """A drawn answer by its place, with row and response. Raises Http404 or PermissionDenied."""
    look = get_look(request, slug, pk, may)
    answers = LookAnswer.objects.select_related("row", "response")
    answer = get_object_or_404(answers, look=look, place=place)
    answer.look = look
    return answer


def get_group(request: HttpRequest, slug: str, pk: int, group: int, may: May) -> NoteGroup:
    """A group of a look. Raises Http404 or PermissionDenied."""
    look = get_look(request, slug, pk, may)
    row = get_object_or_404(NoteGroup, look=look, pk=group)
    row.look = look
    return row
