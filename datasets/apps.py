from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "datasets"
    jobs = {
        "read_version": "datasets.importing.worker",
        "index_version": "datasets.versions.search",
        "match_answers": "datasets.versions.attach",
        "compare_versions": "datasets.versions.compare",
    }
    reconcilers = (
        "datasets.versions.search.reconcile",
        "datasets.versions.attach.delete_old",
        "datasets.versions.file_import.delete_old",
        "datasets.versions.temp_files.delete_left",
    )

    def ready(self) -> None:
        from datasets.importing import worker
        from datasets.versions import file_import, repair, row_edits, run_answers, search
        from datasets.versions.parts import files_needed
        from evalsite import api
        from evalsite.storage import completeness

        api.modules.append("datasets.api")
        api.takes_files |= {"api:datasets_upload", "api:version_answers"}
        worker.file_makers |= {"repair": repair.write_file, run_answers.ORIGIN: run_answers.write_file}
        worker.file_makers[file_import.ORIGIN] = file_import.write_file
        worker.file_makers[row_edits.ORIGIN] = row_edits.write_file
        worker.follow_ups += [search.index_soon, file_import.hand_over_verdicts]
        completeness.file_names.append(files_needed)
