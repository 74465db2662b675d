"""URLs of looks under /p/<project>/look/."""

from __future__ import annotations

from django.urls import path

from judging.look import group_views, views

app_name = "look"

urlpatterns = [
    path("", views.looks, name="list"),
    path("new/", views.new, name="new"),
    path("<int:pk>/", views.go_on, name="go_on"),
    path("<int:pk>/<int:place>/", views.answer, name="answer"),
    path("<int:pk>/<int:place>/note/", views.note, name="note"),
    path("<int:pk>/groups/", group_views.groups, name="groups"),
    path("<int:pk>/groups/new/", group_views.create, name="create_group"),
    path("<int:pk>/groups/move/", group_views.move, name="move"),
    path("<int:pk>/groups/propose/", group_views.propose, name="propose"),
    path("<int:pk>/groups/proposals/<int:proposal>/", group_views.take, name="take"),
    path("<int:pk>/groups/<int:group>/", group_views.change, name="change_group"),
    path("<int:pk>/groups/<int:group>/merge/", group_views.merge, name="merge"),
    path("<int:pk>/groups/<int:group>/delete/", group_views.delete, name="delete_group"),
    path("<int:pk>/export/<str:form>/", group_views.export, name="export"),
]
