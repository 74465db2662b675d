"""Lint of a stored version: in the request or by a worker, cached, and shown in the editor with links to rows."""

from __future__ import annotations

import sqlite3
import threading

import pytest
from django.db import OperationalError

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.models import Derived, Job
from evalsite.tasks import jobs
from judging.core.lint import Lint
from judging.core.metric_definition import Script
from judging.metrics import lint
from judging.metrics.lint import StoredLint
from judging.metrics.lint_views import LintView
from judging.metrics.models import Metric
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import form_of

LINT = "/p/physics/metrics/lint/"
NAMES_TOPIC = "{{ data.topic }} {{ response.content }}"


def found(version: Version, template: str, preprocess: str = "") -> Lint:
    scripts = (Script(kind="preprocess", source=preprocess),) if preprocess else ()
    result = lint.result_of(lint.request(version, template, scripts))
    assert result is not None
    return result


def now(version: Version) -> StoredLint:
    stored = lint.load(version, NAMES_TOPIC, ())
    assert stored
    return stored


@pytest.fixture
def large(version: Version) -> Version:
    """Three rows whose counters claim too many responses to lint in the request."""
    version.candidates.update(responses=lint.MAX_RESPONSES_AT_ONCE)
    return version


def test_a_small_version_is_linted_at_once(version: Version) -> None:
    warning, *_form = found(version, NAMES_TOPIC).warnings
    assert (warning.code, warning.name, warning.rows, warning.first_rows) == (
        "name_missing",
        "data.topic",
        1,
        (2,),
    )


def test_every_answer_of_every_row_is_looked_at(version: Version) -> None:
    result = found(version, "{{ response.content }}{{ response.content }}")
    assert result.rows == 3
    assert result.longest is not None
    assert result.longest.characters == len("ant says 1") * 2


def test_what_preprocess_adds_exists(version: Version) -> None:
    script = "def preprocess(data, resp):\n    data.n = 1\n"
    assert found(version, "{{ data.n }}{{ response.content }}", script).errors == ()
    assert found(version, "{{ data.n }}{{ response.content }}").errors[0].code == "unknown_name"


def test_the_same_texts_are_looked_through_once(version: Version) -> None:
    first = lint.request(version, NAMES_TOPIC, ())
    assert lint.request(version, NAMES_TOPIC, ()) == first
    assert lint.request(version, NAMES_TOPIC + "!", ()) != first
    assert Derived.objects.count() == 2


def test_texts_are_not_kept_longer_than_they_are_needed(version: Version) -> None:
    row = Derived.objects.get(pk=lint.request(version, NAMES_TOPIC, ()).pk)
    assert b"data.topic }}" not in bytes(row.value)


def test_a_large_version_waits_for_a_worker(large: Version) -> None:
    waiting = lint.request(large, NAMES_TOPIC, ())
    assert lint.result_of(waiting) is None
    jobs.run("lint_template", waiting.pk)
    assert lint.result_of(now(large)) is not None


def test_two_workers_do_not_do_the_same(large: Version) -> None:
    waiting = lint.request(large, NAMES_TOPIC, ())
    assert jobs.claim("lint_template", waiting.pk, owner="worker:1:1")
    jobs.run("lint_template", waiting.pk)
    assert now(large).result is None


def test_what_a_dead_worker_held_is_given_back(large: Version) -> None:
    waiting = lint.request(large, NAMES_TOPIC, ())
    assert jobs.claim("lint_template", waiting.pk, owner="gone:1:1")
    jobs.reconcile()
    assert jobs.run("lint_template", waiting.pk)


def test_a_worker_that_stops_gives_it_back(project: Project) -> None:
    from tests.make import a_version

    version = a_version(project, rows=1100, models=("ant", "bee"))
    version.candidates.update(responses=lint.MAX_RESPONSES_AT_ONCE)
    waiting = lint.request(version, NAMES_TOPIC, ())
    stop = threading.Event()
    stop.set()
    jobs.run("lint_template", waiting.pk, stop)
    assert (now(version).result, Job.objects.get().state) == (None, "waiting")


def test_an_unexpected_error_ends_it_with_a_sentence_in_the_page_and_in_the_log(
    large: Version, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = lint.request(large, NAMES_TOPIC, ())
    monkeypatch.setattr(lint, "answers_of", lambda version: 1 / 0)
    jobs.run("lint_template", waiting.pk)
    assert now(large).problem == "unexpected"
    assert "server log" in LintView(large, now(large)).problem
    assert "ZeroDivisionError" in caplog.text


def test_a_locked_database_leaves_it_to_the_next_worker(
    large: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = lint.request(large, NAMES_TOPIC, ())

    def locked(version: Version) -> None:
        cause = sqlite3.OperationalError("database is locked")
        cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise OperationalError from cause

    monkeypatch.setattr(lint, "answers_of", locked)
    jobs.run("lint_template", waiting.pk)
    assert now(large).problem == ""


# --- the page ----------------------------------------------------------------------------------------------------


def shown(client_of: ClientOf, user: User, metric: Metric, template: str, **more: object) -> str:
    typed = form_of(metric, **{"judge-0-template": template}, **more)
    page = client_of(user).post(LINT, typed, headers={"HX-Request": "true"})
    assert page.status_code == 200
    return page.text


def test_findings_lead_to_the_line_and_to_the_rows(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    page = shown(client_of, alice, metric, "one\n" + NAMES_TOPIC)
    assert "“data.topic” is missing in 1 row" in page
    assert 'data-goto="2"' in page
    assert f'href="/p/physics/datasets/{version.dataset_id}/v1/rows/2/"' in page


def test_a_misspelt_name_is_reported_with_the_one_that_was_meant(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    assert "Did you mean “data.topic”" in shown(client_of, alice, metric, "{{ data.topik }}")


def test_a_clean_template_is_reported_as_clean(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    assert "No problems found" in shown(
        client_of, alice, metric, "{{ response.content }} {{ answer_format }}"
    )


def test_a_large_version_is_looked_through_only_on_demand(
    client_of: ClientOf, alice: User, metric: Metric, large: Version
) -> None:
    assert "Check against all 4,000 answers" in shown(client_of, alice, metric, NAMES_TOPIC)
    waiting = shown(client_of, alice, metric, NAMES_TOPIC, check="1")
    assert 'hx-trigger="every 1s"' in waiting
    assert "No worker is running" in waiting
    jobs.run("lint_template", Derived.objects.get().pk)
    assert "is missing in 1 row" in shown(client_of, alice, metric, NAMES_TOPIC)


def test_without_scripts_the_whole_page_shows_it(
    client_of: ClientOf, alice: User, metric: Metric, version: Version
) -> None:
    typed = form_of(metric, check="1", **{"judge-0-template": NAMES_TOPIC})
    page = client_of(alice).post(f"/p/physics/metrics/{metric.pk}/", typed)
    assert "is missing in 1 row" in page.text


def test_without_a_data_set_there_is_nothing_to_say(client_of: ClientOf, alice: User, metric: Metric) -> None:
    assert shown(client_of, alice, metric, "t").strip() == ""


@pytest.mark.parametrize(("name", "status"), [("bob", 403), ("rita", 403), ("charlie", 404)])
def test_only_who_writes_metrics_may_lint(
    name: str, status: int, cast: dict[str, User], client_of: ClientOf, metric: Metric
) -> None:
    assert client_of(cast[name]).post(LINT).status_code == status
