"""Verdicts in files of other tools, imported as a run over the version made from the files."""

from __future__ import annotations

from django.urls import reverse

from datasets.models import FileImport, Version
from evalsite.accounts.models import User
from evalsite.tasks import jobs
from judging.records.models import Run
from judging.transfer.results_import.models import ResultsImport, ResultsImportState
from judging.transfer.results_import.services import JOB


def run_of_import(done: FileImport, user: User | None) -> None:
    """Import the verdicts of the files as a run over the version that was made from them."""
    version = done.new_version
    assert version is not None  # only called once the version is ready
    results_import = ResultsImport.objects.create(
        project=done.project,
        version=version,
        name=free_name(version),
        file_name=done.files[0]["name"],
        stored_as=done.verdicts_as,
        size=sum(file["size"] for file in done.files),
        state=ResultsImportState.IMPORTING,
        created_by=user,
    )
    FileImport.objects.filter(pk=done.pk).update(verdicts_as="")  # now owned by the results import
    jobs.request(JOB, results_import.pk)


def page_of_verdicts(version: Version) -> str:
    """The URL of the run, or of its import while the run does not exist yet; '' if there is neither."""
    results_import = ResultsImport.objects.filter(version=version).order_by("pk").first()
    if results_import is None:
        return ""
    slug = version.dataset.project.slug
    page = (
        ("runs:detail", results_import.run_id)
        if results_import.run_id
        else ("runs:results_import", results_import.pk)
    )
    return reverse(page[0], args=[slug, page[1]])


def free_name(version: Version) -> str:
    """The data set's name, with the version number appended if the name is taken."""
    name = version.dataset.name[:180]
    names = [name, f"{name} v{version.number}", f"{name} v{version.number} ({version.pk})"]
    taken = set(
        Run.objects.filter(project=version.dataset.project, name__in=names).values_list("name", flat=True)
    )
    return next(candidate for candidate in names if candidate not in taken)
