"""What is known of an upload while it is read: findings, figures, and which rows are valid."""

from collections.abc import Iterable

from datasets.core.decode import Unreadable
from datasets.core.detect import Detection
from datasets.core.findings import Finding, FindingLog, finding
from datasets.core.limits import Limits
from datasets.core.rules import RowFindings, placed
from datasets.core.stats import Stats


class ReadState:
    """`valid` holds 1 or 0 for each row, in the order of the file."""

    def __init__(self, detection: Detection, limits: Limits, kept_per_code: int) -> None:
        self.detection = detection
        self.limits = limits
        self._kept_per_code = kept_per_code
        self.begin()

    def begin(self) -> None:
        """From the first row, also once more."""
        self.format = self.detection.format
        self.log = FindingLog(self._kept_per_code)
        self.stats = Stats()
        self.valid = bytearray()
        self.valid_rows = 0
        self.stopped_by = ""
        self.log.add_all(self.detection.findings)

    @property
    def rows(self) -> int:
        return len(self.valid) or self.detection.rows

    def count(self, valid: bool) -> bool:
        """One more row, and whether it can be used; raises Unreadable if that is one too many."""
        if len(self.valid) >= self.limits.rows:
            raise Unreadable(finding("file.too_many_rows", limit=self.limits.rows))
        usable = valid and self.format is not None
        self.valid.append(usable)
        self.valid_rows += usable
        return usable

    def note(self, line: int, source: bytes, found: RowFindings) -> None:
        """Counts what was found in a row; what is kept is placed in its text."""
        if self.detection.silent:
            return
        for code, number in found.counts.items():
            self.log.count(code, number, line)
        wanted = [one for one in found.found if self.log.is_kept(one)]
        for one in placed(wanted, line, source.decode("utf-8", "replace")) if wanted else ():
            self.log.keep(one)

    def note_all(self, found: Iterable[Finding]) -> None:
        """The same of findings that have their line."""
        if not self.detection.silent:
            self.log.add_all(found)

    def too_large(self, line: int) -> Finding:
        """Of a row that is too long to be looked at."""
        return finding("row.too_large", line=line, limit=self.limits.row_bytes)

    def too_many_values(self, line: int) -> Finding:
        """Of a row that is not looked at, as its values would take many times its bytes."""
        return finding("row.too_large", line=line, limit=self.limits.row_values, of="values")
