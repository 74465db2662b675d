"""URLs: `organisers` below /p/<project>/evaluations/, `raters` below …/rating/, `desk` below …/desk/<evaluation>/
(numbers only, because raters see them)."""

from __future__ import annotations

from django.urls import path

from judging.people.guidelines import desk_views as desk_guideline
from judging.people.guidelines import views as guidelines
from judging.people.qualification import views as qualifying
from judging.people.questions import views as asking
from judging.people.views import (
    adjudication,
    change,
    evaluations,
    exports,
    gold,
    groups,
    inviting,
    new,
    payment,
    states,
    thresholds,
    trying,
)
from judging.people.views import desk as rate
from judging.people.views import raters as rater_views

organisers = (
    [
        path("", evaluations.evaluations, name="list"),
        path("new/", new.new, name="new"),
        path("<int:pk>/", evaluations.detail, name="detail"),
        path("<int:pk>/open/", evaluations.act, {"action": "open"}, name="open"),
        path("<int:pk>/pause/", evaluations.act, {"action": "pause"}, name="pause"),
        path("<int:pk>/resume/", evaluations.act, {"action": "resume"}, name="resume"),
        path("<int:pk>/end-pilot/", evaluations.act, {"action": "end_pilot"}, name="end_pilot"),
        path("<int:pk>/schedule/", states.schedule, name="schedule"),
        path("<int:pk>/qualification/", qualifying.qualification, name="qualification"),
        path("<int:pk>/raters/<int:rater>/let-in/", qualifying.let_in, name="let_in"),
        path("<int:pk>/raters/<int:rater>/try-again/", qualifying.try_again, name="try_again"),
        path("<int:pk>/questions/", asking.questions, name="questions"),
        path("<int:pk>/questions/<int:question>/answer/", asking.answer, name="answer"),
        path("<int:pk>/change/", change.change, name="change"),
        path("<int:pk>/guideline/", guidelines.guideline, name="guideline"),
        path("<int:pk>/close/", evaluations.act, {"action": "close"}, name="close"),
        path("<int:pk>/reopen/", evaluations.act, {"action": "reopen"}, name="reopen"),
        path("<int:pk>/archive/", evaluations.act, {"action": "archive"}, name="archive"),
        path("<int:pk>/restore/", evaluations.act, {"action": "restore"}, name="restore"),
        path("<int:pk>/sides/", evaluations.rename_sides, name="rename_sides"),
        path("groups/", groups.groups, name="groups"),
        path("groups/<int:group>/", groups.group, name="group"),
        path("groups/<int:group>/delete/", groups.delete_group, name="delete_group"),
        path("<int:pk>/inviting/", inviting.inviting, name="inviting"),
        path("<int:pk>/inviting/list/", inviting.read_list, name="read_list"),
        path("<int:pk>/inviting/link/", inviting.create_link, name="create_link"),
        path("<int:pk>/inviting/links/<int:link>/revoke/", inviting.revoke_link, name="revoke_link"),
        path("<int:pk>/inviting/group/", inviting.add_group, name="add_group"),
        path("<int:pk>/inviting/quota/", inviting.change_quota, name="change_quota"),
        path("<int:pk>/inviting/offer/", inviting.offer, name="offer"),
        path("<int:pk>/raters/add/", evaluations.add_raters, name="add_raters"),
        path("<int:pk>/raters/<int:rater>/", rater_views.rater, name="rater"),
        path("<int:pk>/raters/<int:rater>/leave/", evaluations.leave, name="leave"),
        path(
            "<int:pk>/raters/<int:rater>/pause/", evaluations.pause_rater, {"pause": True}, name="pause_rater"
        ),
        path(
            "<int:pk>/raters/<int:rater>/resume/",
            evaluations.pause_rater,
            {"pause": False},
            name="resume_rater",
        ),
        path("<int:pk>/raters/<int:rater>/set-aside/", rater_views.set_aside, name="set_aside"),
        path("<int:pk>/raters/<int:rater>/count-again/", rater_views.count_again, name="count_again"),
        path("<int:pk>/thresholds/", thresholds.thresholds, name="thresholds"),
        path("<int:pk>/payment/", payment.payment, name="payment"),
        path("<int:pk>/payment.<str:form>", payment.payment_sheet, name="payment_sheet"),
        path("<int:pk>/items/", evaluations.items, name="items"),
        path("<int:pk>/items/<int:number>/", evaluations.item, name="item"),
        path("<int:pk>/items/<int:number>/try/", trying.try_item, name="try_item"),
        path("<int:pk>/items/<int:number>/reassign/", evaluations.reassign, name="reassign"),
        path("<int:pk>/items/<int:number>/gold/", gold.use_as_gold, name="use_as_gold"),
        path("<int:pk>/items/<int:number>/gold/change/", gold.change_gold, name="change_gold"),
        path("<int:pk>/items/<int:number>/gold/remove/", gold.remove_gold, name="remove_gold"),
        path("<int:pk>/gold/rule/", gold.gold_rule, name="gold_rule"),
        path("<int:pk>/gold/", gold.gold, name="gold"),
        path("<int:pk>/differences/", adjudication.inbox, name="inbox"),
        path("<int:pk>/differences/<int:number>/", adjudication.item, name="adjudicate"),
        path("<int:pk>/ratings.<str:form>", exports.export, name="export"),
        path("<int:pk>/import/", evaluations.import_ratings, name="import"),
        path("<int:pk>/import/<int:number>/", evaluations.imported, name="imported"),
        path("<int:pk>/import/<int:number>/stop/", evaluations.stop, name="stop_import"),
    ],
    "people",
)

raters = (
    [
        path("", evaluations.queue, name="queue"),
        path("<int:pk>/join/", inviting.join, name="join"),
    ],
    "rating",
)

desk = (
    [
        path("", rate.page, name="page"),
        path("items/", rate.items, name="items"),
        path("give-back/", rate.give_back, name="give_back"),
        path("mine/", rate.mine, name="mine"),
        path("undo/", rate.undo, name="undo"),
        path("guideline/", desk_guideline.guideline, name="guideline"),
        path("guideline/understood/", desk_guideline.understood, name="understood"),
        path("more/", inviting.more, name="more"),
        path("<uuid:token>/", rate.item, name="item"),
        path("<uuid:token>/verdict/", rate.verdict, name="verdict"),
        path("<uuid:token>/skip/", rate.skip, name="skip"),
        path("<uuid:token>/draft/", rate.draft, name="draft"),
        path("<uuid:token>/question/", asking.ask, name="question"),
        path("<uuid:token>/difference/", rate.difference, name="difference"),
        # kept unsent in browsers since before items had tokens
        path("<int:token>/verdict/", rate.verdict, name="verdict_by_number"),
        path("<int:token>/skip/", rate.skip, name="skip_by_number"),
        path("<int:token>/draft/", rate.draft, name="draft_by_number"),
    ],
    "desk",
)
