"""The addresses of human evaluations for those who organise and adjudicate, below /p/<project>/evaluations/."""

from __future__ import annotations

from django.urls import path

from judging.people.views import adjudicating, gilding, making, organising, transfer

app_name = "people"

urlpatterns = [
    path("", organising.evaluations, name="list"),
    path("new/", making.new, name="new"),
    path("<int:pk>/", organising.detail, name="detail"),
    path("<int:pk>/close/", organising.close, name="close"),
    path("<int:pk>/reopen/", organising.reopen, name="reopen"),
    path("<int:pk>/archive/", organising.archive, name="archive"),
    path("<int:pk>/restore/", organising.restore, name="restore"),
    path("<int:pk>/sides/", organising.rename_sides, name="rename_sides"),
    path("<int:pk>/raters/add/", organising.add_raters, name="add_raters"),
    path("<int:pk>/raters/<int:rater>/leave/", organising.leave, name="leave"),
    path("<int:pk>/items/", organising.items, name="items"),
    path("<int:pk>/items/<int:number>/", organising.item, name="item"),
    path("<int:pk>/items/<int:number>/reassign/", organising.reassign, name="reassign"),
    path("<int:pk>/items/<int:number>/gold/", gilding.gild, name="gild"),
    path("<int:pk>/gold/", gilding.gold, name="gold"),
    path("<int:pk>/differences/", adjudicating.inbox, name="inbox"),
    path("<int:pk>/differences/<int:number>/", adjudicating.item, name="adjudicate"),
    path("<int:pk>/ratings.<str:form>", transfer.export, name="export"),
    path("<int:pk>/import/", transfer.take_in, name="import"),
    path("<int:pk>/import/<int:number>/", transfer.taken_in, name="taken_in"),
    path("<int:pk>/import/<int:number>/stop/", transfer.stop, name="stop_import"),
]
