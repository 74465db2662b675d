"""The audit log's pages: of a project for its administrators, of the whole site for site administrators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import pgettext_lazy

from evalsite import access
from evalsite.accounts.models import ApiToken, Project, Role
from evalsite.audit import Action
from evalsite.hooks import Hook
from evalsite.models import AuditEntry
from evalsite.names import labelled
from evalsite.table_files import csv_of
from evalsite.templatetags.show import moment
from evalsite.web.headers import download_headers
from evalsite.web.numbers import whole
from evalsite.web.paging import newest_first

PER_PAGE = 50
# Labels of the names in an entry's detail, in the order shown; others follow, unchanged.
DETAILS = {
    "before": pgettext_lazy("log", "before"),
    "after": pgettext_lazy("log", "after"),
    "roles": pgettext_lazy("log", "Roles"),
    "until": pgettext_lazy("log", "expires"),
    "scope": pgettext_lazy("log", "access"),
    "of": pgettext_lazy("log", "member of"),
    "version": pgettext_lazy("log", "version"),
    "file": pgettext_lazy("log", "file"),
    "parts": pgettext_lazy("log", "joined from"),
    "bytes": pgettext_lazy("log", "bytes"),
    "rows": pgettext_lazy("log", "rows"),
    "row": pgettext_lazy("log", "row"),
    "format": pgettext_lazy("log", "format"),
    "repairs": pgettext_lazy("log", "repairs"),
    "url": pgettext_lazy("log", "address"),
    "model": pgettext_lazy("log", "model"),
    "changed": pgettext_lazy("log", "changed"),
    "dataset": pgettext_lazy("log", "data set"),
    "metrics": pgettext_lazy("log", "metrics"),
    "metric": pgettext_lazy("log", "metric"),
    "states": pgettext_lazy("log", "states"),
    "judgements": pgettext_lazy("log", "judgements"),
    "run": pgettext_lazy("log", "run"),
    "value": pgettext_lazy("log", "value"),
    "reason": pgettext_lazy("log", "reason"),
    "ip": pgettext_lazy("log", "network address"),
    "rater": pgettext_lazy("log", "rater"),
    "items": pgettext_lazy("log", "items"),
    "ratings": pgettext_lazy("log", "ratings"),
    "not_read_on": pgettext_lazy("log", "not read, because of"),
    "note": pgettext_lazy("log", "note"),
    "evaluation": pgettext_lazy("log", "evaluation"),
    "uses": pgettext_lazy("log", "uses"),
    "most": pgettext_lazy("log", "at most"),
    "a_day": pgettext_lazy("log", "a day"),
    "accepted": pgettext_lazy("log", "accepted"),
    "act": pgettext_lazy("log", "act"),
    "agreement": pgettext_lazy("log", "agreement"),
    "answer": pgettext_lazy("log", "answer"),
    "answers": pgettext_lazy("log", "answers"),
    "calls": pgettext_lazy("log", "calls"),
    "check": pgettext_lazy("log", "check"),
    "comment": pgettext_lazy("log", "comment"),
    "comments": pgettext_lazy("log", "comments"),
    "datasets": pgettext_lazy("log", "data sets"),
    "day": pgettext_lazy("log", "day"),
    "derived": pgettext_lazy("log", "stored results"),
    "dev": pgettext_lazy("log", "dev"),
    "deviation": pgettext_lazy("log", "deviation"),
    "discarded": pgettext_lazy("log", "discarded"),
    "draw": pgettext_lazy("log", "draw"),
    "endpoint": pgettext_lazy("log", "endpoint"),
    "ends_at": pgettext_lazy("log", "closes"),
    "evaluations": pgettext_lazy("log", "human evaluations"),
    "events": pgettext_lazy("log", "events"),
    "files": pgettext_lazy("log", "files"),
    "filter": pgettext_lazy("log", "filter"),
    "fingerprints_suspend": pgettext_lazy("log", "an unknown server fingerprint suspends"),
    "gates_kappa": pgettext_lazy("log", "gates: κ"),
    "gates_rate": pgettext_lazy("log", "gates: rates"),
    "gold_share": pgettext_lazy("log", "share of gold"),
    "group": pgettext_lazy("log", "group"),
    "hashes_only": pgettext_lazy("log", "hashes only"),
    "host_names": pgettext_lazy("log", "host names"),
    "into": pgettext_lazy("log", "into"),
    "item": pgettext_lazy("log", "item"),
    "labels": pgettext_lazy("log", "labels"),
    "line": pgettext_lazy("log", "line"),
    "lines": pgettext_lazy("log", "lines"),
    "links": pgettext_lazy("log", "links"),
    "mark": pgettext_lazy("log", "pass mark"),
    "marks": pgettext_lazy("log", "marks"),
    "mentions": pgettext_lazy("log", "mentions"),
    "money": pgettext_lazy("log", "cost"),
    "new": pgettext_lazy("log", "new judge"),
    "notes": pgettext_lazy("log", "notes"),
    "number": pgettext_lazy("log", "number"),
    "old": pgettext_lazy("log", "old judge"),
    "opening": pgettext_lazy("log", "opening"),
    "origin": pgettext_lazy("log", "origin"),
    "overlap": pgettext_lazy("log", "raters for each item"),
    "overrides": pgettext_lazy("log", "overrides"),
    "people": pgettext_lazy("log", "people"),
    "pilot": pgettext_lazy("log", "pilot"),
    "provider": pgettext_lazy("log", "provider"),
    "quota": pgettext_lazy("log", "items a rater, at most"),
    "repeats": pgettext_lazy("log", "repeats"),
    "right": pgettext_lazy("log", "right"),
    "rule": pgettext_lazy("log", "rule"),
    "runs": pgettext_lazy("log", "runs"),
    "schedule": pgettext_lazy("log", "schedule"),
    "seed": pgettext_lazy("log", "seed"),
    "sentinels": pgettext_lazy("log", "sentinel answers"),
    "side": pgettext_lazy("log", "side"),
    "sides": pgettext_lazy("log", "sides"),
    "signed_by": pgettext_lazy("log", "signed by"),
    "source": pgettext_lazy("log", "source"),
    "starts_at": pgettext_lazy("log", "opens"),
    "tag": pgettext_lazy("log", "tag"),
    "test": pgettext_lazy("log", "test"),
    "time": pgettext_lazy("log", "time"),
    "to": pgettext_lazy("log", "to"),
    "to_all": pgettext_lazy("log", "to all"),
    "together_with": pgettext_lazy("log", "together with"),
    "train": pgettext_lazy("log", "train"),
    "training": pgettext_lazy("log", "training"),
    "trends_kappa": pgettext_lazy("log", "trends: κ"),
    "trends_rate": pgettext_lazy("log", "trends: rates"),
    "undone": pgettext_lazy("log", "undone"),
    "use": pgettext_lazy("log", "use"),
    "user": pgettext_lazy("log", "user"),
    "verdicts": pgettext_lazy("log", "verdicts"),
    "versions": pgettext_lazy("log", "versions"),
    "why": pgettext_lazy("log", "why"),
}
_PLACES = {name: place for place, name in enumerate(DETAILS)}

CodeLabels = Mapping[tuple[str, str], Callable[[str], str]]
CODE_LABELS = Hook[CodeLabels]("evalsite.accounts.audit_log.CODE_LABELS")
"""By action and name of a detail: the label of a code that the detail holds, or each of its codes if it is a list."""
OWN_CODES: CodeLabels = {
    ("token.created", "scope"): lambda code: str(dict(ApiToken.Scope.choices).get(code, code)),
}
TIMES = ("until", "starts_at", "ends_at")
COLUMNS = ("at", "actor", "via", "project", "action", "kind", "object_id", "name", "detail")


@login_required
def project_log(request: HttpRequest, slug: str) -> HttpResponse:
    """The changes in a project."""
    return _log(request, access.get_project(request, slug, access.May.MANAGE))


@login_required
def project_log_csv(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The same entries as CSV."""
    project = access.get_project(request, slug, access.May.MANAGE)
    return _csv(request, project, f"log-{project.slug}.csv")


