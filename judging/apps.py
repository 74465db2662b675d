from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from evalsite.accounts.invitations import Purpose
    from evalsite.accounts.models import Invitation, User
    from evalsite.supervisor import Child
    from evalsite.table_files import Sheet
    from judging.records.models import Run

# These import what they need when they are called: all of it would add a third to the start of every process.


def report_sheet(run: Run) -> Sheet:
    from judging.reports import files

    return files.report_sheet(run)


def imported_facts(run: Run) -> dict[str, Any]:
    from judging.transfer.results_import import imported_run

    return imported_run.imported_facts(run)


def prepare_sample() -> Child:
    """Create the sample projects. Returns the demo judge that their endpoints name."""
    from evalsite.supervisor import Child, manage
    from judging import sample

    port = sample.prepare()
    # Quiet: it prints an address that is not the site's.
    return Child("demo judge", manage("demo_judge", "--port", str(port)), quiet=True)


def lines_of_waiting(user: User) -> list[str]:
    from judging.people.waiting import waiting_lines

    return waiting_lines(user)


def study_purpose(invitation: Invitation) -> Purpose | None:
    from judging.people.inviting.links import purpose

    return purpose(invitation)


def test_sample_connections() -> None:
    from judging.sample import test_connections

    test_connections()


def add_people_to_sample() -> None:
    from judging.sample_people import add_people

    add_people()


class JudgingConfig(AppConfig):
    name = "judging"
    jobs = {
        "apply_action": "judging.teamwork.batches",
        "compare_runs": "judging.reports.comparison.results",
        "compute_figures": "judging.reports.figures",
        "compute_slices": "judging.reports.slices",
        "drill": "judging.trust.drill_pages.services",
        "import_ratings": "judging.people.rating_import",
        "import_results": "judging.transfer.results_import.services",
        "lint_template": "judging.metrics.lint",
        "open_evidence": "judging.evidence.opening",
        "measure_metric": "judging.trust.gallery.measurements",
        "rater_figures": "judging.people.rater_figures",
        "run_batches": "judging.engine.batches",
        "plan_rejudging": "judging.runs.rerun.rerun_batches",
        "succession": "judging.trust.succession.services",
        "remove_deleted": "judging.deletion.services",
        "send_to_people": "judging.people.asking.rules",
        "watch_judge": "judging.trust.watch.steps",
    }
    short_jobs = ("compute_figures", "compute_slices")
    reconcilers = (
        "judging.engine.reconcile.reconcile",
        "judging.people.states.schedules_apply",
        "judging.reports.comparison.results.delete_old",
        "judging.trust.drill_pages.services.drills_finish",
        "judging.trust.events.tell_of_dates",
        "judging.trust.succession.services.successions_finish",
        "judging.trust.watch.servers.servers_store",
        "judging.trust.watch.steps.watches_due",
    )

    def ready(self) -> None:
        from datasets.versions.file_import import take_verdicts, verdict_pages
        from evalsite import api, demo
        from evalsite.accounts.invitations import purposes
        from evalsite.mail.digests import waiting_ratings
        from evalsite.storage import completeness
        from evalsite.webhooks import turned_off
        from judging import checks  # noqa: F401 - registers itself
        from judging.endpoints.selectors import any_encrypted, metrics_using
        from judging.evidence.opening import evidence_opened
        from judging.filters.criteria import CRITERION
        from judging.filters.judgement_filter import register
        from judging.look.judge_from_group import KIND, GroupStart
        from judging.metrics.editor.scripts import reply_history
        from judging.metrics.editor.starting_points import starting_points
        from judging.metrics.gallery.cards import card_records
        from judging.metrics.gallery.page import card_contexts
        from judging.metrics.selectors import history_notes, metrics_that_use
        from judging.metrics.services import definition_changed, definition_checks
        from judging.people.asking.rules import rules_apply
        from judging.people.disagreement import DISAGREEMENT
        from judging.people.rating_export import people_of
        from judging.records.run_events import run_finished
        from judging.records.seal import closed_rows, sealed_rows, split_rows
        from judging.reports.disputed_criteria import DISPUTED
        from judging.reports.figures import licences_added
        from judging.runs.rerun.parser_trial import RunReplies
        from judging.runs.selectors import imported_facts as facts_of_imported
        from judging.teamwork.filters import FILTERS
        from judging.teamwork.inbox import notify_webhook_off
        from judging.transfer.export.files import first_sheets
        from judging.transfer.export.records import people_columns
        from judging.transfer.results_import.tool_files import page_of_verdicts, run_of_import
        from judging.trust import seal
        from judging.trust.events import tell_of_change
        from judging.trust.gallery.views import measuring_context, newest_records
        from judging.trust.leaks import refuse_test_texts
        from judging.trust.report_figures import add_licences
        from judging.trust.succession.history import successions_in_history

        api.modules += [
            "judging.endpoints.api",
            "judging.metrics.api",
            "judging.transfer.results_import.api",  # before runs/{run}, which its address would match
            "judging.runs.api",
            "judging.runs.rerun.api",
            "judging.review.api",
            "judging.review.teamwork.api",
            "judging.reports.api",
            "judging.reports.comparison.api",
            "judging.people.api",
            "judging.people.gold_api",
            "judging.people.study_api",
            "judging.people.change_api",
            "judging.people.inviting.api",
            "judging.look.api",
            "judging.trust.api",
        ]
        api.takes_files |= {"api:results_import", "api:evaluation_ratings"}
        register(CRITERION, *FILTERS, DISAGREEMENT, DISPUTED)
        take_verdicts += [run_of_import, evidence_opened]
        verdict_pages.append(page_of_verdicts)
        people_columns.append(people_of)
        facts_of_imported.append(imported_facts)
        completeness.has_encrypted.append(any_encrypted)
        first_sheets.append(report_sheet)
        metrics_using.append(metrics_that_use)
        definition_checks.append(refuse_test_texts)
        definition_changed.append(tell_of_change)
        turned_off.append(notify_webhook_off)
        waiting_ratings.append(lines_of_waiting)
        purposes["study"] = study_purpose
        licences_added.append(add_licences)
        history_notes.append(successions_in_history)
        run_finished.append(rules_apply)
        sealed_rows.append(seal.sealed_rows)
        split_rows.append(seal.rows_in_splits)
        closed_rows.append(seal.rows_closed)
        reply_history.append(RunReplies())
        starting_points[KIND] = GroupStart()
        card_contexts.append(measuring_context)
        card_records.append(newest_records)
        demo.preparations.append(prepare_sample)
        demo.when_ready += [add_people_to_sample, test_sample_connections]
        # This is the last app. What was imported stays, and no later collection needs to search it.
        gc.freeze()
        gc.enable()  # manage.py turned it off
