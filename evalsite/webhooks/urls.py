from django.urls import path

from evalsite.webhooks import views

app_name = "webhooks"
_ONE = "<int:webhook>/"

urlpatterns = [
    path("", views.webhooks, name="list"),
    path(_ONE, views.webhook, name="webhook"),
    path(_ONE + "rotate/", views.rotate, name="rotate"),
    path(_ONE + "test/", views.send_test, name="test"),
    path(_ONE + "on/", views.turn_on, name="on"),
    path(_ONE + "off/", views.turn_off, name="off"),
    path(_ONE + "delete/", views.delete, name="delete"),
    path(_ONE + "deliveries/<int:delivery>/send-again/", views.send_again, name="send_again"),
]
