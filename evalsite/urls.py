"""Every address of the site, room by room."""

from __future__ import annotations

from django.urls import include, path

from evalsite import views

urlpatterns = [
    path("", views.home, name="home"),
    path("", include("evalsite.accounts.urls")),
]
