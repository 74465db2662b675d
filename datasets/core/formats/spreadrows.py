"""A file that is JSON but no JSONL: its objects counted and described, though none of them is a row yet."""

from collections.abc import Iterator
from typing import Any

from datasets.core.account import Account
from datasets.core.decode import Block, Unreadable
from datasets.core.findings import finding
from datasets.core.formats.checks import check_json_row, not_utf8
from datasets.core.formats.crowded import holds_more_values
from datasets.core.formats.csvtext import broken_byte
from datasets.core.formats.detect import Votes, vote_on
from datasets.core.formats.regaining import Broken, Objects, Passed, Unended, with_next
from datasets.core.formats.spread import Piece
from datasets.core.jsontext import word_at


def describe_spread(blocks: Iterator[Block], account: Account, unended: Unended) -> None:
    """Counts and describes the objects, and says where even that is impossible; raises Unreadable and Swallowed."""
    objects, votes = Objects(unended), Votes()
    last = (0, "")  # line with anything on it
    try:
        for number, line, following in with_next(_lines(blocks, account)):
            last = (number, line) if line.strip() else last
            for found in objects.feed(number, line, following):
                _describe(found, line, votes, account)
            if objects.exceeds(account.limits.row_bytes):
                raise Unreadable(account.too_large(objects.start).found[0])
        for found in objects.end(*last):
            _describe(found, last[1], votes, account)
    finally:
        account.format = account.format or votes.format()


def _lines(blocks: Iterator[Block], account: Account) -> Iterator[tuple[int, str]]:
    for block in blocks:
        for number, raw in enumerate(block.lines, block.first):
            text = raw.decode("utf-8", "replace")
            broken = broken_byte(raw) if "\ufffd" in text else None
            if broken:
                account.ledger.add(not_utf8(number, broken))
            yield number, text


def _describe(found: Piece | Broken | Passed, line: str, votes: Votes, account: Account) -> None:
    if isinstance(found, Broken):
        _describe_broken(found, line, votes, account)
    elif isinstance(found, Piece):
        _describe_whole(found, votes, account)


def _describe_broken(broken: Broken, line: str, votes: Votes, account: Account) -> None:
    """The object that breaks off is one more, and what was read of it tells the format where nothing else does."""
    met = word_at(line, broken.column - 1)
    params: dict[str, Any] = {"reason": "spread", "met": met, "wanted": broken.wanted}
    if line.startswith("/*", broken.column - 1):
        params = {"reason": "unended_comment", "met": "/*", "wanted": "*/"}
    elif broken.unended is not None:
        params |= {"reason": "unended" if met else "never_ends", "begun": broken.unended}
    told = finding("json.invalid", line=broken.line, column=broken.column, **params)
    account.ledger.add(told)
    text = broken.begun
    if not text:
        return
    account.count(valid=False)
    if votes.format() is None:
        votes.add('"messages"' in text, '"model_outputs"' in text, '"conversation"' in text)


def _describe_whole(piece: Piece, votes: Votes, account: Account) -> None:
    if holds_more_values(piece.text.encode("utf-8", "surrogatepass"), account.limits.row_values):
        account.record(account.too_many_values(piece.line))
        return
    account.count(valid=False)
    vote_on(piece.text, votes)
    facts = check_json_row(piece.line, piece.text, None).facts
    if facts is not None:
        account.tally.add(piece.line, facts)
