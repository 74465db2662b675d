import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.test import RequestFactory

from evalsite import access
from evalsite.access import May
from evalsite.accounts.models import Membership, Project, Role, User

# see "Who may do what" in the people spec
TABLE = {
    "alice": {May.SEE, May.UPLOAD, May.METRICS, May.RUN, May.READ_JUDGEMENTS, May.LOOK, May.USE_ENDPOINTS},
    "rita": {May.SEE, May.RATE},
    "bob": {May.SEE, May.READ_JUDGEMENTS, May.REVIEW, May.LOOK},
    "adam": set(May),
    "olga": set(May),
}


def asked_by(user: User, **session: str) -> HttpRequest:
    request = RequestFactory().get("/")
    request.user = user
    request.session = session
    return request


@pytest.mark.parametrize("may", May)
@pytest.mark.parametrize("name", TABLE)
def test_a_member_may_do_what_the_table_says_and_nothing_else(
    name: str, may: May, cast: dict[str, User], project: Project
) -> None:
    request = asked_by(cast[name])
    if may in TABLE[name]:
        assert access.get_project(request, "physics", may) == project
    else:
        with pytest.raises(PermissionDenied):
            access.get_project(request, "physics", may)


@pytest.mark.parametrize("may", May)
def test_an_outsider_does_not_learn_that_the_project_exists(
    may: May, charlie: User, project: Project
) -> None:
    with pytest.raises(Http404):
        access.get_project(asked_by(charlie), "physics", may)


def test_someone_whose_account_is_closed_sees_nothing(adam: User, project: Project) -> None:
    adam.is_active = False
    with pytest.raises(Http404):
        access.get_project(asked_by(adam), "physics", May.SEE)


def test_two_roles_add_up(rita: User, project: Project) -> None:
    Membership.objects.create(user=rita, project=project, role=Role.REVIEWER)
    assert access.permissions(asked_by(rita), project) == TABLE["rita"] | TABLE["bob"]


@pytest.mark.parametrize(("role", "name"), [("analyst", "alice"), ("rater", "rita"), ("reviewer", "bob")])
def test_a_superuser_who_tries_on_a_role_has_only_its_permissions(
    role: str, name: str, olga: User, project: Project
) -> None:
    assert access.permissions(asked_by(olga, view_as=role), project) == TABLE[name]


def test_trying_on_a_role_gives_nobody_else_anything(rita: User, project: Project) -> None:
    assert access.permissions(asked_by(rita, view_as="analyst"), project) == TABLE["rita"]


@pytest.mark.parametrize("may", May)
@pytest.mark.parametrize("name", [*TABLE, "charlie"])
def test_the_list_of_projects_agrees_with_the_single_question(
    name: str, may: May, cast: dict[str, User], project: Project
) -> None:
    request = asked_by(cast[name])
    one_by_one = {p for p in Project.objects.all() if may in access.permissions(request, p)}
    assert set(access.projects_where(request, may)) == one_by_one


@pytest.mark.parametrize("may", May)
@pytest.mark.parametrize("role", Role.values)
def test_the_list_of_projects_agrees_while_a_role_is_tried_on(
    role: str, may: May, olga: User, project: Project
) -> None:
    request = asked_by(olga, view_as=role)
    assert (project in access.projects_where(request, may)) == (may in access.permissions(request, project))
