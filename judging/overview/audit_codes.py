"""The labels of the codes that entries of the audit log hold about data sets, runs and judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from datasets.core.formats import FORMAT_NAMES
from datasets.core.imports.reasons import SOURCE_NAMES
from datasets.core.repair.kinds import REPAIRS
from datasets.messages import translated
from judging.endpoints.forms import EndpointForm
from judging.messages import reason_sentence, stored_verdict_text
from judging.people.models import GoldRule
from judging.records.models import JudgementState
from judging.teamwork.models import ReviewAction
from judging.trust.models import Cause


def _of(labels: Mapping[str, Any]) -> Callable[[str], str]:
    return lambda code: str(labels.get(code, code))


def _format(code: str) -> str:
    if code == "auto":
        return str(_("Detect automatically"))
    return next((translated(name) for each, name in FORMAT_NAMES.items() if each == code), code)


def _repair(code: str) -> str:
    return translated(REPAIRS[code].label) if code in REPAIRS else code


def _source(code: str) -> str:
    return translated(SOURCE_NAMES[code]) if code in SOURCE_NAMES else code


def _field_of_endpoint(name: str) -> str:
    field = EndpointForm.base_fields.get(name)
    return str(field.label) if field else name


_GROUPED = {
    "created": _("group created"),
    "changed": _("group changed"),
    "deleted": _("group deleted"),
    "merged": _("groups merged"),
    "moved": _("notes moved"),
}
_USES = {
    "exploring": _("exploring"),
    "trends": _("trends and exploring"),
    "gates": _("gates, trends and exploring"),
    "": _("nothing"),
}
_WATCH_ENDED = {
    "ended": pgettext_lazy("watch", "Ended"),
    "licence_over": _("The licence has lapsed or a newer one has replaced it."),
    "unreadable": _("The sentinel answers could not be stored."),
}
CODE_LABELS: Mapping[tuple[str, str], Callable[[str], str]] = {
    ("dataset.imported", "source"): _source,
    ("dataset.read_as", "format"): _format,
    ("dataset.repaired", "repairs"): _repair,
    ("endpoint.changed", "changed"): _field_of_endpoint,
    ("evaluation.offered", "value"): _of({"all": _("open to all raters of the project")}),
    ("gold.rule_changed", "rule"): _of(dict(GoldRule.choices)),
    ("licence.suspended", "reason"): _of(dict(Cause.choices)),
    ("look.grouped", "act"): _of(_GROUPED),
    ("override.added", "value"): stored_verdict_text,
    ("override.withdrawn", "value"): stored_verdict_text,
    ("review.undone", "undone"): _of(dict(ReviewAction.Kind.choices)),
    ("run.cancelled", "why"): reason_sentence,
    ("run.paused", "why"): reason_sentence,
    ("run.retried", "states"): _of(dict(JudgementState.choices)),
    ("test.opened", "use"): _of(_USES),
    ("watch.ended", "why"): _of(_WATCH_ENDED),
}
