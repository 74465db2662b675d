"""Data sets, runs and evaluations with something in nearly every table, for tests of what deleting leaves."""

from __future__ import annotations

import io
from pathlib import Path

from django.apps import apps

from datasets.importing.worker import import_version
from datasets.models import Version
from datasets.services import dataset_upload
from datasets.versions import compare
from evalsite.accounts.models import Project, User
from evalsite.tasks import jobs
from judging.engine.stopping import run_stopped
from judging.metrics import lint
from judging.people.models import Evaluation, Scheme
from judging.records.models import Run
from judging.records.overrides import override_add
from judging.reports.comparison.results import comparison_of
from judging.reports.sharing import report_link_create
from judging.runs.rerun.reparse import run_reparse
from judging.runs.services import run_retry
from judging.teamwork.comments import comment_add
from judging.teamwork.marks import Change, change_one
from tests.datasets.conftest import answers, jsonl, question
from tests.judging.judged import JUDGE_URL, failed, judge, said
from tests.judging.people.make import about, make_evaluation, rate_all
from tests.make import a_metric, a_run
from tests.working import FIGURES, do_jobs

NOT_COUNTED = {"AuditEntry", "DBTaskResult", "SentMessage", "User", "Membership"}


def counts() -> dict[str, int]:
    """{model: number of rows}, without what deleting leaves alone."""
    found = {one.__name__: one._base_manager.count() for one in apps.get_models()}
    return {name: count for name, count in found.items() if count and name not in NOT_COUNTED}


def a_version_with_file(project: Project, name: str, *, rows: int = 3) -> Version:
    """A version with a file and a lint, and for each row a reference and two answers."""
    content = jsonl(
        *(
            question(f"{name} {n}", ref_answer=f"reference {n}", model_outputs=answers(alpha="a", beta="b"))
            for n in range(rows)
        )
    )
    file, options = io.BytesIO(content), {"file_name": f"{name}.jsonl", "user": None}
    version = dataset_upload(project=project, name=name, file=file, **options)
    import_version(version.pk)
    version.refresh_from_db()
    lint.TEMPLATE.place(version.pk)
    return version


def a_run_with_everything(version: Version, reviewer: User) -> Run:
    """A judged run with attempts, an override, comments, marks, a link and stored figures."""
    run = judge(a_run(version, a_metric(JUDGE_URL)), lambda place: said(place) if place else failed())
    run_retry(run)
    judge(run, lambda _place: said(5))
    metric = run.metrics.get()
    run_reparse(run=run, run_metric=metric, definition=a_metric(JUDGE_URL, max_score=5), user=None)
    run = judge(run, lambda place: said(place))
    one = run.judgements.filter(current=True).earliest("position")
    override_add(judgement=one, value=4, reason="right", by=reviewer)
    comment_add(judgement=one, text=f"Is it, @{reviewer.username}?", by=reviewer)
    change_one(judgement=one, change=Change("tag", "odd"), by=reviewer)
    change_one(judgement=one, change=Change("untag", "odd"), by=reviewer)
    report_link_create(run=run, note="for all", days=7, by=reviewer)
    run_stopped(run.pk)
    do_jobs(*FIGURES)
    return Run.objects.get(pk=run.pk)


def an_evaluation_with_ratings(version: Version, rater: User, run: Run | None = None) -> Evaluation:
    """An evaluation with ratings: of a run's answers, or of answers against references."""
    if run is not None:
        made = about(run, [rater], repeat_share=0.5)
    else:
        scheme = Scheme.REFERENCE
        made = make_evaluation(version.dataset.project, [rater], version=version, scheme=scheme)
    rate_all(made, rater, "A>B" if run is None else 5)
    return made


def compared(first: Run, second: Run) -> None:
    comparison_of(first, second)


def differences(old: Version, new: Version) -> None:
    jobs.run("compare_versions", compare.difference_ask(old=old, new=new).pk)


def remove_all() -> None:
    """Remove what was deleted, as a worker does."""
    do_jobs("remove_deleted")


def files(folder: Path) -> set[str]:
    """The stored files."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
