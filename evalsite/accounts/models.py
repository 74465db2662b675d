"""Users, projects and roles."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalsite.deletable import Deletable

SAMPLE_SLUGS = {"en": "sample", "zh": "sample-zh"}
"""{language: slug of the sample project}"""


class User(AbstractUser):
    """A person who signs in. `is_superuser` may see and do everything in every project."""

    language = models.CharField(max_length=10, blank=True, default="")
    must_change_password = models.BooleanField(default=False)  # someone else knows the current one
    # The project whose administrator created the account, until another project gives it a role.
    created_for = models.ForeignKey("Project", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")


class Project(Deletable):
    """A project contains data sets, metrics, endpoints and runs."""

    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True)

    @property
    def is_sample(self) -> bool:
        """Whether `manage.py serve` made it, with contents written for it."""
        return self.slug in SAMPLE_SLUGS.values()


class Role(models.TextChoices):
    ANALYST = "analyst", _("analyst")
    RATER = "rater", _("rater")
    REVIEWER = "reviewer", _("reviewer")
    ADMIN = "admin", _("administrator")


class Membership(models.Model):
    """A user's role in a project; a user may hold several."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "project", "role"], name="membership_once")]


class Invitation(models.Model):
    """A link that makes whoever opens it a member: the first person, or as many as `most_uses`. Only the hash of its
    secret is stored."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    roles = models.JSONField()
    note = models.CharField(max_length=200)
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    used_at = models.DateTimeField(null=True, help_text="when it was used up")
    used_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    joins = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        help_text="what it joins beside the project, a key of invitations.purposes; then its role is rater",
    )
    most_uses = models.PositiveSmallIntegerField(
        null=True, help_text="how many people may use it; null: a link for one person"
    )
    uses = models.PositiveSmallIntegerField(default=0, db_default=0, help_text="by how many, if it is shared")

    @property
    def is_shared(self) -> bool:
        """Whether it is a link that many people may use."""
        return self.most_uses is not None


class InvitationUse(models.Model):
    """Somebody who used a shared link. `address` counts the accounts made from a network address; it is forgotten
    within a day."""

    invitation = models.ForeignKey(Invitation, on_delete=models.CASCADE, related_name="accepted")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    address = models.CharField(
        max_length=45, blank=True, default="", help_text="from which the account was made; '': it existed"
    )
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["invitation", "user"], name="invitation_use_once")]
        indexes = [models.Index(fields=["address", "at"], name="invitation_use_by_address")]


class ApiToken(models.Model):
    """Lets a program sign in as its user. Only the token's hash and first characters are stored.

    It never has more than its user's permissions: `scope` and `project` (null: all of the user's) can only take away.
    """

    class Scope(models.TextChoices):
        WRITE = "write", _("Read and change")
        READ = "read", _("Read only")

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)
    scope = models.CharField(max_length=5, choices=Scope.choices, default=Scope.WRITE)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    calls_left = models.FloatField(default=0, help_text="of the burst, at `calls_at` (rate_limit.py)")
    calls_at = models.FloatField(default=0, help_text="seconds since 1970")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    @property
    def ended(self) -> bool:
        """Whether the token has expired."""
        return self.expires_at is not None and self.expires_at <= timezone.now()


class Draft(models.Model):
    """Unsaved input of a form; only its author can see it."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    form = models.CharField(max_length=20)  # drafts.FORMS
    key = models.CharField(max_length=100)  # what the form edits, or what a new object was based on
    data = models.TextField(help_text="form fields as a query string; no secrets")
    saved_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "project", "form", "key"], name="draft_once")]

    @property
    def start(self) -> str:
        """What the new object was based on."""
        return self.key.removeprefix("new").removeprefix("-")


class Identity(models.Model):
    """A user's identity at an OpenID Connect provider: issuer and subject, which never changes."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once")]
