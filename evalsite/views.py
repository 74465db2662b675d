"""The first page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evalsite import access


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The visitor's projects."""
    return render(request, "home.html", {"projects": access.projects_of(request.user)})
