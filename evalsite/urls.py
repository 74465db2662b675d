"""Every address of the site, room by room."""

from __future__ import annotations

from django.urls import include, path

from evalsite import health

urlpatterns = [
    path("healthz", health.alive),
    path("readyz", health.ready),
    path("", include("judging.overview.urls")),
    path("", include("evalsite.accounts.urls")),
    path("p/<slug:slug>/datasets/", include("datasets.urls")),
    path("p/<slug:slug>/endpoints/", include("judging.metrics.endpoint_urls")),
    path("p/<slug:slug>/metrics/", include("judging.metrics.urls")),
    path("p/<slug:slug>/runs/", include("judging.runs.urls")),
]
