"""One look through the lines of a JSONL upload: each proven clean by the quick look or examined with care."""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator

from datasets.core.account import Account
from datasets.core.decode import Block, Unreadable
from datasets.core.findings import Finding
from datasets.core.formats.checks import Check, Told, check_json_row, not_utf8
from datasets.core.formats.crowded import holds_more_values
from datasets.core.formats.csvtext import broken_byte
from datasets.core.formats.detect import Look, look_at
from datasets.core.formats.keycount import key_counts
from datasets.core.formats.quick import QuickLook
from datasets.core.rows import NewRow, Part, RawRow


class Surprise(Exception):
    """The upload is not what its beginning promised."""


class LinesLook:
    """Bound to one account. With a `watch` it also takes the votes on the upload's format as it goes.

    Only where it is to `keep` rows are they handed out.
    """

    def __init__(self, account: Account, watch: Look | None = None, *, keep: bool = False) -> None:
        self._account = account
        self._watch = watch
        self._kept: list[NewRow] | None = [] if keep else None
        fmt = account.format
        self._quick = QuickLook(fmt, account.tally, self._kept) if fmt else None
        self._crowded: frozenset[int] = frozenset()

    def through(self, blocks: Iterator[Block]) -> Generator[Part, None, Finding | None]:
        """Takes all blocks and gives each one's rows; what stopped it before their end.

        Raises Surprise, only with a watch.
        """
        stopped = None
        try:
            for block in blocks:
                self._block(block)
                yield self._taken(), len(block.text)
        except Unreadable as trouble:
            stopped = trouble.found
        finally:
            if self._quick:
                self._quick.flush()
        yield self._taken(), 0
        return stopped

    def _taken(self) -> list[NewRow]:
        """The rows since the last call."""
        if not self._kept:
            return []
        taken = self._kept.copy()
        self._kept.clear()
        return taken

    def _block(self, block: Block) -> None:
        if block.text.isspace() and not block.oversized:
            return
        done, told = 0, list[Told]()
        for index in self._unknown(block, told):
            line = block.lines[index]
            number = block.first + index
            self._known(block, done, index, told)
            done = index + 1
            if line.strip() or number in block.oversized:
                self._with_care(number, line, number in block.oversized)
        self._known(block, done, len(block.lines), told)

    def _unknown(self, block: Block, told: list[Told]) -> Iterable[int]:
        """Places in the block of the lines that must be parsed, blank ones among them.

        What there is to say of others is added to `told`, from which `_known` takes it. They are UTF-8: every text in
        them was decoded.
        """
        room = self._account.limits.rows - self._account.rows
        self._crowded = self._crowded_lines(block)
        if not self._quick or block.oversized or self._crowded or len(block.lines) > room:
            return range(len(block.lines))
        return self._quick.unknown(block.first, block.lines, key_counts(block.text, block.lines), told)

    def _crowded_lines(self, block: Block) -> frozenset[int]:
        """The numbers of lines that hold more values than a row may."""
        most = self._account.limits.row_values
        if len(block.text) < most:
            return frozenset()
        lines = enumerate(block.lines, block.first)
        return frozenset(number for number, line in lines if holds_more_values(line, most))

    def _known(self, block: Block, start: int, end: int, told: list[Told]) -> None:
        """Lines that passed, and among them those that were `told`, which are taken.

        While a value may be spread over several lines, they matter to that question.
        """
        self._account.count_known(block.first + start, end - start, told)
        if self._watch:
            while start < end and (self._watch.splitter.active or (told and not self._watch.first)):
                self._look_at(block.first + start, block.lines[start])
                start += 1
            unseen = block.first + start
            votes = Counter([verdict.telling for line, _, verdict in told if line >= unseen])
            self._watch.vote(votes)
            self._watch.passed += end - start - votes.total()
        told.clear()

    def _look_at(self, number: int, line: bytes) -> None:
        if self._watch:
            look_at(number, line, self._watch)
            if self._watch.spread:
                raise Surprise

    def _with_care(self, number: int, line: bytes, oversized: bool) -> None:
        broken = None if oversized else broken_byte(line)
        if self._watch and (oversized or broken) and self._account.survey.encoding != "utf-16":
            raise Surprise  # perhaps it is no UTF-8; of a cut row one cannot say
        self._look_at(number, line)
        if oversized:
            check = self._account.too_large(number)
        elif number in self._crowded:
            check = self._account.too_many_values(number)
        elif broken:
            check = Check(number, [not_utf8(number, broken)])
        else:
            check = check_json_row(number, line.decode(), self._account.format)
        self._account.record(check)
        if self._kept is not None:
            self._kept.append(RawRow(number, bool(self._account.valid[-1]), line, line).kept)
