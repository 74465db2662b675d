from django.urls import path

from evalsite.accounts import views

app_name = "accounts"

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-out/", views.SignOut.as_view(), name="sign_out"),
    path("password/", views.password, name="password"),
    path("language/", views.choose_language, name="language"),
    path("theme/", views.choose_theme, name="theme"),
    path("view-as/", views.view_as, name="view_as"),
    path("projects/new/", views.create_project, name="create_project"),
    path("p/<slug:slug>/people/", views.members, name="members"),
    path("p/<slug:slug>/people/add/", views.add_member, name="add_member"),
    path("p/<slug:slug>/people/new/", views.create_member, name="create_member"),
    path("p/<slug:slug>/people/<int:user_id>/roles/", views.set_roles, name="set_roles"),
    path("p/<slug:slug>/people/<int:user_id>/remove/", views.remove_member, name="remove_member"),
]
