from django.urls import path

from judging.overview import views

urlpatterns = [
    path("", views.home, name="home"),
    path("p/<slug:slug>/", views.project, name="project"),
]
