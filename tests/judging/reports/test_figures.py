"""Figures of a large run: computed by a worker, stored, and shown with their time."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from statistics import fmean, stdev
from typing import Any

import pandas as pd
import pytest
from django.db import connection
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from datasets.importing import worker
from datasets.models import Row, Version
from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs
from judging.core.results import JudgementResult
from judging.core.values import Outcome
from judging.engine import chunks, planning
from judging.engine.stopping import run_cancel, run_end_early, run_pause, run_stopped
from judging.engine.write_buffer import WriteBatch, write
from judging.records.models import Judgement, Run
from judging.records.overrides import override_add
from judging.reports import figures
from judging.reports.services import report_by, report_document
from judging.reports.stored import FIGURES as STORED
from tests.conftest import ClientOf
from tests.judging.reports.cast import OWNER, a_judged_run, judge_all
from tests.make import a_metric, a_run, a_version
from tests.working import FIGURES, do_jobs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def every_run_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FEW", 0)


def compute(run: Run) -> None:
    figures.for_page(Run.objects.get(pk=run.pk))
    do_jobs(*FIGURES)
    DBTaskResult.objects.all().delete()


@pytest.fixture
def ended(project: Project) -> Run:
    """A run that has just ended."""
    return a_judged_run(a_version(project, rows=12), by_line)


@pytest.fixture
def run(ended: Run) -> Run:
    """A run that has ended without stored figures or queued tasks."""
    STORED.all().delete()
    jobs.cancel("compute_figures", ended.pk)
    DBTaskResult.objects.all().delete()
    return ended


def by_line(judgement: Judgement) -> int:
    return judgement.row.line % 5 + (judgement.candidate.name == "alpha")


def get(client_of: ClientOf, user: User, run: Run, more: str = "report/", **options: Any) -> HttpResponse:
    answer: HttpResponse = client_of(user).get(f"/p/{run.project.slug}/runs/{run.pk}/{more}", **options)
    return answer


def text(answer: HttpResponse) -> str:
    assert answer.status_code == 200
    return answer.content.decode()


def woken() -> list[str]:
    tasks = DBTaskResult.objects.filter(args_kwargs__kwargs__kind__in=FIGURES)
    return [task.args_kwargs["kwargs"]["kind"] for task in tasks]


def test_a_page_waits_for_no_figures_and_wakes_a_worker_once(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    with CaptureQueriesContext(connection) as asked:
        html = text(get(client_of, alice, run))
    assert "Computing statistics for 24 judgements" in html
    assert "hx-get" in html
    assert not [one for one in asked if 'FROM "judging_judgement"' in one["sql"]]
    assert "Computing statistics" in text(get(client_of, alice, run, ""))
    assert woken() == ["compute_figures"]


def test_what_a_worker_kept_is_what_anybody_works_out(run: Run) -> None:
    expected = json.loads(json.dumps(report_document(run)))
    compute(run)
    kept = figures.for_page(run)
    assert kept is not None
    assert json.loads(json.dumps(report_document(run, kept.figures))) == expected


def test_the_page_that_waits_is_drawn_again_when_the_figures_are_there(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    asks = {"headers": {"HX-Request": "true"}}
    assert "HX-Refresh" not in get(client_of, alice, run, "report/?being_made", **asks).headers
    compute(run)
    assert get(client_of, alice, run, "report/?being_made", **asks).headers["HX-Refresh"] == "true"
    assert "Computing statistics" not in text(get(client_of, alice, run))


def test_figures_of_before_a_change_are_shown_as_such_until_newer_ones_are_there(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    compute(run)
    override_add(judgement=Judgement.objects.filter(run=run).earliest("pk"), value=1, reason="seen", by=alice)
    html = text(get(client_of, alice, run))
    assert "The run has changed since" in html
    assert woken() == ["compute_figures"]
    compute(run)
    assert "The run has changed since" not in text(get(client_of, alice, run))


def test_a_running_run_s_figures_are_worked_out_again_only_from_time_to_time(
    client_of: ClientOf, alice: User, project: Project
) -> None:
    run = a_run(a_version(project, rows=120), a_metric("http://127.0.0.1:9"))
    planning.plan(run.pk)
    judge_all(run, by_line, most=1)
    compute(run)
    STORED.all().update(seconds=60)
    judge_all(run, by_line, most=1)
    assert "Large runs are updated periodically" in text(get(client_of, alice, run))
    assert woken() == []
    STORED.all().update(computed_at=timezone.now() - timedelta(seconds=601))
    get(client_of, alice, run)
    assert woken() == ["compute_figures"]


def test_files_of_a_run_without_figures_lead_to_the_page_that_says_so(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    for name in ("report/figures.csv", "report/pair/?metric=quality&a=alpha&b=beta"):
        assert get(client_of, alice, run, name).headers["Location"].endswith(f"/runs/{run.pk}/report/")
    compute(run)
    assert b"alpha" in get(client_of, alice, run, "report/figures.csv").content


def test_the_items_behind_a_pair_are_kept_with_the_figures(
    client_of: ClientOf, alice: User, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = "report/pair/?metric=quality&a=alpha&b=beta"
    compute(run)
    with CaptureQueriesContext(connection) as asked:
        kept = get(client_of, alice, run, pair).context
    assert not [one for one in asked if 'FROM "judging_judgement"' in one["sql"]]
    monkeypatch.setattr(figures, "FEW", 1000)
    now = get(client_of, alice, run, pair).context
    assert (kept["counts"], kept["items"]) == (now["counts"], now["items"])
    assert kept["all"] == 12


def test_items_of_older_figures_are_said_to_be_so(client_of: ClientOf, alice: User, run: Run) -> None:
    pair = "report/pair/?metric=quality&a=alpha&b=beta"
    compute(run)
    assert "has changed since" not in text(get(client_of, alice, run, pair))
    override_add(judgement=Judgement.objects.filter(run=run).earliest("pk"), value=1, reason="seen", by=alice)
    assert "has changed since" in text(get(client_of, alice, run, pair))


def test_figures_kept_by_another_version_of_the_program_are_worked_out_again(run: Run) -> None:
    compute(run)
    STORED.all().update(layout=STORED.layout + 1)
    assert figures.for_page(run) is None
    compute(run)
    assert figures.for_page(run) is not None


def test_long_work_of_the_same_worker_gives_way_to_figures(run: Run) -> None:
    assert figures.for_page(run) is None
    worker.do_urgent_work(threading.Event())
    assert figures.for_page(run) is not None


def test_building_a_search_index_gives_way_to_figures(run: Run) -> None:
    assert figures.for_page(run) is None
    jobs.request("index_version", run.version_id)
    jobs.run("index_version", run.version_id)
    assert figures.for_page(run) is not None


def test_figures_that_fail_spoil_no_other_work_and_wait_for_the_next_page(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert figures.for_page(run) is None
    calls: list[Run] = []

    def broken(run: Run) -> None:
        calls.append(run)
        raise ValueError("broken")

    monkeypatch.setattr(figures, "compute", broken)
    for _ in range(3):
        worker.do_urgent_work(threading.Event())
    assert len(calls) == 1
    figures.for_page(run)
    worker.do_urgent_work(threading.Event())
    assert len(calls) == 2


def test_figures_that_were_asked_for_while_they_were_made_are_not_made_twice(run: Run) -> None:
    compute(run)
    made_at = STORED.all().get().computed_at
    jobs.request("compute_figures", run.pk)
    do_jobs(*FIGURES)
    assert STORED.all().get().computed_at == made_at


def half_judged(project: Project) -> Run:
    run = a_run(a_version(project, rows=80), a_metric("http://127.0.0.1:9"))
    planning.plan(run.pk)
    judge_all(run, by_line, most=1)
    return Run.objects.get(pk=run.pk)


def test_a_large_run_that_ends_has_its_figures_worked_out_before_a_page_asks(ended: Run) -> None:
    assert woken() == ["compute_figures"]
    do_jobs(*FIGURES)
    kept = figures.for_page(ended)
    assert kept is not None
    assert kept.current(ended)


@pytest.mark.parametrize("stop", [run_pause, run_cancel, run_end_early])
def test_so_has_one_that_is_stopped_on_its_way(project: Project, stop: Callable[[Run], bool]) -> None:
    run = half_judged(project)
    assert woken() == []
    assert stop(run)
    assert woken() == ["compute_figures"]


def test_replies_that_come_after_the_stop_are_in_the_figures_too(project: Project) -> None:
    run = half_judged(project)
    leased = chunks.lease(run.pk, OWNER)
    assert leased
    run_pause(run)
    do_jobs(*FIGURES)
    late = [
        chunks.Judged(one, JudgementResult(Outcome("scored", 5))) for one in chunks.load(leased, "judge_only")
    ]
    write(WriteBatch(late, finished={leased.chunk}), OWNER)
    do_jobs(*FIGURES)
    run.refresh_from_db()
    kept = figures.for_page(run)
    assert kept is not None
    assert kept.current(run)


def test_a_wish_that_comes_while_figures_are_worked_out_is_not_lost(
    ended: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute_now = figures.compute

    def and_meanwhile(run: Run) -> tuple[figures.RunFigures, pd.DataFrame]:
        made = compute_now(run)
        Run.objects.filter(pk=run.pk).update(revision=run.revision + 1)
        run_stopped(run.pk)
        return made

    monkeypatch.setattr(figures, "compute", and_meanwhile)
    do_jobs(*FIGURES)
    monkeypatch.setattr(figures, "compute", compute_now)
    do_jobs(*FIGURES)
    ended.refresh_from_db()
    assert STORED.all().get().revision == ended.revision


def test_a_change_is_either_in_the_figures_or_requested_after_them(ended: Run) -> None:
    with CaptureQueriesContext(connection) as asked:
        do_jobs(*FIGURES)
    statements = [one["sql"] for one in asked]
    claimed = next(at for at, sql in enumerate(statements) if sql.startswith('UPDATE "evalsite_job"'))
    read = next(at for at, sql in enumerate(statements) if 'FROM "judging_run" ' in sql)
    assert claimed < read


def test_a_stop_before_anything_was_judged_wants_no_figures(project: Project) -> None:
    run = a_run(a_version(project, rows=3), a_metric("http://127.0.0.1:9"))
    planning.plan(run.pk)
    run_cancel(run)
    assert woken() == []


def test_figures_that_nobody_waits_for_are_not_worked_out(run: Run) -> None:
    do_jobs(*FIGURES)
    assert not STORED.all().exists()


def added_up(run: Run, candidate: str) -> dict[str, Any]:
    """A candidate's mean, standard error and counts, computed from single judgements."""
    of_row: dict[int, list[float]] = {}
    states: Counter[str] = Counter()
    found = Judgement.objects.filter(run=run, current=True, candidate__name=candidate).select_related("row")
    for judgement in found:
        states[judgement.state_in_force] += 1
        if judgement.value_in_force is not None:
            of_row.setdefault(judgement.row.line, []).append(json.loads(judgement.value_in_force))
    means = [fmean(values) for values in of_row.values()]
    counts = {"items": len(means), "unparsed": states["unparsed"], "errors": states["error"]}
    return {"mean": fmean(means), "se": stdev(means) / len(means) ** 0.5, **counts}


