"""Opens evidence files of other installations: the data set and the imported run are those of any import
(datasets/core/imports/evidence.py); here the file is verified, and kept as the mark of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from datasets import uploads
from datasets.core.imports.evidence import NAME
from datasets.models import FileImport
from datasets.versions.file_import import source_files
from evalsite.accounts.models import User
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold, WorkStopped
from judging.evidence.container import Evidence
from judging.evidence.verifying import compared, verify
from judging.records.models import Run
from judging.reports.services import report_document
from judging.transfer.results_import.models import OpenedEvidence, ResultsImport

JOB = "open_evidence"
_CELLS = ("candidates", "people_candidates")
_FIGURES = ("mean", "items", "scored")


def evidence_opened(done: FileImport, _user: User | None) -> None:
    """Have the file verified if it is one of evidence. Call after its verdicts were handed over."""
    if done.source != NAME:
        return
    results_import = ResultsImport.objects.filter(version=done.new_version_id).earliest("pk")
    opened = OpenedEvidence.objects.create(results_import=results_import)
    jobs.request(JOB, opened.pk)


@jobs.job(JOB, OpenedEvidence)
def open_evidence(hold: Hold, opened: OpenedEvidence) -> None:
    """Verify the file and compare its figures with those of the run, once that is imported."""
    results_import = ResultsImport.objects.select_related("run").get(pk=opened.results_import_id)
    if results_import.under_way:
        raise WorkStopped  # the reconciler asks again
    if results_import.run is not None:
        document = document_of(
            FileImport.objects.get(new_version=results_import.version_id), results_import.run
        )
        hold.store(opened, document=document)


def document_of(done: FileImport, run: Run) -> dict[str, Any]:
    """{origin, verified: as `verify --json` with the number of `differences`, same_figures, licences: as in the report
    inside, sha256}. Raises NotUsable if the file is none of evidence."""
    (file,) = source_files(done)
    with closing(Evidence(file, uploads.limits_of_kept())) as evidence:
        verification = verify(evidence)
    # Read anew: what was read counts towards the limit of unpacked bytes.
    with closing(Evidence(file, uploads.limits_of_kept())) as evidence:
        settings, inside = evidence.document("settings.json"), evidence.document("report.json")
    return {
        "origin": {name: str(settings[name]) for name in ("run", "dataset", "version", "kind")}
        | {"program": evidence.version},
        "verified": verification.document() | {"differences": len(verification.differences)},
        "same_figures": not list(compared(dict(_figures(report_document(run))), dict(_figures(inside)))),
        "licences": inside["licences"],
        "sha256": done.files[0]["sha256"],
    }


def _figures(report: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Means and counts of each candidate under each metric."""
    for cells in _CELLS:
        for candidate, metrics in report[cells].items():
            for metric, cell in metrics.items():
                yield f"{cells}/{candidate}/{metric}", [cell[name] for name in _FIGURES]
