"""URLs under p/<project>/metrics/."""

from __future__ import annotations

from django.urls import path

from judging.metrics import lint_views, reading_views, transfer_views, views
from judging.metrics.editor.page import JudgeEditor
from judging.metrics.gallery import views as gallery_views
from judging.metrics.rule_editor.page import RuleEditor

app_name = "metrics"

_judge, _rules = {"kind": JudgeEditor}, {"kind": RuleEditor}

urlpatterns = [
    path("", views.metrics, name="list"),
    path("new/", views.new, name="new"),
    path("gallery/<slug:card>/", gallery_views.card, name="gallery"),
    path("preview/", views.preview, _judge, name="preview"),
    path("lint/", lint_views.lint_template, name="lint"),
    path("try/", views.try_row, _judge, name="try"),
    path("rules/start/", views.guided_rules, name="rules_start"),
    path("rules/new/", views.new_rules, name="rules_new"),
    path("rules/preview/", views.preview, _rules, name="rules_preview"),
    path("rules/try/", views.try_row, _rules, name="rules_try"),
    path("rules/lint/", lint_views.lint_rules, name="rules_lint"),
    path("rules/reference/", views.reference, {"page": "rules"}, name="rules_reference"),
    path("reading/", reading_views.reading, name="reading"),
    path("reference/<slug:page>/", views.reference, name="reference"),
    path("import/", transfer_views.import_file, name="import"),
    path("export/", transfer_views.export_all, name="export_all"),
    path("<int:metric>/", views.edit, name="edit"),
    path("<int:metric>/past-replies/", views.past_replies, name="past_replies"),
    path("<int:metric>/export/", transfer_views.export_one, name="export"),
    path("<int:metric>/compare/", views.compare, name="compare"),
    path("<int:metric>/versions/<int:number>/export/", transfer_views.export_version, name="export_version"),
    path("<int:metric>/copy/", views.copy, name="copy"),
    path("<int:metric>/archive/", views.archive, name="archive"),
    path("<int:metric>/restore/", views.restore, name="restore"),
    path("<int:metric>/gallery/", gallery_views.keep, name="keep"),
    path("<int:metric>/gallery/remove/", gallery_views.leave, name="leave"),
    path("<int:metric>/versions/", views.versions, name="versions"),
    path("<int:metric>/versions/<int:number>/", views.version, name="version"),
    path("<int:metric>/versions/<int:number>/restore/", views.restore_version, name="restore_version"),
]
