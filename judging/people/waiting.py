"""Lines of the daily mail about ratings that wait."""

from __future__ import annotations

from django.utils.translation import ngettext

from evalsite.access import open_projects_of
from evalsite.accounts.models import User
from evalsite.links import absolute_url
from evalsite.templatetags.show import number
from judging.people.selectors import rating_tasks


def waiting_lines(user: User) -> list[str]:
    """A line, with a link, for each evaluation in which items wait for the user."""
    return [
        _line(
            task.evaluation.run.name,
            task.left,
            absolute_url("desk:page", task.project.slug, task.evaluation.run_id),
        )
        for task in rating_tasks(user, open_projects_of(user))
        if task.left
    ]


def _line(name: str, left: int, url: str) -> str:
    text = ngettext("%(name)s: %(n)s item", "%(name)s: %(n)s items", left) % {"name": name, "n": number(left)}
    return f"{text}\n{url}" if url else text
