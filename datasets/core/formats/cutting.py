"""Answers cut out of rows that were written by the same hand, without decoding them a second time.

What stands between the answers of such rows is the same in all of them: the key `model_outputs` and the first model's
name before the first answer, the next name before the next, and after the last what leads to the next key. That is
learned from a row that was cut with care, and looked for in the others.

Why it cannot cut in a wrong place. In JSON a quote with a letter behind it begins a key or a text, as none may follow
one that ended; so whatever is learned here, having such a quote, stands outside of texts wherever it is found. The
row's own `model_outputs` is in the part that is cut out, if it is not in what is left. Answers of plain values hold no
further objects with names of models: beginning at another's key or ending at another's end, the part would hold more
keys than the answers have, and what is left too few. Those are counted.
"""

import re
from itertools import chain, repeat

from msgspec import Struct

from datasets.core.formats.keycount import keys_in
from datasets.core.rows import Pieces, escaped

_KEY = b'"model_outputs"'
_NAME = rb'\{\s*"model_name"\s*:\s*"[^"\\]*+"\s*,\s*"responses"\s*:\s*\[\s*'
_HEAD = re.compile(rb'(?:,\s*|\{\s*)"model_outputs"\s*:\s*\[\s*' + _NAME)
_JOINT = re.compile(rb"\s*\]\s*\}\s*,\s*" + _NAME)
_TAIL = re.compile(rb'\s*\]\s*\}\s*\](?:\s*,\s*"\w[^"\\]*+"\s*:|\s*\})')


class Pattern(Struct, frozen=True, gc=False):
    """What stands around the answers of one model each: `instead` of all of it remains without them.

    `joints` are what stands between two answers, with the name of the model to come; `last`: nothing follows.
    """

    models: tuple[str, ...]
    head: bytes
    joints: tuple[bytes, ...]
    tail: bytes
    last: bool
    instead: bytes

    def cut(self, line: bytes, left: int) -> Pieces | None:
        """The pieces of a row that has `left` keys without its answers, which hold no objects of objects.

        None if it is another's hand. The row is known to be sound, to have these models, one answer of each.
        """
        before, _, rest = line.partition(self.head)
        span, found, after = rest.rpartition(self.tail)
        data = before + self.instead + after
        if not found or (self.last and after) or keys_in(data) != left or _KEY in data or escaped(data):
            return None
        answers = []
        for model, joint in zip(self.models, self.joints, strict=False):
            answer, found, span = span.partition(joint)
            if not found:
                return None
            answers.append((model, 1, answer))
        answers.append((self.models[-1], 1, span))
        return data, answers


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
    models = tuple(model for model, _, _ in answers)
    return Pattern(models, between[0], tuple(between[1:]), tail.group(), not after, instead)


def _place_of(line: bytes) -> int:
    """Where what leads to the only `model_outputs` begins, -1 if that is not certain."""
    key = line.find(_KEY)
    if key < 0 or line.count(_KEY) > 1:
        return -1
    before = line[:key].rstrip()
    return len(before) - 1 if before.endswith((b",", b"{")) else -1
