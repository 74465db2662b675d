"""Report links for readers without an account, and the report as a single file."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from datasets.models import Row, Version
from evalsite.accounts.models import Project, User
from evalsite.models import AuditEntry
from judging.records.models import Run
from judging.reports.models import ReportLink
from judging.reports.sharing import SHEETS, NoReportLink, report_link_create, report_link_revoke, shared_run
from tests.conftest import ClientOf
from tests.judging.people.make import make_evaluation
from tests.judging.reports.cast import a_judged_run
from tests.make import a_version, asked

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(project: Project) -> Run:
    version = a_version(project, rows=5, models=("alpha", "beta", "gamma"))
    return a_judged_run(version, lambda one: one.row.line % 4 + 1, "quality", "style")


def a_link(run: Run, by: User, **changes: Any) -> str:
    link, secret = report_link_create(run=run, note="", days=7, by=by)
    ReportLink.objects.filter(pk=link.pk).update(**changes)
    return f"/shared/{secret}/"


def links(run: Run) -> str:
    return f"/p/{run.project.slug}/runs/{run.pk}/report/links/"


def test_anybody_with_the_link_reads_the_report(alice: User, run: Run) -> None:
    html = Client().get(a_link(run, alice)).content.decode()
    assert "Leaderboard" in html
    assert "alpha" in html


def test_a_shared_report_leads_nowhere_into_the_project(alice: User, run: Run) -> None:
    address = a_link(run, alice)
    for query in ("", "?metric=2", "?metric=all", "?metric=each"):
        html = Client().get(address + query).content.decode()
        assert re.findall(r'href="(/p/[^"]*)"', html) == []


def test_a_shared_report_shows_no_question_and_no_answer(alice: User, run: Run) -> None:
    html = Client().get(a_link(run, alice)).content.decode()
    assert "question 1" not in html
    assert "says 1" not in html


def test_a_shared_report_is_kept_by_nobody(alice: User, run: Run) -> None:
    answer = Client().get(a_link(run, alice))
    assert "no-store" in answer["Cache-Control"]
    assert (answer["X-Robots-Tag"], answer["Referrer-Policy"]) == ("noindex, nofollow", "no-referrer")


def test_a_link_ends_by_itself(alice: User, run: Run) -> None:
    assert Client().get(a_link(run, alice, expires_at=timezone.now() - timedelta(1))).status_code == 404


def test_a_link_opens_the_report_for_its_days(alice: User, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    address, now = a_link(run, alice), timezone.now()
    statuses = []
    for days in (6.9, 7.1):
        monkeypatch.setattr(timezone, "now", lambda later=now + timedelta(days): later)
        statuses.append(Client().get(address).status_code)
    assert statuses == [200, 404]


def test_a_revoked_link_leads_nowhere(alice: User, run: Run) -> None:
    assert Client().get(a_link(run, alice, revoked_at=timezone.now())).status_code == 404


def test_a_link_to_an_archived_project_leads_nowhere(alice: User, run: Run) -> None:
    address = a_link(run, alice)
    Project.objects.filter(pk=run.project_id).update(archived_at=timezone.now())
    assert Client().get(address).status_code == 404


def test_a_guessed_link_leads_nowhere(run: Run) -> None:
    assert Client().get("/shared/guess/").status_code == 404


def test_the_secret_is_not_kept(alice: User, run: Run) -> None:
    _link, secret = report_link_create(run=run, note="", days=7, by=alice)
    assert secret not in str(ReportLink.objects.values())
    assert secret not in str(AuditEntry.objects.values())


def test_a_new_link_is_shown_once(client_of: ClientOf, alice: User, run: Run) -> None:
    client = client_of(alice)
    made = client.post(links(run), {"note": "for the board", "days": "30"}).content.decode()
    found = re.search(r"/shared/([\w-]+)/", made)
    assert found
    assert shared_run(secret=found[1]) == run
    again = client.get(links(run)).content.decode()
    assert "for the board" in again
    assert found[1] not in again


def test_making_and_revoking_a_link_are_written_down(client_of: ClientOf, alice: User, run: Run) -> None:
    client = client_of(alice)
    client.post(links(run), {"days": "30"})
    link = ReportLink.objects.get()
    client.post(f"{links(run)}{link.pk}/revoke/")
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert actions[-2:] == ["report.shared", "report.unshared"]


def test_a_link_is_revoked_once(alice: User, run: Run) -> None:
    link, secret = report_link_create(run=run, note="", days=7, by=alice)
    assert [report_link_revoke(link=link), report_link_revoke(link=link)] == [True, False]
    with pytest.raises(NoReportLink):
        shared_run(secret=secret)


def test_only_who_starts_runs_shares_their_reports(
    client_of: ClientOf, cast: dict[str, User], run: Run
) -> None:
    answers = {who: client_of(user).get(links(run)).status_code for who, user in cast.items()}
    assert answers == {"alice": 200, "bob": 403, "adam": 200, "olga": 200, "rita": 403, "charlie": 404}


def test_a_link_of_another_run_is_not_found(client_of: ClientOf, alice: User, run: Run) -> None:
    link, _secret = report_link_create(run=run, note="", days=7, by=alice)
    other = a_judged_run(a_version(run.project), lambda _: 5)
    assert client_of(alice).post(f"{links(other)}{link.pk}/revoke/").status_code == 404


def test_an_evaluation_is_not_shared_while_people_rate(
    client_of: ClientOf, alice: User, rita: User, project: Project
) -> None:
    run = make_evaluation(project, [rita]).run
    html = client_of(alice).post(links(run), {"days": "30"}).content.decode()
    assert "once the human evaluation is closed" in html
    assert not ReportLink.objects.exists()


def test_a_link_to_an_evaluation_is_off_while_it_is_open_again(
    alice: User, rita: User, project: Project
) -> None:
    run = make_evaluation(project, [rita]).run
    assert Client().get(a_link(run, alice)).status_code == 404


def test_the_file_holds_every_metric_and_needs_nothing_else(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    address = f"/p/{run.project.slug}/runs/{run.pk}/report/report.html"
    answer = client_of(alice).get(address)
    html = answer.content.decode()
    assert "attachment" in answer["Content-Disposition"]
    assert re.findall(r'<link|<script|src="|href="/', html) == []
    assert re.findall(r'id="leaderboard-(\d)"', html) == ["1", "2"]


def test_the_file_holds_every_style_sheet_of_the_shared_page(alice: User, run: Run) -> None:
    linked = re.findall(
        r'rel="stylesheet" href="/static/css/(\w+)', Client().get(a_link(run, alice)).content.decode()
    )
    assert linked == list(SHEETS)


def test_the_file_and_the_shared_page_hold_slices_without_links(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    version = a_version(project, rows=6, models=("alpha", "beta"))
    Row.objects.filter(version=version, line__lte=3).update(raw=json.dumps(asked(1) | {"subject": "art"}))
    Row.objects.filter(version=version, line__gt=3).update(raw=json.dumps(asked(4) | {"subject": "maths"}))
    Version.objects.filter(pk=version.pk).update(fields_found={"subject": 6})
    run = a_judged_run(Version.objects.get(pk=version.pk), lambda one: one.row.line)
    address = f"/p/{run.project.slug}/runs/{run.pk}/report/report.html"
    for html in (
        client_of(alice).get(address).content.decode(),
        Client().get(a_link(run, alice)).content.decode(),
    ):
        assert "By subject" in html
        assert "Slice by" not in html
        assert 'href="/p/' not in html


def test_the_file_is_in_the_readers_language(client_of: ClientOf, alice: User, run: Run) -> None:
    address = f"/p/{run.project.slug}/runs/{run.pk}/report/report.html"
    answer: Any = client_of(alice).get(address, headers={"Accept-Language": "zh-Hans"})
    assert "排行榜" in answer.content.decode()


def test_people_have_the_same_report_page(
    client_of: ClientOf, alice: User, rita: User, project: Project
) -> None:
    run = make_evaluation(project, [rita]).run
    answer = client_of(alice).get(f"/p/{project.slug}/runs/{run.pk}/report/")
    assert answer.status_code == 200
    assert "reports/report.html" in [template.name for template in answer.templates]


@pytest.mark.parametrize("name", ["", "report.json", "report.html", "pair/?metric=preference&a=alpha&b=beta"])
def test_who_rates_sees_no_candidates_before_the_end(
    client_of: ClientOf, bob: User, project: Project, name: str
) -> None:
    run = make_evaluation(project, [bob]).run
    answer = client_of(bob).get(f"/p/{project.slug}/runs/{run.pk}/report/{name}", follow=True)
    assert "Hidden while you rate" in answer.content.decode()
    assert "alpha" not in answer.content.decode()