@login_required
def site_log(request: HttpRequest) -> HttpResponse:
    """All changes on the site; superusers only."""
    refuse_others(request)
    return _log(request, None)


@login_required
def site_log_csv(request: HttpRequest) -> HttpResponseBase:
    """The same entries as CSV."""
    refuse_others(request)
    return _csv(request, None, "log.csv")


def refuse_others(request: HttpRequest) -> None:
    """Raise PermissionDenied for others than superusers."""
    if not access.manages_site(request):
        raise PermissionDenied


def _log(request: HttpRequest, project: Project | None) -> HttpResponse:
    everything, chosen = entries_of(project), LogFilter.read(request.GET)
    shown = page(
        chosen.of(everything),
        before=whole(request.GET.get("before", "")),
        after=whole(request.GET.get("after", "")),
    )
    context = {
        "page": shown,
        "chosen": chosen,
        "people": people_in(everything),
        "actions": actions_in(everything),
        "csv": f"{request.path}export.csv?{request.GET.urlencode()}",
    }
    return render(request, "accounts/log.html", context)


def _csv(request: HttpRequest, project: Project | None, name: str) -> StreamingHttpResponse:
    table, headers = csv_of(COLUMNS, filtered_rows(request, project)), download_headers(name)
    return StreamingHttpResponse(table, content_type="text/csv; charset=utf-8", headers=headers)


