"""Making people and projects."""

from __future__ import annotations

from django.db import transaction
from django.utils.text import slugify

from evalsite.accounts.models import Membership, Project, Role, User

LOCAL_ADMINISTRATOR = "admin"


def local_administrator() -> User | None:
    """The account that a visitor of one's own machine gets, once the sample project has made it."""
    return User.objects.filter(username=LOCAL_ADMINISTRATOR, is_active=True).first()


@transaction.atomic
def project_create(*, name: str, slug: str = "", owner: User | None = None) -> Project:
    """A new project with a slug of its own; its owner becomes its administrator."""
    wanted = slugify(slug or name)[:70] or "project"
    taken = set(Project.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    free = next(s for s in [wanted, *(f"{wanted}-{n}" for n in range(2, len(taken) + 3))] if s not in taken)
    project = Project.objects.create(name=name, slug=free)
    if owner is not None:
        Membership.objects.create(user=owner, project=project, role=Role.ADMIN)
    return project
