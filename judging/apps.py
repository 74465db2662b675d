from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        from judging import checks  # noqa: F401 - registers itself
        from judging.endpoints.selectors import metrics_using
        from judging.metrics.editor import reply_history
        from judging.metrics.selectors import metrics_that_use
        from judging.people.rating_export import people_of
        from judging.runs.export.records import people_columns
        from judging.runs.rerun.parser_trial import RunReplies

        people_columns.append(people_of)
        metrics_using.append(metrics_that_use)
        reply_history.register(RunReplies())
