"""How often a token may be used."""

from __future__ import annotations

from dataclasses import replace

from django.conf import LazySettings

from evalsite.accounts.models import ApiToken, Project, User
from evalsite.api import rate_limit
from tests.api import Api, code_of


def test_a_burst_then_the_rate(alice: User, project: Project, settings: LazySettings) -> None:
    settings.CONFIG = replace(settings.CONFIG, api_requests_per_minute=6)
    api = Api(alice)
    assert api.get("projects").status_code == 200
    assert ApiToken.objects.get().calls_left == rate_limit.BURST - 1
    ApiToken.objects.update(calls_left=0.0)
    reply = api.get("projects")
    assert code_of(reply) == (429, "too_many_requests")
    assert reply.headers["Retry-After"] == "10"


def test_tokens_do_not_share_it(alice: User, bob: User, project: Project) -> None:
    api, other = Api(alice), Api(bob)
    api.get("projects")
    ApiToken.objects.filter(user=alice).update(calls_left=-100.0)
    assert (api.get("projects").status_code, other.get("projects").status_code) == (429, 200)
