"""From the first look at answers to a licence, page after page, as a newcomer walks it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from evalsite.accounts.models import Project, User
from judging.endpoints.models import Endpoint
from judging.look.models import Note, TrainLabel
from judging.metrics.models import Metric
from judging.people.models import Evaluation, Item
from judging.records.models import Run
from judging.trust.models import Licence, SealedTest
from tests.conftest import ClientOf
from tests.judging.judged import JUDGE_URL, judge, said
from tests.judging.look.make import a_run_of
from tests.judging.people.make import rate_each

pytestmark = pytest.mark.django_db
MOST_PAGES = 12
ROWS = 160


class Fields(HTMLParser):
    """The fields of the form with this id, as a browser sends them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form, self.inside = form, False
        self.sent: dict[str, str] = {}
        self.text, self.select = "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        if tag == "form":
            self.inside = of.get("id") == self.form
        name = of.get("name") or ""
        if not self.inside:
            return
        if tag == "textarea":
            self.text, self.sent[name] = name, ""
        elif tag == "select":
            self.select = name
        elif tag == "option" and self.select and (self.select not in self.sent or "selected" in of):
            self.sent[self.select] = of.get("value") or ""
        elif tag == "input" and name and (of.get("type") not in ("checkbox", "radio") or "checked" in of):
            checked = "on" if of.get("type") in ("checkbox", "radio") else ""
            self.sent[name] = of.get("value") or checked

    def handle_data(self, data: str) -> None:
        if self.text:
            self.sent[self.text] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self.text = ""
        elif tag == "select":
            self.select = ""


class Walk:
    """Pages that one person opens, in order; forms and buttons on them lead on."""

    def __init__(self, client: Client) -> None:
        self.client, self.address = client, ""
        self.pages: list[str] = []

    def open(self, address: str) -> str:
        """Open a page that was not open yet; reading it in the other language costs no page."""
        if address != self.address:
            self.pages.append(address)
        self.address = address
        for language in ("zh-hans", "en"):
            response = self.client.get(address, headers={"accept-language": language})
            assert response.status_code == 200, (address, response.status_code)
        return response.content.decode()

    def send(self, address: str, fields: dict[str, Any]) -> str:
        """Send a form; returns where it leads."""
        response = self.client.post(address, fields)
        problems = re.findall(r"(?:errorlist|alert).*?</(?:ul|div)>", response.content.decode(), re.DOTALL)
        assert response.status_code == 302, (address, problems)
        return str(response.headers["Location"])


def fields_of(page: str, form: str) -> dict[str, str]:
    parser = Fields(form)
    parser.feed(page)
    return parser.sent


def test_from_a_look_to_a_licence_in_twelve_pages(
    project: Project, adam: User, rita: User, client_of: ClientOf
) -> None:
    walk = Walk(client_of(adam))
    Endpoint.objects.create(project=project, name="House judge", url=JUDGE_URL, model="m")
    run = a_run_of(project, rows=ROWS)
    run.version.candidates.update(rows=ROWS, responses=ROWS)

    walk.open(f"/p/physics/look/new/?run={run.pk}")
    answer = walk.send(f"/p/physics/look/new/?run={run.pk}", {"size": 20})
    walk.open(answer)
    for place in range(1, 21):
        fields = {"text": "wrong date", "passed": "0"} if place % 2 else {"passed": "1"}
        groups = walk.send(f"{answer.removesuffix('1/')}{place}/", {**fields, "seen": "0"})
    walk.open(groups)
    notes = [f"{pk}-0" for pk in Note.objects.filter(passed=False).values_list("pk", flat=True)]
    walk.send(f"{groups}move/", {"chosen": notes, "into": "new", "name": "Date", "act": "move"})

    metric = _write_a_judge(walk)
    align = f"/p/physics/judges/{metric.pk}/"
    page = walk.open(align)
    assert "at 50 % failures" in re.sub(r"\s+", " ", page)
    assert "20 rows that were looked at are training already and are not rated again." in page
    drawn = {**fields_of(page, "draw-form"), "raters": [rita.pk], "train": 20, "dev": 20, "test": 60}
    drawn["guideline"] = "It fails if a date is wrong."  # the examples in the prompt name their model
    assert walk.send(align, drawn) == align

    test = SealedTest.objects.get()
    _rate(test.evaluation, rita)
    assert f"/judges/tests/{test.split_id}/open/" in walk.open(align)

    _start_a_run(walk, metric, run)
    opening = f"/p/physics/judges/tests/{test.split_id}/open/"
    walk.open(opening)
    judged = Run.objects.latest("pk").metrics.get()
    licence = walk.send(opening, {"run_metric": judged.pk})
    page = walk.open(licence)
    assert "Exploring" in page
    assert Licence.objects.get().use in ("exploring", "trends", "gates")
    assert len(walk.pages) <= MOST_PAGES, walk.pages


def _write_a_judge(walk: Walk) -> Metric:
    """Save the metric as the editor proposes it."""
    group = Note.objects.filter(groups__isnull=False).values_list("groups", flat=True)[0]
    page = walk.open(f"/p/physics/metrics/new/?start=group:{group}")
    fields = {**fields_of(page, "metric-form"), "save": "1"}
    fields["judge-0-endpoint"] = str(Endpoint.objects.get().pk)
    walk.send("/p/physics/metrics/new/", fields)
    assert TrainLabel.objects.count() == 20
    return Metric.objects.get()


def _rate(evaluation: Evaluation | None, rater: User) -> None:
    """The scripted rater passes every second answer; none of them was looked at."""
    assert evaluation is not None
    looked_at = set(TrainLabel.objects.values_list("row", flat=True))
    assert not looked_at & set(Item.objects.filter(evaluation=evaluation).values_list("row", flat=True))
    rate_each(evaluation, rater, lambda item: item.row.line % 2 == 0)


def _start_a_run(walk: Walk, metric: Metric, run: Run) -> None:
    """The new judge judges all rows, and says what the rater said."""
    version = metric.versions.get()
    walk.open(f"/p/physics/runs/new/?metric={version.pk}&version={run.version_id}")
    fields = {
        "version": run.version_id,
        "candidates": [candidate.pk for candidate in run.version.candidates.all()],
        "metrics": [version.pk],
        "name": "New judge",
        "seed": 7,
    }
    walk.open(walk.send("/p/physics/runs/new/", fields))
    judge(Run.objects.latest("pk"), lambda place: said(place % 2 == 1))
