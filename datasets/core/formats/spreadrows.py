"""A file that is JSON but no JSONL: its objects counted and described, though none of them is a row yet."""

from collections.abc import Iterator

from datasets.core.account import Account
from datasets.core.decode import Block, Unreadable
from datasets.core.findings import finding
from datasets.core.formats.checks import check_json_row
from datasets.core.formats.crowded import holds_more_values
from datasets.core.formats.detect import Votes, vote_on
from datasets.core.formats.spread import NotSpread, Piece, Splitter
from datasets.core.jsontext import word_at


def describe_spread(blocks: Iterator[Block], account: Account) -> None:
    """Counts and describes the objects, and says where even that is impossible; raises Unreadable."""
    splitter, votes = Splitter(), Votes()
    number, line = 0, ""
    try:
        for block in blocks:
            for number, raw in enumerate(block.lines, block.first):
                line = raw.decode("utf-8", "replace")
                for piece in splitter.feed(number, line):
                    _describe(piece, votes, account)
                if splitter.size > account.limits.row_bytes:
                    raise Unreadable(account.too_large(number).found[0])
        if splitter.open:
            raise NotSpread(number, len(line) + 1)
    except NotSpread as broken:
        _describe_broken(splitter, votes, account)
        met = word_at(line, broken.column - 1)
        broken_off = finding(
            "json.invalid",
            line=broken.line,
            column=broken.column,
            reason="spread",
            met=met,
            wanted=splitter.wanted,
        )
        account.ledger.add(broken_off)
    finally:
        account.format = account.format or votes.format()


def _describe_broken(splitter: Splitter, votes: Votes, account: Account) -> None:
    """The object that breaks off is one more, and what was read of it tells the format where nothing else does."""
    text = splitter.begun
    if not text:
        return
    account.count(valid=False)
    if votes.format() is None:
        votes.add('"messages"' in text, '"model_outputs"' in text, '"conversation"' in text)


def _describe(piece: Piece, votes: Votes, account: Account) -> None:
    if holds_more_values(piece.text.encode("utf-8", "surrogatepass"), account.limits.row_values):
        account.record(account.too_many_values(piece.line))
        return
    account.count(valid=False)
    vote_on(piece.text, votes)
    facts = check_json_row(piece.line, piece.text, None).facts
    if facts is not None:
        account.tally.add(piece.line, facts)
