"""Where somebody is to rate in a project."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Project
from judging.people.selectors import duties


@login_required
def queue(request: HttpRequest, slug: str) -> HttpResponse:
    """A rater's evaluations in this project; without any model's name, as all that raters see."""
    project = access.get_project(request, slug, May.RATE)
    found = duties(access.signed_in(request), Project.objects.filter(pk=project.pk))
    return render(request, "people/queue.html", {"duties": found})
