from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from evalsite.supervisor import Child

# These import what they need when they are called: all of it would add a third to the start of every process.


def reconcile() -> None:
    """Recover the work of dead workers."""
    from judging.comparison import kept
    from judging.metrics import lint
    from judging.people import rating_import
    from judging.runs.rerun import rerun_batches
    from judging.runs.results_import import services as results_import
    from judging.runs.teamwork import batches
    from judging.runs.worker import reconcile as runs

    for module in (runs, results_import, batches, rerun_batches, kept, lint, rating_import):
        module.reconcile()


def request_figures(run_id: int) -> None:
    from judging.reports.figures import want

    want(run_id)


def compute_requested_figures() -> None:
    from judging.reports.figures import keep_wanted

    keep_wanted()


def prepare_sample() -> Child:
    """Create the sample projects. Returns the demo judge that their endpoints name."""
    from evalsite.supervisor import Child, manage
    from judging import sample

    port = sample.prepare()
    # Quiet: it prints an address that is not the site's.
    return Child("demo judge", manage("demo_judge", "--port", str(port)), quiet=True)


def test_sample_connections() -> None:
    from judging.sample import test_connections

    test_connections()


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        from datasets.importing.worker import short_work
        from datasets.versions.file_import import take_verdicts, verdict_pages
        from evalsite import demo
        from evalsite.tasks import workers
        from judging import checks  # noqa: F401 - registers itself
        from judging.endpoints.selectors import metrics_using
        from judging.metrics.editor.scripts import reply_history
        from judging.metrics.selectors import metrics_that_use
        from judging.people.disagreement import DISAGREEMENT
        from judging.people.rating_export import people_of
        from judging.runs import stopping
        from judging.runs.export.records import people_columns
        from judging.runs.filters import register
        from judging.runs.rerun.parser_trial import RunReplies
        from judging.runs.results_import.tool_files import page_of_verdicts, run_of_import
        from judging.runs.teamwork.filters import FILTERS

        register(*FILTERS, DISAGREEMENT)
        take_verdicts.append(run_of_import)
        verdict_pages.append(page_of_verdicts)
        people_columns.append(people_of)
        metrics_using.append(metrics_that_use)
        reply_history.append(RunReplies())
        workers.reconcilers.append(reconcile)
        stopping.hooks.append(request_figures)
        short_work.append(compute_requested_figures)
        demo.preparations.append(prepare_sample)
        demo.when_ready.append(test_sample_connections)
        # This is the last app. What was imported stays, and no later collection needs to search it.
        gc.freeze()
        gc.enable()  # manage.py turned it off