def filtered_rows(request: HttpRequest, project: Project | None) -> Iterator[Sequence[Any]]:
    """The entries that match the filter in the query, as rows of COLUMNS."""
    return _rows(LogFilter.read(request.GET).of(entries_of(project)))


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Filter of the log; None and "" match everything. `actor` 0 is the application itself."""

    actor: int | None = None
    action: str = ""
    kind: str = ""
    object_id: int | None = None

    @classmethod
    def read(cls, query: QueryDict) -> LogFilter:
        """Parse a query string, ignoring invalid values."""
        kind, _, number = query.get("object", "").partition(":")
        object_id = whole(number)
        action = query.get("action", "")
        return cls(
            actor=whole(query.get("who", "")),
            action=action if action in Action.values else "",
            kind=kind[:40] if object_id is not None else "",
            object_id=object_id if kind else None,
        )

    def of(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        if self.actor is not None:
            entries = entries.filter(actor=self.actor or None)
        if self.action:
            entries = entries.filter(action=self.action)
        if self.object_id is not None:
            entries = entries.filter(kind=self.kind, object_id=self.object_id)
        return entries


@dataclass(frozen=True, slots=True)
class LogLine:
    """An entry for display: the action's label, its object for the link, and the detail as (name, text)."""

    entry: AuditEntry
    project: Project | None

    @property
    def words(self) -> str:
        action = self.entry.action
        return str(Action(action).label) if action in Action.values else action

    @property
    def address(self) -> str:
        return f"{self.entry.kind}:{self.entry.object_id}" if self.entry.object_id else ""

    @property
    def details(self) -> list[tuple[str, str]]:
        return [
            (
                str(DETAILS.get(name, name)),
                moment(at) if (at := _time(name, value)) else listed(value, self._label_of(name)),
            )
            for name, value in _in_order(self.entry.detail)
        ]

    def _label_of(self, name: str) -> Callable[[str], str]:
        key = (self.entry.action, name)
        return next((labels[key] for labels in (OWN_CODES, *CODE_LABELS) if key in labels), str)


@dataclass(frozen=True, slots=True)
class LogPage:
    """`newer` and `older` are the ids after which the adjacent pages start, if there are any."""

    lines: list[LogLine]
    newer: int | None = None
    older: int | None = None


def _in_order(detail: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """PostgreSQL does not keep the order of names in JSON."""
    return sorted(detail.items(), key=lambda pair: _PLACES.get(pair[0], len(_PLACES)))


def _time(name: str, value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if name in TIMES and value else None


def listed(value: Any, label_of: Callable[[str], str] = str) -> str:
    """Format a detail: codes by their labels, lists joined by commas, empty values as –."""
    if isinstance(value, list):
        named = (Role(code).label if code in Role.values else label_of(str(code)) for code in value)
        return _(", ").join(map(str, named)) or "–"
    if isinstance(value, dict):
        pairs = (labelled(DETAILS.get(name, name), listed(part)) for name, part in _in_order(value))
        return _(", ").join(pairs) or "–"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return "–" if value in (None, "") else label_of(str(value))


def entries_of(project: Project | None) -> QuerySet[AuditEntry]:
    """A project's entries, newest first; without a project, all entries."""
    entries = AuditEntry.objects.order_by("-pk")
    return entries if project is None else entries.filter(project=project)


def page(entries: QuerySet[AuditEntry], *, before: int | None = None, after: int | None = None) -> LogPage:
    """The newest page, or the page older than the id `before` or newer than `after`."""
    if after is not None:
        newer_entries = list(entries.filter(pk__gt=after).order_by("pk")[: PER_PAGE + 1])
        if len(newer_entries) <= PER_PAGE:
            return page(entries)  # reached the newest entries: show a full first page
        shown = newer_entries[:PER_PAGE][::-1]
        return LogPage(_lines(shown), newer=shown[0].pk, older=shown[-1].pk)
    shown, older = newest_first(entries, PER_PAGE, before)
    newer = shown[0].pk if shown and before is not None else None
    return LogPage(_lines(shown), newer=newer, older=older)


def people_in(entries: QuerySet[AuditEntry]) -> list[tuple[int, str]]:
    """(id, name) of everyone with entries, by name; 0 and "" is the application itself."""
    pairs = entries.order_by().values_list("actor", "actor_name").distinct()
    return sorted({number or 0: name for number, name in pairs}.items(), key=lambda pair: pair[1])


def actions_in(entries: QuerySet[AuditEntry]) -> list[tuple[str, str]]:
    """(code, label) of the actions that occur, in the order of Action."""
    met = set(entries.order_by().values_list("action", flat=True).distinct())
    return [(action.value, str(action.label)) for action in Action if action.value in met]


def _rows(entries: QuerySet[AuditEntry]) -> Iterator[Sequence[Any]]:
    """The entries as rows of COLUMNS."""
    names = dict(Project.objects.values_list("pk", "name"))
    for entry in entries.iterator(chunk_size=500):
        yield (
            entry.at.isoformat(timespec="seconds"),
            entry.actor_name,
            entry.via,
            names.get(entry.project_id, "") if entry.project_id else "",
            entry.action,
            entry.kind,
            entry.object_id,
            entry.name,
            json.dumps(entry.detail, ensure_ascii=False),
        )


def _lines(entries: list[AuditEntry]) -> list[LogLine]:
    projects = Project.objects.in_bulk({entry.project_id for entry in entries if entry.project_id})
    return [LogLine(entry, projects.get(entry.project_id or 0)) for entry in entries]
