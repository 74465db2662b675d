"""What has been found of an upload so far: row by row, whichever format it has."""

from datasets.core.decode import Unreadable
from datasets.core.findings import Ledger, finding
from datasets.core.formats.checks import Check
from datasets.core.formats.detect import Survey
from datasets.core.limits import Limits
from datasets.core.tally import Tally


class Account:
    """Findings, figures and verdicts. `valid` holds 1 or 0 for each row, in the order of the file."""

    def __init__(self, survey: Survey, limits: Limits, kept_per_code: int) -> None:
        self.survey = survey
        self.format = survey.format
        self.limits = limits
        self.ledger = Ledger(kept_per_code)
        self.tally = Tally()
        self.valid = bytearray()
        self.rows = 0
        self.valid_rows = 0
        self.ledger.add_all(survey.findings)

    def count(self, valid: bool) -> None:
        """One more row; raises Unreadable if that is one too many."""
        if self.rows >= self.limits.rows:
            raise Unreadable(finding("file.too_many_rows", limit=self.limits.rows))
        self.rows += 1
        self.valid_rows += valid
        self.valid.append(valid)

    def count_clean(self, rows: int) -> None:
        """Rows with nothing to report, fewer than the limit allows."""
        self.rows += rows
        self.valid_rows += rows
        self.valid += b"\1" * rows

    def record(self, check: Check, usable: bool = True) -> None:
        """Keeps what was found in a row; it is valid if that is no error, and the file `usable`."""
        self.count(usable and check.valid and self.format is not None)
        if not self.survey.silent:
            self.ledger.add_all(check.found)
            for code, number in check.more.items():
                self.ledger.count_only(code, number)
        if check.facts is not None:
            self.tally.add(check.line, check.facts)

    def too_large(self, line: int) -> Check:
        """The check of a row that is too long to be looked at."""
        return Check(line, [finding("row.too_large", line=line, limit=self.limits.row_bytes)])

    def too_many_values(self, line: int) -> Check:
        """The check of a row that is not looked at, as its values would take many times its bytes."""
        limit = self.limits.row_values
        return Check(line, [finding("row.too_large", line=line, limit=limit, of="values")])
