"""People who want it get mail about mentions, finished runs, waiting ratings and invitations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evalsite.accounts.models import Membership, Project, User
from evalsite.mail.digests import send_due
from judging.engine import planning
from judging.engine.chunks import finish_if_done
from judging.records.models import Chunk, Run
from judging.teamwork.comments import comment_add, comment_edit
from tests.conftest import ClientOf
from tests.evalsite.mail.conftest import Sent, confirmed, mail_site, sent
from tests.judging.judged import a_judged_run, first_of
from tests.judging.people.make import make_evaluation
from tests.make import a_metric, a_run, a_version

__all__ = ["mail_site", "sent"]  # fixtures
pytestmark = pytest.mark.usefixtures("mail_site")


def test_a_mention_is_mailed_at_once_without_the_comment(
    project: Project, alice: User, bob: User, adam: User, sent: Sent
) -> None:
    run = a_judged_run(project)
    confirmed(bob)
    comment = comment_add(judgement=first_of(run), text="@bob @adam hush", by=alice)
    comment_edit(comment=comment, text="@bob @adam hush hush", version=1)
    (message,) = sent()
    assert (message.to, message.subject) == (["bob@mail.example"], f"alice mentioned you in {run.name}")
    assert f"https://evals.example/p/physics/runs/{run.pk}/at/" in str(message.body)
    assert "hush" not in str(message.body)


@pytest.mark.parametrize("still_member", [True, False])
def test_the_starter_is_mailed_when_a_run_has_finished(
    project: Project, alice: User, sent: Sent, still_member: bool
) -> None:
    run = a_run(a_version(project), a_metric("http://127.0.0.1:9/v1"))
    Run.objects.filter(pk=run.pk).update(created_by=alice)
    confirmed(alice)
    if not still_member:
        Membership.objects.filter(user=alice).delete()
    planning.plan(run.pk)
    Chunk.objects.filter(run=run).update(done=True)
    run.judgements.all().delete()
    Run.objects.filter(pk=run.pk).update(total=0)
    assert finish_if_done(run.pk)
    messages = sent()
    assert len(messages) == still_member
    assert all(f"/p/physics/runs/{run.pk}/" in str(message.body) for message in messages)


def test_waiting_ratings_are_listed_with_their_links_and_no_names_of_models(
    project: Project, rita: User, bob: User, sent: Sent
) -> None:
    evaluation = make_evaluation(project, [rita], rows=2, name="Which helps more?")
    confirmed(rita)
    confirmed(bob)
    send_due(timezone.now().replace(hour=9) + timedelta(days=1))
    (message,) = sent()
    assert message.to == ["rita@mail.example"]
    assert "Which helps more?: 2 items" in str(message.body)
    assert f"https://evals.example/p/physics/desk/{evaluation.run_id}/" in str(message.body)
    assert "alpha" not in str(message.body)


def test_an_invitation_is_mailed_to_an_account_that_confirmed_the_address(
    project: Project, adam: User, charlie: User, client_of: ClientOf, sent: Sent
) -> None:
    confirmed(charlie)
    form = {"invite-note": "charlie@mail.example", "invite-days": "7", "invite-roles": ["rater"]}
    pages = [
        client_of(adam).post("/p/physics/people/invite/", form | {"invite-note": note}).content.decode()
        for note in ("charlie@mail.example", "unknown@mail.example")
    ]
    assert all("If an account has confirmed" in page for page in pages)
    (message,) = sent()
    assert message.to == ["charlie@mail.example"]
    assert "https://evals.example/join/" in str(message.body)
