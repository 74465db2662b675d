"""URLs under p/<project>/endpoints/."""

from __future__ import annotations

from django.urls import path

from judging.endpoints import views

app_name = "endpoints"

urlpatterns = [
    path("", views.endpoints, name="list"),
    path("new/", views.create, name="new"),
    path("try/", views.try_typed, name="try"),
    path("address/", views.address, name="address"),
    path("<int:endpoint>/", views.endpoint, name="endpoint"),
    path("<int:endpoint>/edit/", views.edit, name="edit"),
    path("<int:endpoint>/test/", views.test, name="test"),
    path("<int:endpoint>/publish/", views.publish, name="publish"),
    path("<int:endpoint>/archive/", views.archive, name="archive"),
    path("<int:endpoint>/restore/", views.restore, name="restore"),
]
