"""The events that webhooks tell of, and the presets of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.db import models
from django.utils.translation import gettext_lazy as _


class Event(models.TextChoices):
    """All events. Names in use never change."""

    RUN_FINISHED = "run.finished", _("Run finished")
    RUN_STOPPED = "run.stopped", _("Run stopped")
    RUN_BUDGET_REACHED = "run.budget_reached", _("Run reached its budget")
    VERSION_READY = "version.ready", _("Data set version ready")
    EVALUATION_FINISHED = "evaluation.finished", _("Human evaluation finished")
    RATING_ASSIGNED = "rating.assigned", _("Rating assigned")
    LICENCE_LAPSED = "licence.lapsed", _("Licence of a judge lapsed")
    LICENCE_SUSPENDED = "licence.suspended", _("Licence of a judge suspended")
    WATCH_ALARM = "watch.alarm", _("Alarm of a watch")
    MENTION = "mention", _("Mention in a comment")


TEST = "test"
"""The type of what *Send a test* sends. Nobody subscribes to it."""
LABELS: dict[str, object] = {**dict(Event.choices), TEST: _("Test")}


class Preset(models.TextChoices):
    STANDARD = "standard", _("Standard Webhooks")
    SLACK = "slack", _("Slack")
    FEISHU = "feishu", _("Feishu")
    DINGTALK = "dingtalk", _("DingTalk")
    WECOM = "wecom", _("WeCom")
    TEAMS = "teams", _("Microsoft Teams")


_CHANGED = {"name": _("Name"), "url": _("Address"), "events": _("Events"), "preset": _("Body")}
CODE_LABELS: Mapping[tuple[str, str], Callable[[str], str]] = {
    ("webhook.created", "events"): lambda code: str(LABELS.get(code, code)),
    ("webhook.changed", "changed"): lambda code: str(_CHANGED.get(code, code)),
    ("webhook.off", "why"): lambda code: str({"failures": _("off after failures")}.get(code, code)),
}
"""Of the audit log."""
