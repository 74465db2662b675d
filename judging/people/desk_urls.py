"""The addresses of the desk, below /p/<project>/desk/<evaluation>/: numbers only, since raters see them."""

from __future__ import annotations

from django.urls import path

from judging.people import desk_views as views

app_name = "desk"

urlpatterns = [
    path("", views.page, name="page"),
    path("items/", views.items, name="items"),
    path("give-back/", views.give_back, name="give_back"),
    path("mine/", views.mine, name="mine"),
    path("undo/", views.undo, name="undo"),
    path("<int:assignment_pk>/", views.item, name="item"),
    path("<int:assignment_pk>/verdict/", views.verdict, name="verdict"),
    path("<int:assignment_pk>/skip/", views.skip, name="skip"),
    path("<int:assignment_pk>/draft/", views.draft, name="draft"),
    path("<int:assignment_pk>/difference/", views.difference, name="difference"),
]
