"""The names of tags, for completion and menus."""

from __future__ import annotations

from evalsite.accounts.models import Project
from judging.runs.models import Run
from judging.runs.teamwork.models import FLAG, ReviewAction

MOST_OFFERED = 100


def tag_names(project: Project | None = None, *, run: Run | None = None) -> list[str]:
    """Names that tags were given in any run of a project, or in one run; there may be more than are offered."""
    given = run.review_actions.all() if run else ReviewAction.objects.filter(run__project=project)
    found = given.filter(kind=ReviewAction.Kind.TAG).exclude(name=FLAG).order_by("name")
    return list(found.values_list("name", flat=True).distinct()[:MOST_OFFERED])
