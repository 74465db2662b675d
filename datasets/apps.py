from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "datasets"

    def ready(self) -> None:
        from datasets.importing import worker
        from datasets.versions import repair, run_answers, search

        worker.file_makers |= {"repair": repair.write_file, run_answers.ORIGIN: run_answers.write_file}
        worker.follow_ups.append(search.index_soon)
