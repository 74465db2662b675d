"""URLs of shared reports, for readers without an account."""

from __future__ import annotations

from django.urls import path

from judging.reports.sharing import views

app_name = "reports"

urlpatterns = [path("<str:secret>/", views.shared, name="shared")]