@pytest.mark.parametrize("changed", [False, True])
def test_kept_figures_are_those_added_up_judgement_by_judgement(
    project: Project, alice: User, changed: bool
) -> None:
    def says(judgement: Judgement) -> int | Outcome:
        line, number = judgement.row.line, judgement.response.number
        if (line + number) % 7 == 0:
            return Outcome.unparsed("nothing_offered") if number == 1 else Outcome.error("timeout")
        return (line * 3 + number * 2 + (judgement.candidate.name == "alpha")) % 10 + 1

    run = a_judged_run(a_version(project, rows=20, answers=3), says)
    compute(run)
    if changed:
        one = Judgement.objects.filter(run=run, state="unparsed").earliest("pk")
        override_add(judgement=one, by=alice, value=10, reason="seen")
        compute(run)
    kept = figures.for_page(Run.objects.get(pk=run.pk))
    assert kept is not None
    for name in ("alpha", "beta"):
        slow = added_up(run, name)
        cell = kept.figures.report["candidates"][name]["quality"]
        assert {key: cell[key] for key in slow} == pytest.approx(slow)


def with_subjects(run: Run) -> Run:
    """Give each row of the run one of two subjects and one of two warehouses."""
    # PostgreSQL sorts JSON keys by length; these names have the same order on both databases.
    for row in Row.objects.filter(version=run.version):
        Row.objects.filter(pk=row.pk).update(
            raw=json.dumps(
                json.loads(row.raw) | {"subject": "ab"[row.line % 2], "warehouse": "cd"[row.line % 3 % 2]}
            )
        )
    Version.objects.filter(pk=run.version_id).update(
        fields_found={"subject": run.version.rows, "warehouse": run.version.rows}
    )
    return Run.objects.get(pk=run.pk)


