"""Links that join an evaluation, and groups of raters."""

from __future__ import annotations

from django.db import models

from evalsite.accounts.models import Invitation, Project, User
from judging.people.models import Evaluation


class StudyLink(models.Model):
    """An invitation that joins an evaluation."""

    invitation = models.OneToOneField(Invitation, on_delete=models.CASCADE, related_name="study_link")
    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="links")


class RaterGroup(models.Model):
    """People of a project who are added to evaluations together."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="rater_groups")
    name = models.CharField(max_length=100)
    users = models.ManyToManyField(User, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="rater_group_once")]
