"""The addresses of raters, below /p/<project>/rating/."""

from __future__ import annotations

from django.urls import path

from judging.people.views import queue

app_name = "rating"

urlpatterns = [
    path("", queue.queue, name="queue"),
]
