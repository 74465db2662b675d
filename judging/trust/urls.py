"""URLs of judges, their tests and licences under /p/<project>/judges/."""

from __future__ import annotations

from django.urls import path

from judging.trust import improve_views, judges_views, licence_views, suggest_views, threshold_views, views
from judging.trust.drill_pages import views as drill_views
from judging.trust.gallery import views as gallery_views
from judging.trust.succession import views as succession_views
from judging.trust.watch import views as watch_views

app_name = "trust"
IN_RUN = "tests/<int:split>/disagreements/<int:run_metric>"

urlpatterns = [
    path("", judges_views.judges, name="judges"),
    path("thresholds/", threshold_views.thresholds, name="thresholds"),
    path("gallery/<slug:card>/", gallery_views.measurements, name="measurements"),
    path("gallery/<slug:card>/measure/", gallery_views.measure, name="measure"),
    path("gallery/measurements/<int:measurement>/stop/", gallery_views.stop, name="measure_stop"),
    path("drills/", drill_views.drills, name="drills"),
    path("drills/new/", drill_views.new, name="drill_new"),
    path("drills/<int:pk>/", drill_views.drill, name="drill"),
    path("drills/<int:pk>/<slug:defect>/", drill_views.items, name="drill_items"),
    path("successions/", succession_views.successions, name="successions"),
    path("successions/new/<int:run>/<int:number>/", succession_views.new, name="succession_new"),
    path("successions/<int:pk>/", succession_views.succession, name="succession"),
    path("successions/<int:pk>/margin/", succession_views.margin, name="succession_margin"),
    path("<int:metric>/", views.align, name="align"),
    path("tests/<int:split>/further/", views.further, name="further"),
    path("tests/<int:split>/close/", views.close, name="close"),
    path("tests/<int:split>/open/", views.open_test, name="open"),
    path("<int:metric>/agreement/", improve_views.agreement, name="agreement"),
    path("tests/<int:split>/versions/", improve_views.versions, name="versions"),
    path(f"{IN_RUN}/", improve_views.disagreements, name="disagreements"),
    path(f"{IN_RUN}/suggest/", suggest_views.suggest, name="suggest"),
    path(f"{IN_RUN}/suggest/<int:suggestion>/", suggest_views.decide, name="decide"),
    path(f"{IN_RUN}/<int:judgement>/example/", improve_views.take_example, name="take_example"),
    path(f"{IN_RUN}/<int:judgement>/doubt/", improve_views.doubt, name="doubt"),
    path("licences/<int:licence>/", licence_views.licence, name="licence"),
    path("licences/<int:licence>/watch/", watch_views.begin, name="watch_begin"),
    path("watches/<int:watch>/", watch_views.watch, name="watch"),
    path("watches/<int:watch>/schedule/", watch_views.schedule, name="watch_schedule"),
    path("watches/<int:watch>/ceilings/", watch_views.ceilings, name="watch_ceilings"),
    path("watches/<int:watch>/end/", watch_views.end, name="watch_end"),
    path("licences/<int:licence>/expiry/", licence_views.expire, name="expire"),
    path("licences/<int:licence>/suspensions/<int:suspension>/lift/", licence_views.lift, name="lift"),
]
