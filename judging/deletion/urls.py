"""URL of the page that deletes something, under /p/<project>/delete/."""

from __future__ import annotations

from django.urls import path

from judging.deletion import views

app_name = "deletion"

urlpatterns = [path("<str:kind>/<int:pk>/", views.delete, name="delete")]
