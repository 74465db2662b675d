from django.urls import path

from evalsite.accounts import views

app_name = "accounts"

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-out/", views.SignOut.as_view(), name="sign_out"),
    path("language/", views.choose_language, name="language"),
    path("view-as/", views.view_as, name="view_as"),
]
