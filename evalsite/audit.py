"""The audit log. Services call `record` in their transaction, so that no change is stored without its entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry

NAME_LENGTH = 300
HIDDEN = "…"
_SECRET = re.compile(r"password|secret|key|token|authorization|cookie|proxy|headers", re.IGNORECASE)
_actor: ContextVar[Callable[[], tuple[object, str]] | None] = ContextVar("actor", default=None)


class Action(models.TextChoices):
    """All audited actions. Codes in use never change."""

    MEMBER_ADDED = "member.added", _("Member added")
    MEMBER_CHANGED = "member.changed", _("Roles changed")
    MEMBER_REMOVED = "member.removed", _("Member removed")
    INVITATION_CREATED = "invitation.created", _("Invitation created")
    INVITATION_REVOKED = "invitation.revoked", _("Invitation revoked")
    INVITATION_USED = "invitation.used", _("Invitation accepted")
    ACCOUNT_CREATED = "account.created", _("Account created")
    ACCOUNT_CHANGED = "account.changed", _("Account updated")
    PASSWORD_CHANGED = "password.changed", _("Password changed")
    PASSWORD_RESET = "password.reset", _("Password reset by mail")
    MAIL_ADDRESS_CHANGED = "mail.address", _("Mail address confirmed or removed")
    PASSWORD_SET = "password.set", _("Password set by an administrator")
    TOKEN_CREATED = "token.created", _("Token created")
    TOKEN_REVOKED = "token.revoked", _("Token revoked")
    SIGN_IN_LOCKED = "sign_in.locked", _("Sign-in locked after failed attempts")
    PROJECT_CREATED = "project.created", _("Project created")
    PROJECT_RENAMED = "project.renamed", _("Project renamed")
    PROJECT_ARCHIVED = "project.archived", _("Project archived")
    PROJECT_RESTORED = "project.restored", _("Project restored")
    PROJECT_DELETED = "project.deleted", _("Project deleted")
    ENDPOINT_CREATED = "endpoint.created", _("Endpoint created")
    ENDPOINT_CHANGED = "endpoint.changed", _("Endpoint updated")
    ENDPOINT_ARCHIVED = "endpoint.archived", _("Endpoint archived")
    ENDPOINT_RESTORED = "endpoint.restored", _("Endpoint restored")
    WEBHOOK_CREATED = "webhook.created", _("Webhook created")
    WEBHOOK_CHANGED = "webhook.changed", _("Webhook updated")
    WEBHOOK_ROTATED = "webhook.rotated", _("Signing secret of a webhook replaced")
    WEBHOOK_ON = "webhook.on", _("Webhook turned on")
    WEBHOOK_OFF = "webhook.off", _("Webhook turned off")
    WEBHOOK_DELETED = "webhook.deleted", _("Webhook deleted")
    METRIC_CREATED = "metric.created", _("Metric created")
    METRIC_CHANGED = "metric.changed", _("Metric updated")
    METRIC_ARCHIVED = "metric.archived", _("Metric archived")
    METRIC_RESTORED = "metric.restored", _("Metric restored")
    SPLIT_DRAWN = "split.drawn", _("Test of a judge drawn")
    TEST_CLOSED = "test.closed", _("Test of a judge closed")
    TEST_OPENED = "test.opened", _("Test of a judge opened")
    LICENCE_SUSPENDED = "licence.suspended", _("Licence of a judge suspended")
    LICENCE_EXPIRES = "licence.expires", _("Date of a licence set")
    LICENCE_LIFTED = "licence.lifted", _("Suspension of a licence lifted")
    DRILL_BEGUN = "drill.begun", _("Fire drill of a judge begun")
    SUCCESSION_BEGUN = "succession.begun", _("Succession of a judge begun")
    SUCCESSION_MARGIN = "succession.margin", _("Margin of a succession changed")
    WATCH_BEGUN = "watch.begun", _("Watch of a judge begun")
    WATCH_CHANGED = "watch.changed", _("Schedule or ceilings of a watch changed")
    WATCH_ALARM = "watch.alarm", _("Watch of a judge raised an alarm")
    WATCH_ENDED = "watch.ended", _("Watch of a judge ended")
    PROMPT_SUGGESTED = "prompt.suggested", _("Better prompt suggested by a model")
    THRESHOLDS_CHANGED = "licence.thresholds", _("Thresholds of licences changed")
    DATASET_UPLOADED = "dataset.uploaded", _("Data set uploaded")
    DATASET_READ_AS = "dataset.read_as", _("Data set re-read in another format")
    DATASET_REPAIRED = "dataset.repaired", _("Data set repaired")
    DATASET_EDITED = "dataset.edited", _("Data set rows edited")
    DATASET_ANSWERS = "dataset.answers", _("Answers added to a data set")
    DATASET_IMPORTED = "dataset.imported", _("Data set imported from another tool")
    DATASET_LEFT_OUT = "dataset.left_out", _("Invalid rows excluded")
    DATASET_ARCHIVED = "dataset.archived", _("Data set archived")
    DATASET_RESTORED = "dataset.restored", _("Data set restored")
    DATASET_DELETED = "dataset.deleted", _("Data set deleted")
    VERSION_DELETED = "version.deleted", _("Data set version deleted")
    RUN_STARTED = "run.started", _("Run started")
    RUN_PAUSED = "run.paused", _("Run paused")
    RUN_RESUMED = "run.resumed", _("Run resumed")
    RUN_CANCELLED = "run.cancelled", _("Run cancelled")
    RUN_EXTENDED = "run.extended", _("Run extended")
    RUN_RETRIED = "run.retried", _("Run retried")
    RUN_JUDGED_AGAIN = "run.judged_again", _("Judgements re-judged")
    RUN_READ_AGAIN = "run.read_again", _("Replies re-parsed")
    RUN_ARCHIVED = "run.archived", _("Run archived")
    RUN_RESTORED = "run.restored", _("Run restored")
    RUN_DELETED = "run.deleted", _("Run deleted")
    EVIDENCE_WRITTEN = "evidence.written", _("Evidence of a run written")
    EVIDENCE_RULES = "evidence.rules", _("Rules for evidence files changed")
    REPORT_SHARED = "report.shared", _("Report link created")
    REPORT_UNSHARED = "report.unshared", _("Report link revoked")
    EVALUATION_CREATED = "evaluation.created", _("Human evaluation created")
    EVALUATION_OPENED = "evaluation.opened", _("Human evaluation opened")
    EVALUATION_PAUSED = "evaluation.paused", _("Human evaluation paused")
    EVALUATION_RESUMED = "evaluation.resumed", _("Human evaluation resumed")
    EVALUATION_SCHEDULED = "evaluation.scheduled", _("Dates or pilot of a human evaluation changed")
    PILOT_ENDED = "evaluation.pilot_ended", _("Pilot of a human evaluation ended")
    EVALUATION_CLOSED = "evaluation.closed", _("Human evaluation closed")
    EVALUATION_DELETED = "evaluation.deleted", _("Human evaluation deleted")
    EVALUATION_REOPENED = "evaluation.reopened", _("Human evaluation reopened")
    EVALUATION_SIDES_NAMED = "evaluation.sides_named", _("Human evaluation sides renamed")
    GOLD_ADDED = "gold.added", _("Gold items added")
    GOLD_CHANGED = "gold.changed", _("Gold item changed")
    GOLD_REMOVED = "gold.removed", _("Gold item removed")
    GOLD_MISSED = "gold.missed", _("Rater missed the pass mark of gold")
    GOLD_RULE_CHANGED = "gold.rule_changed", _("Pass mark of gold changed")
    QUALIFICATION_CHANGED = "qualification.changed", _("Training and qualification changed")
    QUALIFICATION_PASSED = "qualification.passed", _("Rater passed the qualification")
    QUALIFICATION_FAILED = "qualification.failed", _("Rater did not pass the qualification")
    QUALIFICATION_WAIVED = "qualification.waived", _("Rater let in without passing")
    QUALIFICATION_AGAIN = "qualification.again", _("Rater given another try at the qualification")
    RATER_PAUSED = "rater.paused", _("Rater paused")
    RATER_RESUMED = "rater.resumed", _("Rater resumed")
    THRESHOLDS_OF_RATERS = "rater.thresholds", _("Thresholds of raters' figures changed")
    RATER_SET_ASIDE = "rater.set_aside", _("Ratings of a rater set aside")
    RATER_COUNTED = "rater.counted", _("Ratings of a rater counted again")
    RATER_ADDED = "rater.added", _("Rater added")
    RATER_LEFT = "rater.left", _("Rater removed")
    QUESTION_ANSWERED = "question.answered", _("Rater's question answered")
    EVALUATION_CHANGED = "evaluation.changed", _("Evaluation changed")
    GUIDELINE_CHANGED = "guideline.changed", _("Guideline changed")
    QUOTA_CHANGED = "quota.changed", _("Limit of items per rater changed")
    QUOTA_RAISED = "quota.raised", _("Rater agreed to more items")
    EVALUATION_OFFERED = "evaluation.offered", _("Human evaluation offered to all raters, or no longer")
    RATER_GROUP_SAVED = "rater_group.saved", _("Group of raters saved")
    RATER_GROUP_DELETED = "rater_group.deleted", _("Group of raters deleted")
    ITEM_REASSIGNED = "item.reassigned", _("Item reassigned")
    ADJUDICATED = "item.adjudicated", _("Rater disagreement resolved")
    ITEMS_SENT = "items.sent", _("Items sent to adjudicators")
    ANSWERS_DRAWN = "answers.drawn", _("Answers drawn for people")
    RULE_CREATED = "sending_rule.created", _("Rule that sends answers to people created")
    RULE_PAUSED = "sending_rule.paused", _("Rule that sends answers to people paused")
    RULE_RESUMED = "sending_rule.resumed", _("Rule that sends answers to people resumed")
    RULE_ENDED = "sending_rule.ended", _("Rule that sends answers to people ended")
    ANSWERS_SENT = "answers.sent", _("Answers sent to people by a rule")
    RATINGS_IMPORTED = "ratings.imported", _("Ratings imported")
    RESULTS_IMPORTED = "results.imported", _("Results imported")
    LOOK_DRAWN = "look.drawn", _("Answers drawn to look at")
    LOOK_NOTED = "look.noted", _("Answer looked at")
    LOOK_GROUPED = "look.grouped", _("Notes grouped")
    LOOK_PROPOSED = "look.proposed", _("Groups proposed by a model")
    RUBRIC_DRAFTED = "rubric.drafted", _("Rubric drafted by a model")
    RUBRIC_DECIDED = "rubric.decided", _("Draft of a rubric decided")
    GALLERY_SAVED = "gallery.saved", _("Metric saved to the project's gallery")
    GALLERY_REMOVED = "gallery.removed", _("Metric removed from the project's gallery")
    METRIC_MEASURED = "metric.measured", _("Gallery metric measured")
    TRAIN_LABELLED = "train.labelled", _("Train labels stored for a metric")
    OVERRIDE_ADDED = "override.added", _("Score overridden")
    OVERRIDE_WITHDRAWN = "override.withdrawn", _("Override removed")
    REVIEW_TAG = "review.tag", _("Tag added")
    REVIEW_UNTAG = "review.untag", _("Tag removed")
    REVIEW_ASSIGN = "review.assign", _("Assigned to a reviewer")
    REVIEW_UNASSIGN = "review.unassign", _("Assignment removed")
    REVIEW_FINISH = "review.finish", _("Review finished")
    REVIEW_EXCLUDE = "review.exclude", _("Excluded from figures")
    REVIEW_INCLUDE = "review.include", _("Included again in figures")
    REVIEW_UNDONE = "review.undone", _("Review action undone")
    COMMENT_ADDED = "comment.added", _("Comment added")
    COMMENT_EDITED = "comment.edited", _("Comment edited")
    COMMENT_DELETED = "comment.deleted", _("Comment deleted")


@contextmanager
def attributed_to(who: Callable[[], tuple[object, str]]) -> Iterator[None]:
    """Attribute entries without `by` to the result of `who`: the request's user, and a token's name or ''."""
    before = _actor.set(who)
    try:
        yield
    finally:
        _actor.reset(before)


def record(
    action: Action,
    *,
    project: Project | None = None,
    thing: models.Model | None = None,
    name: str = "",
    by: User | None = None,
    **detail: Any,
) -> AuditEntry:
    """Write an audit entry in the caller's transaction.

    `by` is the actor; by default the request's user, or nobody (the application itself) outside of requests. `thing` is
    the changed object, `name` overrides its name. `detail` must be JSON-serialisable and without secrets; values with
    secret-like names are masked.
    """
    entry = _entry(action, project, thing, name, by, detail)
    entry.save()
    return entry


def record_all(
    action: Action,
    details: Sequence[Mapping[str, Any]],
    *,
    project: Project | None = None,
    thing: models.Model | None = None,
    by: User | None = None,
) -> None:
    """Like `record` for each of `details`, in one statement."""
    AuditEntry.objects.bulk_create([_entry(action, project, thing, "", by, detail) for detail in details])


def _entry(
    action: Action,
    project: Project | None,
    thing: models.Model | None,
    name: str,
    by: User | None,
    detail: Mapping[str, Any],
) -> AuditEntry:
    user, via = _who(by)
    own_name = getattr(thing, "name", "") or getattr(thing, "username", "")
    return AuditEntry(
        actor=user.pk if user else None,
        actor_name=user.username if user else "",
        via=via,
        project=project,
        action=action.value,
        kind=str(thing._meta.model_name) if thing else "",
        object_id=thing.pk if thing else None,
        name=str(name or own_name)[:NAME_LENGTH],
        detail=_without_secrets(dict(detail)),
    )


def _who(by: User | None) -> tuple[User | None, str]:
    actor_of_request = _actor.get()
    user, via = actor_of_request() if actor_of_request else (None, "")
    actor = user if isinstance(user, User) else None
    if by is None or by == actor:
        return actor, via
    return by, ""


def _without_secrets(detail: Any, name: str = "") -> Any:
    if _SECRET.search(name):
        return HIDDEN
    if isinstance(detail, dict):
        return {str(key): _without_secrets(value, str(key)) for key, value in detail.items()}
    if isinstance(detail, (list, tuple)):
        return [_without_secrets(value) for value in detail]
    return detail if isinstance(detail, (int, float, bool, type(None))) else str(detail)
