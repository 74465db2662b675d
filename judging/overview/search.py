"""Search over everything that the user may see, and over the pages and actions of a project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate, Dataset
from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Membership, Project
from judging.endpoints.models import Endpoint
from judging.metrics.models import Metric
from judging.people.selectors import rating_parts
from judging.records.models import PEOPLE, Run

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

MOST_WORDS = 8
MOST_CHARACTERS = 200
SEEN_PER_HIT = 10  # versions with a model, or roles of a user, read for each place shown


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result."""

    name: str
    url: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one kind; `icon` is the kind's."""

    label: StrPromise
    icon: str
    hits: list[Hit]


@dataclass(frozen=True, slots=True)
class SearchKind:
    """A kind of searchable objects: who may find them, the query, and their addresses."""

    label: StrPromise
    icon: str
    may: May
    things: Callable[[], QuerySet[Any]]
    page: str


KINDS = (
    SearchKind(
        _("Data sets"),
        "database",
        May.READ_JUDGEMENTS,
        lambda: Dataset.objects.filter(archived_at=None, versions__number__gt=0).distinct(),
        "datasets:dataset",
    ),
    SearchKind(
        _("Metrics"), "ruler", May.METRICS, lambda: Metric.objects.filter(archived_at=None), "metrics:edit"
    ),
    SearchKind(
        _("Endpoints"),
        "plug",
        May.USE_ENDPOINTS,
        lambda: Endpoint.objects.filter(archived_at=None),
        "endpoints:endpoint",
    ),
    SearchKind(
        _("Runs"),
        "play",
        May.READ_JUDGEMENTS,
        lambda: Run.objects.filter(archived_at=None).exclude(kind=PEOPLE),
        "runs:detail",
    ),
    SearchKind(
        _("Human evaluation"),
        "users",
        May.READ_JUDGEMENTS,
        lambda: Run.objects.filter(archived_at=None, kind=PEOPLE),
        "people:detail",
    ),
)

# Pages and actions of a project: name, URL name, permission.
PAGES = (
    (_("Upload data set"), "datasets:upload", May.UPLOAD),
    (_("Choose a metric"), "metrics:new", May.METRICS),
    (_("New rule metric"), "metrics:rules_new", May.METRICS),
    (_("New endpoint"), "endpoints:new", May.MANAGE),
    (_("New run"), "runs:new", May.RUN),
    (_("New human evaluation"), "people:new", May.RUN),
    (_("Import results"), "runs:import_results", May.RUN),
    (_("Overview"), "project", May.SEE),
    (_("Data sets"), "datasets:list", May.READ_JUDGEMENTS),
    (_("Metrics"), "metrics:list", May.METRICS),
    (_("Endpoints"), "endpoints:list", May.USE_ENDPOINTS),
    (_("Runs"), "runs:list", May.READ_JUDGEMENTS),
    (_("Leaderboard"), "runs:leaderboard", May.READ_JUDGEMENTS),
    (_("Look at answers"), "look:list", May.READ_JUDGEMENTS),
    (_("Rating"), "rating:queue", May.RATE),
    (_("Studies"), "people:list", May.READ_JUDGEMENTS),
    (_("Data set formats"), "datasets:formats", May.READ_JUDGEMENTS),
    (_("Members"), "accounts:members", May.MANAGE),
    (_("Project settings"), "accounts:project_settings", May.MANAGE),
    (_("Audit log"), "accounts:project_log", May.MANAGE),
)


def search(request: HttpRequest, wanted: str, here: Project | None, most: int) -> list[Group]:
    """Find everything that the user may open whose name contains all words of `wanted`, at most `most` of a kind:
    names that start with it first, then newest first. Pages and actions are those of the project `here`."""
    words = wanted[:MOST_CHARACTERS].split()[:MOST_WORDS]
    groups = [Group(_("Pages and actions"), "arrow-right", pages(request, words, here))]
    if words:
        projects = _named(access.open_projects_of(request.user), words, "name")
        hits = [Hit(project.name, reverse("project", args=[project.slug])) for project in projects[:most]]
        groups.append(Group(_("Projects"), "folder", hits))
        groups += [Group(kind.label, kind.icon, _hits(request, kind, words, most)) for kind in KINDS]
        groups.append(Group(_("Models"), "trophy", _models(request, words, most)))
        groups.append(Group(_("Members"), "user-cog", _members(request, words, most)))
        groups.append(Group(_("Rating"), "star", _to_rate(request, words, most)))
    return [group for group in groups if group.hits]


