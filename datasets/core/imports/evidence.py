"""Evidence files (docs/reports.md): the rows and answers of a run, and its verdicts as lines of a results file.

Nothing in the file is executed. Its settings, requests and licences are not imported.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from datasets.core.formats import LEGACY, Format, format_called, structural_keys
from datasets.core.imports.collector import REFERENCE, Collector, collected
from datasets.core.imports.evidence_zip import EvidenceZip, is_evidence
from datasets.core.imports.model import Note, NotUsable, Place, Source, SourceFile
from datasets.core.json_errors import nests_deeper
from datasets.core.variables import messages_of

NAME = "evidence"
_NOTES = (
    Note("messages", "rows"),
    Note("reference", "rows: ref_answer"),
    Note("field", "rows"),
    Note("answer", "answers"),
    Note("verdict", "results"),
    Note("left_out", "settings.json, report.json, judgements, verdicts, ratings, checklists"),
)
_WRONG = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _collect(files: Sequence[SourceFile], collector: Collector) -> None:
    for file in files:
        with closing(EvidenceZip(file, collector.options.limits)) as evidence:
            try:
                _collect_file(evidence, file, collector)
            except _WRONG:
                _refuse_broken(evidence, file)
                raise NotUsable("evidence_unreadable", file=file.name) from None


def _collect_file(evidence: EvidenceZip, file: SourceFile, collector: Collector) -> None:
    """Raises NotUsable; where a record is not what is needed, one of `_WRONG`."""
    settings = evidence.document("settings.json")
    _refuse_broken(evidence, file)
    if settings["hashes_only"]:
        raise NotUsable("evidence_hashes", file=file.name)
    fmt = format_called(settings["format"])
    for place, record in _records(evidence, "rows", file, collector):
        collector.row((file.name, record["row"]), _row(record["fields"], fmt), place)
    for place, record in _records(evidence, "answers", file, collector):
        if record["candidate"] != REFERENCE:
            answer = {**record.get("more", {}), "content": record["text"]}
            number = int(record["response"])
            collector.answer((file.name, record["row"]), str(record["candidate"]), answer, place, number)
    for place, record in _records(evidence, "results", file, collector):
        line = {"value": None, **record}
        collector.verdict((file.name, line.pop("line")), line, place)


def _refuse_broken(evidence: EvidenceZip, file: SourceFile) -> None:
    for name in evidence.broken:
        raise NotUsable("evidence_broken", file=file.name, member=name[:80])


def _records(
    evidence: EvidenceZip, name: str, file: SourceFile, collector: Collector
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The records of a member's lines, of at most the first `options.first`. Raises NotUsable if it was changed."""
    for number, record in enumerate(islice(evidence.lines(name), collector.options.first), 1):
        _refuse_broken(evidence, file)
        if nests_deeper(record):
            collector.leave_out(Place(file.name, number), "too_deep")
        else:
            yield Place(file.name, number), record


def _row(fields: dict[str, Any], fmt: Format | None) -> dict[str, Any]:
    """A row in the native shape: the messages and all other fields. Raises ValueError for an unknown format."""
    if fmt is None:
        raise ValueError("unknown format")
    hidden = structural_keys(fmt)
    rest = {name: value for name, value in fields.items() if name not in hidden}
    return rest | {"messages": messages_of(fields, fmt) if fmt in LEGACY else fields["messages"]}


def _recognise(files: Sequence[SourceFile]) -> bool:
    return len(files) == 1 and is_evidence(files[0])


SOURCE = Source(NAME, _recognise, lambda files, options: collected(files, options, _collect, _NOTES))
