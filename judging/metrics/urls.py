"""Addresses of the pages about metrics, below p/<project>/metrics/."""

from __future__ import annotations

from django.urls import path

from judging.metrics import comparing, lint_views, reference_views, transfer_views, version_views, views
from judging.metrics.rules import views as rule_views

app_name = "metrics"

urlpatterns = [
    path("", views.metrics, name="list"),
    path("new/", views.new, name="new"),
    path("preview/", views.preview, name="preview"),
    path("lint/", lint_views.lint, name="lint"),
    path("try/", views.try_row, name="try"),
    path("rules/start/", rule_views.start, name="rules_start"),
    path("rules/new/", rule_views.new, name="rules_new"),
    path("rules/look/", rule_views.looked, name="rules_look"),
    path("rules/try/", rule_views.try_row, name="rules_try"),
    path("rules/lint/", rule_views.lint, name="rules_lint"),
    path("rules/reference/", reference_views.reference, {"page": "rules"}, name="rules_reference"),
    path("reference/<slug:page>/", reference_views.reference, name="reference"),
    path("import/", transfer_views.import_file, name="import"),
    path("export/", transfer_views.export_all, name="export_all"),
    path("<int:metric>/", views.edit, name="edit"),
    path("<int:metric>/past-replies/", views.past_replies, name="past_replies"),
    path("<int:metric>/export/", transfer_views.export_one, name="export"),
    path("<int:metric>/compare/", comparing.compare, name="compare"),
    path("<int:metric>/versions/<int:number>/export/", transfer_views.export_version, name="export_version"),
    path("<int:metric>/copy/", version_views.copy, name="copy"),
    path("<int:metric>/archive/", version_views.archive, name="archive"),
    path("<int:metric>/restore/", version_views.restore, name="restore"),
    path("<int:metric>/versions/", version_views.versions, name="versions"),
    path("<int:metric>/versions/<int:number>/", version_views.version, name="version"),
    path(
        "<int:metric>/versions/<int:number>/restore/", version_views.restore_version, name="restore_version"
    ),
]
