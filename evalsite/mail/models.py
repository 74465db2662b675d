"""Addresses that people confirmed, mail that waits to be sent, and links that reset a password."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import User


class Kind(models.TextChoices):
    """Why a mail is sent. But for `confirm`, the name of a switch of MailAddress."""

    CONFIRM = "confirm"
    MENTIONS = "mentions"
    RATINGS = "ratings"
    RUNS = "runs"
    ALARMS = "alarms"
    INVITATIONS = "invitations"
    RESETS = "resets"


class MailAddress(models.Model):
    """A user's address and what is sent to it. Nothing is sent but to a confirmed address."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="mail")
    address = models.CharField(max_length=254, blank=True, default="", db_index=True, help_text="confirmed")
    pending = models.CharField(max_length=254, blank=True, default="", help_text="not confirmed yet")
    token_hash = models.CharField(max_length=64, blank=True, default="", db_index=True)
    token_until = models.DateTimeField(null=True)
    time_zone = models.CharField(max_length=60, blank=True, default="", help_text="'': TIME_ZONE")
    mentions = models.BooleanField(_("Mentions in comments, at once"), default=True)
    ratings = models.BooleanField(_("Ratings that wait, once a day"), default=True)
    runs = models.BooleanField(_("Runs that I started and that finished"), default=True)
    alarms = models.BooleanField(_("Alarms of watched judges"), default=True, db_default=True)
    invitations = models.BooleanField(_("Invitations to projects"), default=True)
    resets = models.BooleanField(_("Links to reset my password"), default=True)
    digest_on = models.DateField(null=True, help_text="the reader's day of the last daily mail")


class OutgoingMail(models.Model):
    """A mail that waits; deleted once it is sent. Its text is encrypted, because it may hold the secret of a link."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=11, choices=Kind.choices)
    address = models.CharField(max_length=254)
    subject = models.CharField(max_length=300)
    text_encrypted = models.TextField()
    retries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)


class PasswordReset(models.Model):
    """A request for an address, which a worker looks up, or a link of an account, of which the hash is stored."""

    address = models.CharField(max_length=254, blank=True, default="", help_text="as it was requested")
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    token_hash = models.CharField(max_length=64, blank=True, default="", db_index=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
