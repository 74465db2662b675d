"""Every address of the site, room by room."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("", include("judging.overview.urls")),
    path("", include("evalsite.accounts.urls")),
]
