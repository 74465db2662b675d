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

    hooks = {
        "datasets.importing.worker.file_makers": {
            "edit": "datasets.versions.row_edits.write_file",
            "import": "datasets.versions.file_import.write_file",
            "repair": "datasets.versions.repair.write_file",
            "run": "datasets.versions.run_answers.write_file",
        },
        "datasets.importing.worker.follow_ups": (
            "datasets.versions.search.index_soon",
            "datasets.versions.file_import.hand_over_verdicts",
        ),
        "evalsite.storage.completeness.file_names": ("datasets.versions.parts.files_needed",),
    }

    def ready(self) -> None:
        from evalsite import api

        api.modules.append("datasets.api")
        api.takes_files |= {"api:datasets_upload", "api:version_answers"}
