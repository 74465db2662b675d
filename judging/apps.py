from __future__ import annotations

import gc

from django.apps import AppConfig


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

    hooks = {
        "datasets.versions.file_import.take_verdicts": (
            "judging.transfer.results_import.tool_files.run_of_import",
            "judging.evidence.opening.evidence_opened",
        ),
        "datasets.versions.file_import.verdict_pages": (
            "judging.transfer.results_import.tool_files.page_of_verdicts",
        ),
        "evalsite.accounts.audit_log.CODE_LABELS": ("judging.overview.audit_codes.CODE_LABELS",),
        "evalsite.accounts.invitations.purposes": {"study": "judging.people.inviting.links.purpose"},
        "evalsite.demo.preparations": ("judging.sample.prepare_with_judge",),
        "evalsite.demo.when_ready": ("judging.sample_people.add_people", "judging.sample.test_connections"),
        "evalsite.mail.digests.waiting_ratings": ("judging.people.waiting.waiting_lines",),
        "evalsite.storage.completeness.has_encrypted": ("judging.endpoints.selectors.any_encrypted",),
        "evalsite.webhooks.turned_off": ("judging.teamwork.inbox.notify_webhook_off",),
        "judging.endpoints.selectors.metrics_using": ("judging.metrics.selectors.metrics_that_use",),
        "judging.filters.judgement_filter.FURTHER": {
            "criterion": "judging.filters.criteria.CRITERION",
            "tag": "judging.teamwork.filters.TAG",
            "flagged": "judging.teamwork.filters.FLAGGED",
            "assigned": "judging.teamwork.filters.ASSIGNED",
            "excluded": "judging.teamwork.filters.EXCLUDED",
            "commented": "judging.teamwork.filters.COMMENTED",
            "differs": "judging.people.disagreement.DISAGREEMENT",
            "disputed": "judging.reports.disputed_criteria.DISPUTED",
        },
        "judging.metrics.editor.scripts.reply_history": ("judging.runs.rerun.parser_trial.RUN_REPLIES",),
        "judging.metrics.editor.starting_points.starting_points": {
            "group": "judging.look.judge_from_group.GROUP_START"
        },
        "judging.metrics.gallery.cards.card_records": ("judging.trust.gallery.views.newest_records",),
        "judging.metrics.gallery.page.card_contexts": ("judging.trust.gallery.views.measuring_context",),
        "judging.metrics.selectors.history_notes": (
            "judging.trust.succession.history.successions_in_history",
        ),
        "judging.metrics.services.definition_changed": ("judging.trust.events.tell_of_change",),
        "judging.metrics.services.definition_checks": ("judging.trust.leaks.refuse_test_texts",),
        "judging.people.judgements.labels_stored": ("judging.trust.closing.complete_tests_close",),
        "judging.records.run_events.run_finished": ("judging.people.asking.rules.rules_apply",),
        "judging.records.seal.closed_rows": ("judging.trust.seal.rows_closed",),
        "judging.records.seal.sealed_rows": ("judging.trust.seal.sealed_rows",),
        "judging.records.seal.split_rows": ("judging.trust.seal.rows_in_splits",),
        "judging.reports.figures.licences_added": ("judging.trust.report_figures.add_licences",),
        "judging.runs.selectors.imported_facts": (
            "judging.transfer.results_import.imported_run.imported_facts",
        ),
        "judging.transfer.export.files.first_sheets": ("judging.reports.files.report_sheet",),
        "judging.transfer.export.records.people_columns": ("judging.people.rating_export.people_of",),
    }

    def ready(self) -> None:
        from evalsite import api
        from judging import checks  # noqa: F401 - registers itself

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
        # This is the last app. What was imported stays, and no later collection needs to search it.
        gc.freeze()
        gc.enable()  # manage.py turned it off
