from django.contrib.auth.views import LogoutView
from django.urls import path

from evalsite.accounts import audit_log, drafts, oidc_views, project_views, views

app_name = "accounts"
_PEOPLE = "p/<slug:slug>/people/"

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-in/sso/", oidc_views.redirect_to_provider, name="oidc"),
    path("sign-in/sso/back/", oidc_views.provider_callback, name="oidc_back"),
    path("sign-out/", LogoutView.as_view(), name="sign_out"),
    path("language/", views.choose_language, name="language"),
    path("theme/", views.choose_theme, name="theme"),
    path("view-as/", views.view_as, name="view_as"),
    path("account/", views.account, name="account"),
    path("account/mail/", views.mail_settings, name="mail"),
    path("account/tokens/", views.make_token, name="make_token"),
    path("account/tokens/<int:pk>/revoke/", views.revoke_token, name="revoke_token"),
    path("password/", views.password, name="password"),
    path("join/<str:secret>/", views.join, name="join"),
    path("projects/new/", project_views.create_project, name="create_project"),
    path("p/<slug:slug>/settings/", project_views.project_settings, name="project_settings"),
    path("p/<slug:slug>/settings/archive/", project_views.archive_project, name="archive_project"),
    path("p/<slug:slug>/settings/restore/", project_views.restore_project, name="restore_project"),
    path("p/<slug:slug>/log/", audit_log.project_log, name="project_log"),
    path("p/<slug:slug>/log/export.csv", audit_log.project_log_csv, name="project_log_csv"),
    path("p/<slug:slug>/drafts/<slug:form>/<str:key>/", drafts.draft, name="draft"),
    path("log/", audit_log.site_log, name="site_log"),
    path("log/export.csv", audit_log.site_log_csv, name="site_log_csv"),
    path(_PEOPLE, project_views.members, name="members"),
    path(_PEOPLE + "add/", project_views.add_member, name="add_member"),
    path(_PEOPLE + "new/", project_views.create_member, name="create_member"),
    path(_PEOPLE + "invite/", project_views.invite, name="invite"),
    path(_PEOPLE + "invitations/<int:pk>/revoke/", project_views.revoke_invitation, name="revoke_invitation"),
    path(_PEOPLE + "<int:user_id>/roles/", project_views.set_roles, name="set_roles"),
    path(_PEOPLE + "<int:user_id>/remove/", project_views.remove_member, name="remove_member"),
    path(_PEOPLE + "<int:user_id>/password/", project_views.reset_password, name="reset_password"),
]
