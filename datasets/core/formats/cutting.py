"""Answers cut out of rows that were written by the same hand, without decoding them a second time.

What stands between the answers of such rows is the same in all of them: the key `model_outputs` and the first model's
name before the first answer, the next name before the next, and after the last what leads to the next key. That is
learned from a row that was cut with care, and looked for in the others.

Why it cannot cut in a wrong place. In JSON a quote with a letter behind it begins a key or a text, as none may follow
one that ended; so whatever is learned here, having such a quote, stands outside of texts wherever it is found. The
row's own `model_outputs` is in the part that is cut out, if it is not in what is left. Answers of plain values hold no
further objects with names of models: beginning at another's key or ending at another's end, the part would hold more
keys than the answers have, and what is left too few. Those are counted.

Answers that nest deeper, as those with calls do, could hold all of that. A part that begins at the row's own key still
has the right number of keys only if it ends where the answers end. So of these rows it is also asked that the keys
`model_outputs` and `model_name` stand in the part only as often as the row itself needs them, none with escapes: then
every place that was found is the row's own.
"""

import re
from itertools import chain, repeat

from msgspec import Struct

from datasets.core.formats.keycount import KEY_END, keys_in
from datasets.core.rows import Pieces, escaped

_KEY = b'"model_outputs"'
_NAME_KEY = b'"model_name"'
_NAME = rb'\{\s*"model_name"\s*:\s*"[^"\\]*+"\s*,\s*"responses"\s*:\s*\[\s*'
_HEAD = re.compile(rb'(?:,\s*|\{\s*)"model_outputs"\s*:\s*\[\s*' + _NAME)
_JOINT = re.compile(rb"\s*\]\s*\}\s*,\s*" + _NAME)
_TAIL = re.compile(rb'\s*\]\s*\}\s*\](?:\s*,\s*"\w[^"\\]*+"\s*:|\s*\})')


class Pattern(Struct, frozen=True, gc=False):
    """What stands around the answers of one model each: `instead` of all of it remains without them.

    `followed` are the models but the last, with what stands behind the answer of each, up to the next one's; `last`:
    nothing follows the answers.
    """

    head: bytes
    followed: tuple[tuple[str, bytes], ...]
    last_model: str
    tail: bytes
    last: bool
    instead: bytes

    def cut(self, line: bytes, left: int, shallow: bool) -> Pieces | None:
        """The pieces of a row that has `left` keys without its answers; `shallow`: these hold no objects of objects.

        None if it is another's hand. The row is known to be sound, to have these models, one answer of each.
        """
        before, _, rest = line.partition(self.head)
        span, found, after = rest.rpartition(self.tail)
        data = before + self.instead + after
        # One function call less for each row of plain texts is a tenth of the whole.
        keys = keys_in(data) if b"\\" in data else data.count(KEY_END)
        if not found or (self.last and after) or keys != left or _KEY in data or escaped(data):
            return None
        if not (shallow or self._is_own(span)):
            return None
        answers = []
        for model, joint in self.followed:
            answer, found, span = span.partition(joint)
            if not found:
                return None
            answers.append((model, 1, answer))
        answers.append((self.last_model, 1, span))
        return data, answers

    def _is_own(self, span: bytes) -> bool:
        """Whether between head and tail no other object has the keys that were looked for."""
        return _KEY not in span and span.count(_NAME_KEY) == len(self.followed) and not escaped(span)


def learned(line: bytes, pieces: Pieces) -> Pattern | None:
    """What stands around the answers of a row that was cut with care; None if that says nothing of other rows."""
    data, answers = pieces
    at = _place_of(line)
    end, between = at, list[bytes]()
    for wanted, (_, number, answer) in zip(chain([_HEAD], repeat(_JOINT)), answers, strict=False):
        found = wanted.match(line, end) if end >= 0 else None
        if not found or number > 1 or not line.startswith(answer, found.end()):
            return None
        between.append(found.group())
        end = found.end() + len(answer)
    tail = _TAIL.match(line, end) if between else None
    if not tail:
        return None
    before, after = line[:at], line[tail.end() :]
    instead = data[len(before) : len(data) - len(after)]
    if before + instead + after != data:
        return None
    models = [model for model, _, _ in answers]
    followed = tuple(zip(models, between[1:], strict=False))
    return Pattern(between[0], followed, models[-1], tail.group(), not after, instead)


def _place_of(line: bytes) -> int:
    """Where what leads to the only `model_outputs` begins, -1 if that is not certain."""
    key = line.find(_KEY)
    if key < 0 or line.count(_KEY) > 1:
        return -1
    before = line[:key].rstrip()
    return len(before) - 1 if before.endswith((b",", b"{")) else -1
