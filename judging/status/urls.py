from django.urls import path

from judging.status import views

urlpatterns = [
    path("status/", views.status, name="status"),
    path("status/components/", views.components, name="components"),
    path("metrics", views.metrics, name="prometheus"),
]
