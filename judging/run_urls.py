"""The addresses of runs and their judgements, below /p/<project>/runs/."""

from __future__ import annotations

from django.urls import path

import judging.review.views as review
from judging.comparison import views as comparison
from judging.reports import board_views, people_result, share_views
from judging.reports import views as reports
from judging.runs import views
from judging.runs.rerun import views as rerun
from judging.runs.results_import import views as results_import

app_name = "runs"

urlpatterns = [
    path("", views.runs, name="list"),
    path("new/", views.new, name="new"),
    path("import/", results_import.new, name="import_results"),
    path("import/<int:pk>/", results_import.detail, name="results_import"),
    path("import/<int:pk>/confirm/", results_import.confirm, name="import_confirm"),
    path("import/<int:pk>/discard/", results_import.discard, name="import_discard"),
    path("leaderboard/", board_views.leaderboard, name="leaderboard"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/pause/", views.pause, name="pause"),
    path("<int:pk>/resume/", views.resume, name="resume"),
    path("<int:pk>/cancel/", views.cancel, name="cancel"),
    path("<int:pk>/retry/", views.retry, name="retry"),
    path("<int:pk>/keep-answers/", views.keep_answers, name="keep_answers"),
    path("<int:pk>/read-again/<int:metric>/", rerun.read_again, name="read_again"),
    path("<int:pk>/judge-again/", rerun.judge_again, name="judge_again"),
    path("<int:pk>/items/", review.items, name="items"),
    path("<int:pk>/items/answer/<int:response_pk>/", review.answer, name="answer"),
    path("<int:pk>/judgements/", review.judgements, name="judgements"),
    path("<int:pk>/judgements/<int:judgement_pk>/", review.judgement, name="judgement"),
    path("<int:pk>/judgements/<int:judgement_pk>/panel/", review.panel, name="panel"),
    path("<int:pk>/judgements/<int:judgement_pk>/override/", review.override, name="override"),
    path("<int:pk>/judgements/<int:judgement_pk>/withdraw/", review.withdraw, name="withdraw"),
    path("<int:pk>/export/<str:form>/", review.export, name="export"),
    path("<int:pk>/compare/", comparison.compare, name="compare"),
    path(
        "<int:pk>/compare/<int:other>/<int:first>/<int:second>/", comparison.compare_item, name="compare_item"
    ),
    path("<int:pk>/people-result/", people_result.people_result, name="people_result"),
    path("<int:pk>/report/", reports.report, name="report"),
    path("<int:pk>/report/pair/", reports.pair, name="report_pair"),
    path("<int:pk>/report/agreement/", reports.agreement, name="report_agreement"),
    path("<int:pk>/report/links/", share_views.links, name="report_links"),
    path("<int:pk>/report/links/<int:link_pk>/revoke/", share_views.revoke, name="report_revoke_link"),
    path("<int:pk>/report/<str:name>", reports.report_file, name="report_file"),
]
