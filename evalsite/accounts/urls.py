from django.urls import path

from evalsite.accounts import (
    audit_views,
    drafts,
    invitation_views,
    member_views,
    oidc_views,
    own_views,
    project_views,
    views,
)

app_name = "accounts"
_PEOPLE = "p/<slug:slug>/people/"

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="sign_in"),
    path("sign-in/sso/", oidc_views.leave, name="oidc"),
    path("sign-in/sso/back/", oidc_views.come_back, name="oidc_back"),
    path("sign-out/", views.SignOut.as_view(), name="sign_out"),
    path("language/", views.choose_language, name="language"),
    path("theme/", views.choose_theme, name="theme"),
    path("view-as/", views.view_as, name="view_as"),
    path("account/", own_views.account, name="account"),
    path("account/tokens/", own_views.make_token, name="make_token"),
    path("account/tokens/<int:pk>/revoke/", own_views.revoke_token, name="revoke_token"),
    path("password/", own_views.password, name="password"),
    path("join/<str:secret>/", invitation_views.join, name="join"),
    path("projects/new/", project_views.create_project, name="create_project"),
    path("p/<slug:slug>/settings/", project_views.project_settings, name="project_settings"),
    path("p/<slug:slug>/settings/archive/", project_views.archive_project, name="archive_project"),
    path("p/<slug:slug>/settings/restore/", project_views.restore_project, name="restore_project"),
    path("p/<slug:slug>/log/", audit_views.project_log, name="project_log"),
    path("p/<slug:slug>/log/export.csv", audit_views.project_log_csv, name="project_log_csv"),
    path("p/<slug:slug>/drafts/<slug:form>/<str:key>/", drafts.draft, name="draft"),
    path("log/", audit_views.site_log, name="site_log"),
    path("log/export.csv", audit_views.site_log_csv, name="site_log_csv"),
    path(_PEOPLE, member_views.members, name="members"),
    path(_PEOPLE + "add/", member_views.add_member, name="add_member"),
    path(_PEOPLE + "new/", member_views.create_member, name="create_member"),
    path(_PEOPLE + "invite/", member_views.invite, name="invite"),
    path(_PEOPLE + "invitations/<int:pk>/revoke/", member_views.revoke_invitation, name="revoke_invitation"),
    path(_PEOPLE + "<int:user_id>/roles/", member_views.set_roles, name="set_roles"),
    path(_PEOPLE + "<int:user_id>/remove/", member_views.remove_member, name="remove_member"),
    path(_PEOPLE + "<int:user_id>/password/", member_views.reset_password, name="reset_password"),
]
