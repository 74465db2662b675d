"""`--ci` of the commands and of the client."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from datasets.models import Version
from evalsite.accounts.models import Project, User
from evalsite.accounts.tokens import token_create
from evalsite.api.evalsite_client import Client
from evalsite.api.same_process import same_process
from judging.core.requirements import RequirementError
from judging.management.commands.evaluate import refuse_wrong_usage
from judging.records.models import Run
from judging.reports.ci import CiOptions, ci_files
from tests.judging.judged import a_judged_run, judge, said
from tests.make import a_metric, a_run, a_version

NAMES = {"report.html", "report.json", "junit.xml", "summary.md"}


def a_pass_fail_run(version: Version, name: str, *, passes: bool) -> Run:
    metric = a_metric("http://127.0.0.1:9/v1", gives="pass_fail")
    return judge(a_run(version, metric, name=name), lambda _place: said(passes))


@pytest.fixture
def run(project: Project) -> Run:
    return a_judged_run(project, lambda place: said(place % 3 + 1), rows=6)


def test_the_files_are_the_report_and_say_whether_requirements_are_met(run: Run) -> None:
    files, status = ci_files(run, CiOptions(require=["alpha quality >= 9"]))
    assert set(files) == NAMES
    assert status == 3
    assert json.loads(files["report.json"])["run"] == run.name
    assert b"Not met" in files["junit.xml"]


def test_failed_items_are_named_and_their_texts_shown_only_if_asked_for(project: Project) -> None:
    run = a_pass_fail_run(a_version(project, rows=4), "after", passes=False)
    raw = run.judgements.order_by("position")[0].response.raw[:20]
    without, _status = ci_files(run, CiOptions())
    with_texts, _status = ci_files(run, CiOptions(texts=True))
    assert without["junit.xml"].count(b"<testcase") == run.total
    address = f"/p/physics/runs/{run.pk}/judgements/".encode()
    assert address in without["junit.xml"]
    assert xml(raw) not in without["junit.xml"]
    assert xml(raw) in with_texts["junit.xml"]


def xml(text: str) -> bytes:
    return text.replace("&", "&amp;").replace("<", "&lt;").encode()


def test_what_failed_since_the_baseline_is_listed(project: Project) -> None:
    version = a_version(project, rows=6)
    before = a_pass_fail_run(version, "before", passes=True)
    after = a_pass_fail_run(version, "after", passes=False)
    files, _status = ci_files(after, CiOptions(baseline=before, site="https://evalsite.example"))
    summary = files["summary.md"].decode()
    assert "Difference to before" in summary
    assert summary.count(f"https://evalsite.example/p/physics/runs/{after.pk}/judgements/") == 5


def test_an_unknown_candidate_is_refused(run: Run) -> None:
    with pytest.raises(RequirementError):
        ci_files(run, CiOptions(require=["nobody quality >= 1"]))


def test_the_client_writes_the_files(run: Run, alice: User, tmp_path: Path) -> None:
    _token, secret = token_create(user=alice, name="ci", days=None)
    site = Client("http://testserver", secret, transport=same_process())
    assert site.get_run(run.pk).ci(tmp_path, require=["alpha quality >= 0"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == NAMES


@pytest.mark.parametrize("options", [{"texts": True}, {"baseline": "x"}, {"require": ["nonsense"]}])
def test_the_command_refuses_what_it_cannot_check_before_it_starts(options: dict[str, Any]) -> None:
    usual = {"ci": None, "require": [], "baseline": None, "texts": False, "resume": "x"}
    with pytest.raises(CommandError):
        refuse_wrong_usage({**usual, "file": None, "metrics": None, "name": "", **options})


@pytest.fixture
def own_signals() -> Iterator[None]:
    """The command handles signals; afterwards they are handled as before."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
def test_evaluate_checks_requirements_without_files_for_ci(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("evaluate", out=tmp_path, resume=str(run.pk), require=["alpha quality >= 0"])
    with pytest.raises(SystemExit, match="3"):
        call_command("evaluate", out=tmp_path, resume=str(run.pk), require=["alpha quality >= 50"])
    assert capsys.readouterr().err.count("alpha quality") == 2


@pytest.mark.usefixtures("own_signals")
def test_evaluate_refuses_a_requirement_on_nobody(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no candidate called 'nobody'"):
        call_command("evaluate", out=tmp_path, resume=str(run.pk), require=["nobody quality >= 1"])
