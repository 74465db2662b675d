from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "datasets"

    def ready(self) -> None:
        from datasets.importing import worker
        from datasets.versions import attach, compare, file_import, repair, row_edits, run_answers, search
        from evalsite.tasks import workers

        worker.file_makers |= {"repair": repair.write_file, run_answers.ORIGIN: run_answers.write_file}
        worker.file_makers[file_import.ORIGIN] = file_import.write_file
        worker.file_makers[row_edits.ORIGIN] = row_edits.write_file
        worker.follow_ups += [search.index_soon, file_import.hand_over_verdicts]
        workers.reconcilers += [
            module.reconcile for module in (worker, repair, compare, attach, file_import, search)
        ]