def pages(request: HttpRequest, words: list[str], here: Project | None) -> list[Hit]:
    """Pages and actions by their names in the reader's language."""
    hits: list[Hit] = []
    if here is not None:
        may = access.permissions(request, here)
        hits = [
            Hit(str(name), reverse(url, args=[here.slug]), here.name)
            for name, url, right in PAGES
            if right in may
        ]
    hits.append(Hit(str(_("All projects")), reverse("home")))
    hits.append(Hit(str(_("Account")), reverse("accounts:account")))
    hits.append(Hit(str(_("Access tokens")), reverse("accounts:account")))
    hits.append(Hit(str(_("Inbox")), reverse("inbox")))
    hits.append(Hit(str(_("Help and glossary")), reverse("help")))
    if access.manages_site(request):
        hits.append(Hit(str(_("System status")), reverse("status")))
        hits.append(Hit(str(_("New project")), reverse("accounts:create_project")))
    return [hit for hit in hits if all(word.lower() in hit.name.lower() for word in words)]


def _hits(request: HttpRequest, kind: SearchKind, words: list[str], most: int) -> list[Hit]:
    allowed = access.projects_where(request, kind.may).filter(archived_at=None)
    things = kind.things().filter(project__in=allowed.values("pk")).select_related("project")
    return [
        Hit(thing.name, reverse(kind.page, args=[thing.project.slug, thing.pk]), thing.project.name)
        for thing in _named(things, words, "name")[:most]
    ]


def _models(request: HttpRequest, words: list[str], most: int) -> list[Hit]:
    """Models with uploaded answers, once per project: in the newest version that has it."""
    allowed = access.projects_where(request, May.READ_JUDGEMENTS).filter(archived_at=None)
    things = Candidate.uploaded.filter(
        version__dataset__project__in=allowed.values("pk"),
        version__dataset__archived_at=None,
        version__number__gt=0,
    ).select_related("version__dataset__project")
    hits: dict[tuple[str, str], Hit] = {}
    for candidate in _named(things, words, "name")[: most * SEEN_PER_HIT]:
        dataset = candidate.version.dataset
        rows = reverse("datasets:rows", args=[dataset.project.slug, dataset.pk, candidate.version.number])
        hits.setdefault(
            (dataset.project.slug, candidate.name),
            Hit(candidate.name, f"{rows}?model={candidate.pk}", dataset.project.name),
        )
    return list(hits.values())[:most]


def _members(request: HttpRequest, words: list[str], most: int) -> list[Hit]:
    """Members of the projects whose members the user manages."""
    allowed = access.projects_where(request, May.MANAGE).filter(archived_at=None)
    things = Membership.objects.filter(project__in=allowed.values("pk")).select_related("user", "project")
    hits: dict[tuple[str, str], Hit] = {}  # one result per user, whatever their roles
    for membership in _named(things, words, "user__username")[: most * SEEN_PER_HIT]:
        page = reverse("accounts:members", args=[membership.project.slug])
        hits.setdefault(
            (membership.project.slug, membership.user.username),
            Hit(membership.user.username, page, membership.project.name),
        )
    return list(hits.values())[:most]


def _to_rate(request: HttpRequest, words: list[str], most: int) -> list[Hit]:
    """Evaluations in which the user rates; raters can't find others."""
    allowed = access.projects_where(request, May.RATE).filter(archived_at=None)
    mine = rating_parts().filter(
        user=access.signed_in(request), evaluation__run__project__in=allowed.values("pk")
    )
    mine = mine.select_related("evaluation__run__project")
    runs = [rater.evaluation.run for rater in _named(mine, words, "evaluation__run__name")[:most]]
    return [
        Hit(run.name, reverse("desk:page", args=[run.project.slug, run.pk]), run.project.name) for run in runs
    ]


def _named(things: QuerySet[Any], words: list[str], field: str) -> QuerySet[Any]:
    has_all = Q(*(Q(**{f"{field}__icontains": word}) for word in words))
    begins = Q(**{f"{field}__istartswith": " ".join(words)})
    named: QuerySet[Any] = things.filter(has_all).alias(begins=begins).order_by("-begins", "-pk")
    return named
