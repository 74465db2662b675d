"""Addresses of reports outside of their projects: what a link opens to readers without an account."""

from __future__ import annotations

from django.urls import path

from judging.reports import share_views

app_name = "reports"

urlpatterns = [path("<str:secret>/", share_views.shared, name="shared")]