def test_the_first_slices_of_a_large_run_come_unasked(client_of: ClientOf, alice: User, run: Run) -> None:
    compute(with_subjects(run))
    html = text(get(client_of, alice, run))
    assert "By subject" in html
    assert "Computing statistics" not in html


def test_slices_that_are_not_there_yet_are_announced(client_of: ClientOf, alice: User, run: Run) -> None:
    compute(run)
    with_subjects(run)
    assert "Computing statistics by subject" in text(get(client_of, alice, run))


def test_slices_of_a_large_run_are_worked_out_by_a_worker_and_kept(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    compute(with_subjects(run))
    assert "Computing statistics by warehouse" in text(get(client_of, alice, run, "report/?by=warehouse"))
    assert woken() == ["compute_slices"]
    do_jobs(*FIGURES)
    with CaptureQueriesContext(connection) as asked:
        html = text(get(client_of, alice, run, "report/?by=warehouse"))
    assert "By warehouse" in html
    assert "field=warehouse&amp;field_is=c" in html
    assert not [one for one in asked if 'FROM "judging_judgement"' in one["sql"]]


def test_slices_that_a_worker_kept_are_what_the_command_works_out(run: Run) -> None:
    run = with_subjects(run)
    compute(run)
    kept = figures.for_page(run)
    assert kept is not None
    assert figures.slices_for_page(run, "warehouse", kept) == (None, True)
    do_jobs(*FIGURES)
    expected = json.loads(json.dumps(report_by(run, ["warehouse"])["breakdown"]))
    assert figures.slices_for_page(run, "warehouse", kept) == (expected, False)


def test_slices_of_before_a_change_are_shown_until_newer_ones_are_there(
    client_of: ClientOf, alice: User, run: Run
) -> None:
    compute(with_subjects(run))
    get(client_of, alice, run, "report/?by=warehouse")
    do_jobs(*FIGURES)
    override_add(judgement=Judgement.objects.filter(run=run).earliest("pk"), value=1, reason="seen", by=alice)
    compute(run)
    html = text(get(client_of, alice, run, "report/?by=warehouse"))
    assert "By warehouse" in html
    assert "Computing statistics by warehouse" in html
    asks = {"headers": {"HX-Request": "true"}}
    assert "HX-Refresh" not in get(client_of, alice, run, "report/?being_made=warehouse", **asks).headers
    do_jobs(*FIGURES)
    assert get(client_of, alice, run, "report/?being_made=warehouse", **asks).headers["HX-Refresh"] == "true"


def test_a_field_that_no_row_has_is_asked_for_once(client_of: ClientOf, alice: User, run: Run) -> None:
    compute(run)
    Version.objects.filter(pk=run.version_id).update(fields_found={"gone": 1})
    get(client_of, alice, run, "report/?by=gone")
    do_jobs(*FIGURES)
    assert "Computing statistics" not in text(get(client_of, alice, run, "report/?by=gone"))
