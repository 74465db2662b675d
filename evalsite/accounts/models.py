"""Who uses the site, and in which project as what."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A person who signs in. `is_superuser` may see and do everything in every project."""

    language = models.CharField(max_length=10, blank=True, default="")

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")


class Project(models.Model):
    """What data sets, metrics, endpoints and runs belong to."""

    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)


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
