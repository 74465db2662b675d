"""All URLs of the site, by app."""

from __future__ import annotations

from django.urls import include, path

from evalsite.mcp.views import mcp
from judging.people import urls as people
from judging.reports import sharing

handler400 = "evalsite.web.refusals.bad_request"
handler500 = "evalsite.web.refusals.server_error"

urlpatterns = [
    path("", include("judging.status.urls")),
    path("", include("judging.overview.urls")),
    path("", include("evalsite.accounts.urls")),
    path("", include("evalsite.mail.urls")),
    path("api/v1/", include("evalsite.api.site")),
    path("mcp", mcp, name="mcp"),
    path("shared/<str:secret>/", sharing.shared, name="shared_report"),
    path("p/<slug:slug>/datasets/", include("datasets.urls")),
    path("p/<slug:slug>/delete/", include("judging.deletion.urls")),
    path("p/<slug:slug>/endpoints/", include("judging.endpoints.urls")),
    path("p/<slug:slug>/judges/", include("judging.trust.urls")),
    path("p/<slug:slug>/look/", include("judging.look.urls")),
    path("p/<slug:slug>/metrics/", include("judging.metrics.urls")),
    path("p/<slug:slug>/desk/<int:pk>/", include(people.desk)),
    path("p/<slug:slug>/evaluations/", include(people.organisers)),
    path("p/<slug:slug>/rating/", include(people.raters)),
    path("p/<slug:slug>/rubrics/", include("judging.rubrics.urls")),
    path("p/<slug:slug>/runs/", include("judging.run_urls")),
    path("p/<slug:slug>/webhooks/", include("evalsite.webhooks.urls")),
]
