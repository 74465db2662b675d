"""Creating and changing projects, users' changes to their own accounts, and deleting what nobody needs any more."""

from __future__ import annotations

from datetime import timedelta

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from evalsite.accounts.members import roles_set
from evalsite.accounts.models import Draft, InvitationUse, Project, Role, User
from evalsite.audit import Action, record

LOCAL_ADMINISTRATOR = "admin"
BACKEND = "django.contrib.auth.backends.ModelBackend"  # of users who sign in without a password form
DRAFTS_KEPT_FOR = timedelta(days=90)
ADDRESSES_KEPT_FOR = timedelta(days=1)


def local_administrator() -> User | None:
    """The account of visitors on the same machine; None if it is deactivated, or `serve` has not created it."""
    return User.objects.filter(username=LOCAL_ADMINISTRATOR, is_active=True).first()


def local_administrator_create() -> User:
    """Get or create the local administrator, who has no password until one is set."""
    user, created = User.objects.get_or_create(
        username=LOCAL_ADMINISTRATOR, defaults={"is_superuser": True, "is_staff": True}
    )
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


@transaction.atomic
def project_create(*, name: str, slug: str = "", owner: User | None = None) -> Project:
    """Create a project with a unique slug; its owner becomes its administrator."""
    wanted = slugify(slug or name)[:70] or "project"
    taken = set(Project.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    free = next(s for s in [wanted, *(f"{wanted}-{n}" for n in range(2, len(taken) + 3))] if s not in taken)
    project = Project.objects.create(name=name, slug=free)
    record(Action.PROJECT_CREATED, project=project, thing=project, by=owner)
    if owner is not None:
        roles_set(project=project, user=owner, roles=[Role.ADMIN])
    return project


@transaction.atomic
def project_rename(*, project: Project, name: str) -> bool:
    """Rename a project, keeping its slug so that links stay valid. False if the name is unchanged."""
    before = Project.objects.select_for_update().get(pk=project.pk).name
    if before == name:
        return False
    Project.objects.filter(pk=project.pk).update(name=name)
    record(Action.PROJECT_RENAMED, project=project, thing=project, name=name, before=before)
    return True


@transaction.atomic
def password_change(*, user: User, password: str) -> None:
    """Set a password chosen by the user. Other sessions end; tokens stay valid."""
    user.set_password(password)
    user.must_change_password = False
    user.save(update_fields=["password", "must_change_password"])
    record(Action.PASSWORD_CHANGED, thing=user, by=user)


@transaction.atomic
def account_edit(*, user: User, name: str, language: str) -> None:
    """Set the displayed name and the language ("" uses the browser's)."""
    before = User.objects.select_for_update().get(pk=user.pk).get_full_name()
    User.objects.filter(pk=user.pk).update(first_name=name, last_name="", language=language)
    if before != name:
        record(Action.ACCOUNT_CHANGED, thing=user, by=user, before=before, after=name)


def delete_expired() -> None:
    """Delete expired sessions, failed logins and addresses that no longer count, and abandoned drafts; workers call it
    regularly."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    AccessAttempt.objects.filter(attempt_time__lt=now - 2 * settings.AXES_COOLOFF_TIME).delete()
    InvitationUse.objects.filter(at__lt=now - ADDRESSES_KEPT_FOR).exclude(address="").update(address="")
    Draft.objects.filter(saved_at__lt=now - DRAFTS_KEPT_FOR).delete()
