"""What has been found of an upload so far: row by row, whichever format it has."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from datasets.core.decode import Unreadable
from datasets.core.findings import Finding, Ledger, finding
from datasets.core.formats.checks import Check, Fault, Told, Verdict, columns_of
from datasets.core.formats.detect import Survey
from datasets.core.limits import Limits
from datasets.core.tally import Tally


class Account:
    """Findings, figures and verdicts. `valid` holds 1 or 0 for each row, in the order of the file."""

    def __init__(self, survey: Survey, limits: Limits, kept_per_code: int) -> None:
        self.survey = survey
        self.limits = limits
        self._kept_per_code = kept_per_code
        self.begin()

    def begin(self) -> None:
        """From the first row, also once more."""
        self.format = self.survey.format
        self.ledger = Ledger(self._kept_per_code)
        self.tally = Tally()
        self.valid = bytearray()
        self.rows = 0
        self.valid_rows = 0
        self.stopped_by = ""
        self.ledger.add_all(self.survey.findings)

    def count(self, valid: bool) -> None:
        """One more row; raises Unreadable if that is one too many."""
        if self.rows >= self.limits.rows:
            raise Unreadable(finding("file.too_many_rows", limit=self.limits.rows))
        self.rows += 1
        self.valid_rows += valid
        self.valid.append(valid)

    def count_known(self, first: int, rows: int, told: Sequence[Told]) -> None:
        """Rows from the line `first` on, fewer than the limit allows, with nothing to report but what is `told`."""
        begin = len(self.valid) - first
        self.rows += rows
        self.valid_rows += rows
        self.valid += b"\1" * rows
        for line, _, verdict in told:
            if not verdict.valid:
                self.valid[begin + line] = 0
                self.valid_rows -= 1
        if told and not self.survey.silent:
            self._note_told(told)

    def _note_told(self, told: Sequence[Told]) -> None:
        """Where no finding of a verdict would be kept its lines are counted together."""
        verdicts = {verdict for *_, verdict in told}
        only_counted: dict[Verdict, list[int]] = {
            one: [] for one in verdicts if not any(map(self._is_kept, one.faults))
        }
        for line, source, verdict in told:
            if verdict in only_counted:
                only_counted[verdict].append(line)
                continue
            explained = partial(Fault.at, line=line, text=source.decode(), column=columns_of(source))
            self._note(line, verdict.faults, verdict.more, explained)
        for verdict, lines in only_counted.items():
            for code in verdict.codes:
                self.ledger.count_at(code, lines)
            self._count_more(verdict.more, len(lines))

    def _count_more(self, more: dict[str, int], rows: int = 1) -> None:
        for code, number in more.items():
            self.ledger.count_only(code, number * rows)

    def record(self, check: Check, usable: bool = True) -> None:
        """Keeps what was found in a row; it is valid if that is no error, and the file `usable`."""
        self.count(usable and check.valid and self.format is not None)
        if not self.survey.silent:
            self._note(check.line, check.faults, check.more, check.explained)
        if check.facts is not None:
            self.tally.add(check.line, check.facts)

    def _note(
        self,
        line: int,
        faults: Iterable[Finding | Fault],
        more: dict[str, int],
        explained: Callable[[Any], Finding],
    ) -> None:
        """Counts what was found in a line; what is kept is explained first."""
        for fault in faults:
            if self._is_kept(fault):
                self.ledger.add(explained(fault))
            else:
                self.ledger.count_at(fault.code, [line])
        self._count_more(more)

    def _is_kept(self, fault: Finding | Fault) -> bool:
        ledger = self.ledger
        return ledger.room(fault.code) > 0 or ledger.is_new_repair(fault.code, fault.repair)

    def too_large(self, line: int) -> Check:
        """The check of a row that is too long to be looked at."""
        return Check(line, [finding("row.too_large", line=line, limit=self.limits.row_bytes)])

    def too_many_values(self, line: int) -> Check:
        """The check of a row that is not looked at, as its values would take many times its bytes."""
        limit = self.limits.row_values
        return Check(line, [finding("row.too_large", line=line, limit=limit, of="values")])
