"""Opens evidence files of other installations: the data set and the imported run are those of any import
(datasets/core/imports/evidence.py); here the file is verified, and kept as the mark of the run."""

from __future__ import annotations

import json
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
from judging.evidence.comparing import compared
from judging.evidence.container import Evidence
from judging.evidence.verifying import verify
from judging.records.models import Run
from judging.reports.licence_text import licence_sentence
from judging.reports.services import report_document
from judging.transfer.results_import.models import OpenedEvidence, ResultsImport

JOB = "open_evidence"
LONGEST, LONGEST_LICENCE, MOST_LICENCES = 200, 5_000, 100
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
        settings, inside = _object(evidence, "settings.json"), _object(evidence, "report.json")
    origin = {name: str(settings.get(name, ""))[:LONGEST] for name in ("run", "dataset", "version", "kind")}
    version = verification.version[:LONGEST]
    return {
        "origin": {**origin, "program": version},
        "verified": {
            **verification.document(),
            "version": version,
            "differences": len(verification.differences),
        },
        "same_figures": _same(report_document(run), inside),
        "licences": [entry for entry in _list(inside.get("licences")) if _can_be_said(entry)][:MOST_LICENCES],
        "sha256": done.files[0]["sha256"],
    }


def _object(evidence: Evidence, name: str) -> dict[str, Any]:
    try:
        document = evidence.document(name)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _can_be_said(entry: Any) -> bool:
    """Whether it has what a licence has: it comes from a file that anybody may have made."""
    try:
        return len(json.dumps(entry)) < LONGEST_LICENCE and bool(entry["metric"] + licence_sentence(entry))
    except (LookupError, TypeError, ValueError, AttributeError):
        return False


def _same(report: Mapping[str, Any], inside: Mapping[str, Any]) -> bool:
    try:
        return not list(compared(dict(_figures(report)), dict(_figures(inside))))
    except (LookupError, TypeError, AttributeError):
        return False


def _figures(report: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Means and counts of each candidate under each metric."""
    for cells in _CELLS:
        for candidate, metrics in report[cells].items():
            for metric, cell in metrics.items():
                yield f"{cells}/{candidate}/{metric}", [cell[name] for name in _FIGURES]
