from django.urls import path

from judging.overview import views
from judging.review.teamwork import inbox

urlpatterns = [
    path("", views.home, name="home"),
    path("inbox/", inbox.inbox, name="inbox"),
    path("inbox/read/", inbox.read, name="inbox_read"),
    path("help/", views.guide, {"page": "start"}, name="help"),
    path("help/<slug:page>/", views.guide, name="guide"),
    path("search/", views.search, name="search"),
    path("p/<slug:slug>/", views.project, name="project"),
]
