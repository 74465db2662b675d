"""Importing results in the browser: upload, preview of what matches, then the run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from datasets.models import Version
from evalsite.accounts.models import Project, User
from judging.records.models import Run
from judging.transfer.results_import.models import ResultsImport
from tests.conftest import ClientOf
from tests.judging.importing import verdict
from tests.judging.judged import a_judged_run, first_of
from tests.make import a_version

pytestmark = pytest.mark.django_db
PAGE = "/p/physics/runs/import/"


@pytest.fixture
def browser(alice: User, client_of: ClientOf) -> Client:
    return client_of(alice)


@pytest.fixture
def version(project: Project) -> Version:
    return a_version(project)


def send(browser: Client, version: Version, *lines: dict[str, Any], name: str = "", **more: str) -> Any:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file = SimpleUploadedFile("results.jsonl", text.encode())
    return browser.post(PAGE, {"file": file, "version": version.pk, "name": name, **more})


def checked() -> ResultsImport:
    return ResultsImport.objects.latest("pk")


def test_a_file_is_checked_before_anything_is_imported(browser: Client, version: Version) -> None:
    answer = send(browser, version, verdict(), verdict(9))
    assert answer["Location"] == f"{PAGE}{checked().pk}/"
    page = browser.get(answer["Location"]).content.decode()
    assert "Import 1 verdict" in page
    assert "The data set has no row at line 9." in page
    assert not Run.objects.exists()


def test_nothing_is_offered_if_all_or_nothing_was_chosen_and_a_line_does_not_fit(
    browser: Client, version: Version
) -> None:
    answer = send(browser, version, verdict(), verdict(9), strict="on")
    page = browser.get(answer["Location"]).content.decode()
    assert "all or nothing was asked for" in page
    assert "The data set has no row at line 9." in page
    assert "/confirm/" not in page


def test_what_fits_is_imported_once_someone_agrees(browser: Client, version: Version) -> None:
    send(browser, version, verdict(), verdict(9))
    browser.post(f"{PAGE}{checked().pk}/confirm/")
    run = Run.objects.get()
    assert (run.name, run.kind, run.total, run.created_by and run.created_by.username) == (
        "results",
        "imported",
        1,
        "alice",
    )


def test_a_clean_import_leads_to_the_run(browser: Client, version: Version) -> None:
    send(browser, version, verdict())
    answer = browser.post(f"{PAGE}{checked().pk}/confirm/", follow=True)
    assert answer.redirect_chain[-1][0] == f"/p/physics/runs/{Run.objects.get().pk}/"


def test_two_clicks_import_once(browser: Client, version: Version) -> None:
    send(browser, version, verdict())
    for _ in range(2):
        browser.post(f"{PAGE}{checked().pk}/confirm/")
    assert Run.objects.get().total == 1


def test_a_discarded_file_is_gone(browser: Client, version: Version) -> None:
    send(browser, version, verdict())
    browser.post(f"{PAGE}{checked().pk}/discard/")
    assert not ResultsImport.objects.exists()
    assert not Run.objects.exists()


def test_an_imported_file_cannot_be_discarded(browser: Client, version: Version) -> None:
    send(browser, version, verdict())
    taken = checked()
    browser.post(f"{PAGE}{taken.pk}/confirm/")
    browser.post(f"{PAGE}{taken.pk}/discard/")
    assert ResultsImport.objects.filter(pk=taken.pk).exists()


def test_the_name_of_another_run_is_refused_beside_its_field(browser: Client, project: Project) -> None:
    run = a_judged_run(project)
    answer = send(browser, run.version, verdict(), name=run.name)
    assert answer.status_code == 422
    assert "A run with this name already exists." in answer.content.decode()


def test_a_file_that_holds_no_results_is_reported(browser: Client, version: Version) -> None:
    file = SimpleUploadedFile("results.csv", b"question,answer\n1,2\n")
    browser.post(PAGE, {"file": file, "version": version.pk, "name": ""})
    page = browser.get(f"{PAGE}{checked().pk}/").content.decode()
    assert "The header must name model and line or id" in page


def test_a_data_set_of_another_project_cannot_be_chosen(browser: Client, version: Version) -> None:
    other = a_version(Project.objects.create(name="Other", slug="other"))
    assert send(browser, other, verdict()).status_code == 422


@pytest.fixture
def run(browser: Client, version: Version) -> Run:
    line = verdict(reasoning="Terse, yet right.", prompt_tokens=5)
    pair = verdict(metric="better", value="A>B", other_model="beta", rater="R1", reasoning="Warmer.")
    odd = verdict(2, value=None, state="error", reason="It was ill.")
    send(browser, version, line, pair, odd, name="elsewhere")
    browser.post(f"{PAGE}{checked().pk}/confirm/")
    return Run.objects.get()


def page_of(browser: Client, run: Run, rest: str = "") -> str:
    return str(browser.get(f"/p/physics/runs/{run.pk}/{rest}").content.decode())


def test_the_run_s_page_says_who_judged_and_steers_nothing(browser: Client, run: Run) -> None:
    page = page_of(browser, run)
    assert "R1" in page
    assert "results.jsonl" in page
    for action in ("Retry", "Re-parse", "Pause", "Cancel run"):
        assert action not in page


@pytest.mark.parametrize("action", ["pause", "resume", "cancel", "retry", "keep-answers"])
def test_an_imported_run_cannot_be_steered(browser: Client, run: Run, action: str) -> None:
    assert browser.post(f"/p/physics/runs/{run.pk}/{action}/").status_code == 404


def test_an_imported_run_cannot_be_judged_again(browser: Client, run: Run) -> None:
    assert browser.post(f"/p/physics/runs/{run.pk}/judge-again/").status_code == 409


def test_the_list_names_who_judged(browser: Client, run: Run) -> None:
    assert "gpt" in page_of(browser, run, "judgements/")
    assert "vs. beta" in page_of(browser, run, "judgements/?line=1")


@pytest.mark.parametrize("tab", ["", "?tab=raw", "?tab=request", "?tab=reply", "?tab=script"])
def test_a_judgement_s_page_shows_what_was_said(browser: Client, run: Run, tab: str) -> None:
    page = page_of(browser, run, f"judgements/{first_of(run).pk}/{tab}")
    assert "by gpt" in page
    assert "Terse, yet right." in page


def test_both_answers_of_a_comparison_are_shown(browser: Client, run: Run) -> None:
    page = page_of(browser, run, f"judgements/{run.judgements.get(run_metric__name='better').pk}/")
    assert all(text in page for text in ("alpha says 1.1", "beta says 1.1", "Warmer."))


def test_a_reason_in_words_of_its_own_is_shown(browser: Client, run: Run) -> None:
    one = run.judgements.get(state="error")
    assert "It was ill." in page_of(browser, run, f"judgements/{one.pk}/")


def test_an_imported_verdict_can_be_overridden_alone(bob: User, client_of: ClientOf, run: Run) -> None:
    browser, one = client_of(bob), first_of(run)
    data = {"value": "11", "reason": "kinder", "seen": "0"}
    browser.post(f"/p/physics/runs/{run.pk}/judgements/{one.pk}/override/", data)
    in_force = run.judgements.order_by("position").values_list("value_in_force", flat=True)
    assert list(in_force) == ["11", '"A>B"', None]


def test_a_comparison_is_overridden_by_a_comparison(bob: User, client_of: ClientOf, run: Run) -> None:
    browser, one = client_of(bob), run.judgements.get(run_metric__name="better")
    address = f"/p/physics/runs/{run.pk}/judgements/{one.pk}/override/"
    assert browser.post(address, {"value": "7", "reason": "x", "seen": "0"}).status_code == 422
    assert browser.post(address, {"value": "B>A", "reason": "x", "seen": "0"}).status_code == 302


def test_the_runs_of_a_project_hold_imported_ones(browser: Client, run: Run) -> None:
    page = browser.get("/p/physics/runs/").content.decode()
    assert "elsewhere" in page
    assert "imported" in page


def test_the_report_opens(browser: Client, run: Run) -> None:
    assert "alpha" in page_of(browser, run, "report/")


@pytest.mark.parametrize("form", ["jsonl", "csv", "xlsx", "parquet", "results"])
def test_the_run_is_exported_in_every_form(browser: Client, run: Run, form: str) -> None:
    answer = browser.get(f"/p/physics/runs/{run.pk}/export/{form}/")
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content)  # type: ignore[attr-defined]
