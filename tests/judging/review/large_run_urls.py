"""URLs of the site with limits under which a small run is treated like a large one."""

from __future__ import annotations

from django.urls import path

from evalsite.urls import handler400, handler500, urlpatterns
from judging.filters.page_limits import Limits
from judging.review import list_views
from judging.runs.rerun import views as rerun

__all__ = ["handler400", "handler500", "urlpatterns"]

_RUN = "p/<slug:slug>/runs/<int:pk>/"
_LISTS = {"limits": Limits(few=-1, entries=20, judgements=20, scattered=20, window=8, counted=9, lines=-1)}
_ACTIONS = {"limits": Limits(counted=3, lines=-1)}
urlpatterns = [
    path(_RUN + "judgements/", list_views.judgements, _LISTS),
    path(_RUN + "items/", list_views.items, _LISTS),
    path(_RUN + "filters/", list_views.filter_menu, _LISTS),
    path(_RUN + "judge-again/", rerun.judge_again, _ACTIONS),
    path(_RUN + "read-again/<int:metric>/", rerun.read_again, _ACTIONS),
    *urlpatterns,
]
