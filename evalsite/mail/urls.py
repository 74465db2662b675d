from django.urls import path

from evalsite.mail import views

app_name = "mail"

urlpatterns = [
    path("account/mail/confirm/<str:secret>/", views.confirm, name="confirm"),
    path("password/reset/", views.request_reset, name="request_reset"),
    path("password/reset/<str:secret>/", views.reset, name="reset"),
]
