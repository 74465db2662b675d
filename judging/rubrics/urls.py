"""URLs of drafts of rubrics under /p/<project>/rubrics/."""

from __future__ import annotations

from django.urls import path

from judging.rubrics import views

app_name = "rubrics"
_ROW = "<int:dataset>/v<int:number>/<int:line>/"

urlpatterns = [
    path(_ROW, views.rubric, name="row"),
    path(_ROW + "draft/", views.draft, name="draft"),
    path(_ROW + "drafts/<int:pk>/", views.decide, name="decide"),
]
