import gc

from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        from datasets.versions.file_import import take_verdicts, verdict_pages
        from judging import checks  # noqa: F401 - registers itself
        from judging.endpoints.selectors import metrics_using
        from judging.metrics.editor.scripts import reply_history
        from judging.metrics.selectors import metrics_that_use
        from judging.people.disagreement import DISAGREEMENT
        from judging.people.rating_export import people_of
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
        # This is the last app. What was imported stays, and no later collection needs to search it.
        gc.freeze()
        gc.enable()  # manage.py turned it off
