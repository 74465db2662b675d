"""URLs of runs and their judgements under /p/<project>/runs/."""

from __future__ import annotations

from django.urls import path

import judging.evidence.views as evidence
import judging.review.list_views as review_lists
import judging.review.teamwork.bulk as bulk
import judging.review.teamwork.inbox as inbox
import judging.review.teamwork.views as teamwork
from judging.people.asking import views as asking
from judging.reports import board_views, metric_people, people_result, sharing, verdict_views
from judging.reports import views as reports
from judging.reports.comparison import views as comparison
from judging.review import columns, judgement_page, saved_views, sending_rules
from judging.runs import views
from judging.runs.rerun import views as rerun
from judging.transfer.results_import import views as results_import

app_name = "runs"

urlpatterns = [
    path("", views.runs, name="list"),
    path("new/", views.new, name="new"),
    path("import/", results_import.new, name="import_results"),
    path("import/<int:pk>/", results_import.detail, name="results_import"),
    path("import/<int:pk>/confirm/", results_import.confirm, name="import_confirm"),
    path("import/<int:pk>/discard/", results_import.discard, name="import_discard"),
    path("metrics/<int:metric>/people/", metric_people.metric_people, name="metric_people"),
    path("leaderboard/", board_views.leaderboard, name="leaderboard"),
    path("<int:pk>/", views.detail, name="detail"),
    path("<int:pk>/archive/", views.archive, name="archive"),
    path("<int:pk>/restore/", views.restore, name="restore"),
    path("<int:pk>/pause/", views.pause, name="pause"),
    path("<int:pk>/resume/", views.resume, name="resume"),
    path("<int:pk>/cancel/", views.cancel, name="cancel"),
    path("<int:pk>/retry/", views.retry, name="retry"),
    path("<int:pk>/extend/", views.extend, name="extend"),
    path("<int:pk>/keep-answers/", views.keep_answers, name="keep_answers"),
    path("<int:pk>/read-again/<int:metric>/", rerun.read_again, name="read_again"),
    path("<int:pk>/judge-again/", rerun.judge_again, name="judge_again"),
    path("<int:pk>/items/", review_lists.items, name="items"),
    path("<int:pk>/filters/", review_lists.filter_menu, name="filter_menu"),
    path("<int:pk>/columns/", columns.choose, name="choose_columns"),
    path("<int:pk>/views/", saved_views.save, name="save_view"),
    path("<int:pk>/views/<int:view_pk>/", saved_views.change, name="change_view"),
    path("<int:pk>/views/<int:view_pk>/delete/", saved_views.delete, name="delete_view"),
    path("<int:pk>/items/answer/<int:response_pk>/", review_lists.answer, name="answer"),
    path("<int:pk>/judgements/", review_lists.judgements, name="judgements"),
    path("<int:pk>/judgements/<int:judgement_pk>/", judgement_page.judgement, name="judgement"),
    path("<int:pk>/judgements/<int:judgement_pk>/panel/", judgement_page.panel, name="panel"),
    path("<int:pk>/judgements/<int:judgement_pk>/pill/", review_lists.pill, name="pill"),
    path("<int:pk>/judgements/<int:judgement_pk>/override/", judgement_page.override, name="override"),
    path("<int:pk>/judgements/<int:judgement_pk>/withdraw/", judgement_page.withdraw, name="withdraw"),
    path("<int:pk>/judgements/<int:judgement_pk>/mark/<str:kind>/", teamwork.mark, name="mark"),
    path("<int:pk>/judgements/<int:judgement_pk>/comment/", teamwork.comment, name="comment"),
    path(
        "<int:pk>/judgements/<int:judgement_pk>/comment/<int:comment_pk>/",
        teamwork.comment_change,
        name="comment_change",
    ),
    path("<int:pk>/first/", teamwork.first, name="first_judgement"),
    path("<int:pk>/at/<int:metric>/<int:response>/", teamwork.at, name="at"),
    path("<int:pk>/act/<str:kind>/", bulk.act, name="act"),
    path("<int:pk>/actions/", bulk.actions, name="actions"),
    path("<int:pk>/actions/<int:action_pk>/undo/", bulk.undo_action, name="undo_action"),
    path("mine/", inbox.mine, name="mine"),
    path("rules/", sending_rules.rules, name="sending_rules"),
    path("rules/<int:rule>/pause/", sending_rules.act, {"action": "pause"}, name="pause_rule"),
    path("rules/<int:rule>/resume/", sending_rules.act, {"action": "resume"}, name="resume_rule"),
    path("rules/<int:rule>/end/", sending_rules.act, {"action": "end"}, name="end_rule"),
    path("<int:pk>/export/<str:form>/", review_lists.export, name="export"),
    path("<int:pk>/compare/", comparison.compare, name="compare"),
    path(
        "<int:pk>/compare/<int:other>/<int:first>/<int:second>/", comparison.compare_item, name="compare_item"
    ),
    path("<int:pk>/evidence/", evidence.evidence, name="evidence"),
    path("<int:pk>/evidence/rules/", evidence.rules, name="evidence_rules"),
    path("<int:pk>/people-result/", people_result.people_result, name="people_result"),
    path("<int:pk>/ask/", asking.ask, name="ask"),
    path("<int:pk>/report/", reports.report, name="report"),
    path("<int:pk>/report/pair/", reports.pair, name="report_pair"),
    path("<int:pk>/report/agreement/", reports.agreement, name="report_agreement"),
    path("<int:pk>/report/verdicts/", verdict_views.verdicts, name="report_verdicts"),
    path("<int:pk>/report/links/", sharing.links, name="report_links"),
    path("<int:pk>/report/links/<int:link_pk>/revoke/", sharing.revoke, name="report_revoke_link"),
    path("<int:pk>/report/<str:name>", reports.report_file, name="report_file"),
]
