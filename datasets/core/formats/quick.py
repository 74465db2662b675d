"""The quick look at a row: proves that there is nothing to say about it, or leaves it to the careful look.

What is decoded here into typed structures is right by the decoder's word: JSON, roles known, texts texts. The
rest is a few comparisons. Whoever changes a rule in checks.py must see that nothing slips through here;
a test compares the two on many rows.
"""

from collections.abc import Iterator
from types import NoneType
from typing import Any

from msgspec import UNSET, UnsetType

from datasets.core.formats.checks import (
    ANSWERS,
    MESSAGES,
    TOLD,
    Told,
    Verdict,
    check_doubts,
    check_known_row,
)
from datasets.core.formats.cutting import Pattern, learned
from datasets.core.formats.extras import can_be_learned
from datasets.core.formats.facts import identity_of, models_of
from datasets.core.formats.keycount import SUSPECT
from datasets.core.formats.names import Format, Telling
from datasets.core.formats.shapes import Shape, is_flat, json_type
from datasets.core.formats.sound import (
    MODERATE,
    UNDECODED,
    NotQuick,
    bounded,
    decode_any,
    is_sound,
    keys_of,
)
from datasets.core.formats.wide import Messages, known_turns, seen_turns
from datasets.core.jsontext import JsonType
from datasets.core.rows import NewRow, Pieces, RawRow, cut
from datasets.core.tally import TYPE_BITS, Tally, identity_hash

MOST_LESSONS = 40
MOST_KEYS = 100
MOST_KNOWN = 300
"""Keys at the top of a file's rows; every decoded row has all of them as attributes."""
MOST_REMEMBERED = 1_000_000
"""What rows were known by is forgotten where it weighs more in all, counted in characters, see `_weight`."""
SHORT = 10_000
"""What weighs more by itself is not remembered; nor is what was said of a row of more bytes."""
FAULT_WEIGHT = 400
LARGEST = 1_000_000
"""A longer row is decoded only into a known shape: as plain values it could take many times its bytes."""


class _Plan:
    """Which models answered how often in a row, how many keys that makes, and how many rows have just this.

    The first of the `rows` is counted at once: models are told in the order in which they were met. `odd`: there are
    answers without a text, the same ones in all these rows. `pattern` is what stands around their answers in rows of
    the last hand.
    """

    __slots__ = ("_models", "keys", "lessons", "odd", "pattern", "rows")

    def __init__(self, models: list[tuple[str, int]], *, odd: bool) -> None:
        self._models = models
        self.odd = odd
        self.keys = 2 * len(models) + sum(number for _, number in models)
        self.rows = 0
        self.pattern: Pattern | None = None
        self.lessons = 0

    def count_in(self, tally: Tally, rows: int) -> None:
        for model, responses in self._models:
            tally.model(model, responses, rows)


class _Alike:
    """Rows with the same keys and types at the top and the same models; `rows` are yet to be counted."""

    __slots__ = ("_kinds", "_models", "rows")

    def __init__(self, fields: dict[str, Any], models: dict[str, int]) -> None:
        self._kinds = [(name, TYPE_BITS[json_type(value)]) for name, value in fields.items()]
        self._models = models
        self.rows = 0

    def count_in(self, tally: Tally, rows: int) -> None:
        for name, bit in self._kinds:
            tally.field(name, bit, rows)
        for model, responses in self._models.items():
            tally.model(model, responses, rows)


class QuickLook:
    """Bound to one format and one tally; a row that passes is counted there, after `flush` at the latest.

    It is added to `kept`, if that is given, at once.
    """

    def __init__(self, fmt: Format, tally: Tally, kept: list[NewRow] | None = None) -> None:
        self._format = fmt
        self._tally = tally
        self._kept = kept
        self._answers = fmt == "judge_only"
        self._legacy = fmt == "legacy_jsonl"
        self._telling: Telling = (not self._legacy, self._answers, self._legacy)
        self._shape = Shape()
        self._messages = Messages()
        self._lessons = 0
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._lines: list[int] = []
        self._hashes: list[int] = []
        self._id_lines: list[int] = []
        self._id_hashes: list[int] = []
        self._within = 0
        self._left = 0  # keys of the last row without its answers
        self._doubts = 0  # what the rules must be asked about the last row
        self._answered: _Plan | None = None  # of the last row
        self._regular: _Plan | None = None  # the same, if all its keys were known
        self._alike: dict[tuple[Any, ...], _Alike] = {}
        self._verdicts: dict[tuple[Any, ...], Verdict] = {}
        self._remembered = 0

    def unknown(self, first: int, lines: list[bytes], counts: list[int], told: list[Told]) -> Iterator[int]:
        """Places of the lines that must be parsed; what there is to say of others is added to `told`.

        The first has the number `first`, `counts` are key_counts' figures. When a place comes out, all lines before
        it are in the tally, and what was told of them may be taken out of `told`.
        """
        shape = self._shape
        for index, line in enumerate(lines):
            keys = counts[index]
            try:
                row = shape.decode(line)
                mix = shape.same or shape.mix(row)
                known = self._look(first + index, line, keys, row, mix.keys)
                mix.rows += known
            except UNDECODED:
                known = False
            verdict: Verdict | None = None
            if not known:
                verdict = self._look_at_any(first + index, line, keys)
                if verdict is None:
                    self._flush_hashes()
                    yield index
                    continue
            elif self._doubts:
                verdict = self._verdict_on(line, row)
            if verdict and not self._passes(verdict):
                told.append((first + index, line, verdict))
                if self._kept is not None:
                    self._kept.append(RawRow(first + index, verdict.valid, line, line).kept)
            elif self._kept is not None:
                self._kept.append(self._as_kept(first + index, line))
        self._flush_hashes()

    def _verdict_on(self, line: bytes, row: Any) -> Verdict:
        """What is to be said of a known row with something in doubt; of many such rows the rules are asked once."""
        if len(line) > SHORT:
            return check_doubts(row, self._format, self._doubts)
        seen: tuple[Any, ...] | None = ()
        if self._doubts & MESSAGES:
            seen = seen_turns(row.conversation) if self._legacy else self._messages.seen(row.messages)
        key = (self._doubts, seen, self._answered if self._doubts & ANSWERS else None)
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = check_doubts(row, self._format, self._doubts)
            if any(code.endswith("missing") for code in verdict.codes):
                # The structure does not tell which key may stand there instead.
                return check_known_row(decode_any(line), self._format)
            weight = len(line) + FAULT_WEIGHT * len(verdict.faults)
            if seen is not None and self._can_remember(weight):
                self._verdicts[key] = verdict
        return verdict

    def _can_remember(self, weight: int) -> bool:
        """Whether something of that weight may be remembered; makes room for it, so that counts are in the tally."""
        if weight > SHORT:
            return False
        if self._remembered + weight > MOST_REMEMBERED:
            self.flush()
        self._remembered += weight
        return True

    def _as_kept(self, number: int, line: bytes) -> NewRow:
        """A row that has just passed."""
        if self._answers:
            return NewRow(number, True, *self._cut(line.strip()))
        return NewRow(number, True, line.strip())

    def _cut(self, line: bytes) -> Pieces:
        plan = self._regular
        if plan is None:
            return cut(line)
        pieces = None
        if plan.pattern:
            pieces = plan.pattern.cut(line, self._left, shallow=not self._shape.answers.extras.nested)
        if pieces is None:
            pieces = cut(line)
            if plan.lessons < MOST_LESSONS:
                plan.lessons += 1
                plan.pattern = learned(line, pieces)
        return pieces

    def _flush_hashes(self) -> None:
        """Row by row these would cost as much as decoding."""
        self._tally.objects += len(self._lines)
        self._tally.messages.extend(self._lines, self._hashes)
        self._tally.ids.extend(self._id_lines, self._id_hashes)
        for taken in (self._lines, self._hashes, self._id_lines, self._id_hashes):
            taken.clear()

    def flush(self) -> None:
        """Moves what was counted by shape and by plan into the tally."""
        for name, kind, rows in self._shape.counted():
            self._tally.field(name, TYPE_BITS[kind], rows)
        for plan in self._plans.values():
            if plan.rows > 1:
                plan.count_in(self._tally, plan.rows - 1)
        self._plans.clear()
        for alike in self._alike.values():
            if alike.rows:
                alike.count_in(self._tally, alike.rows)
        self._alike.clear()
        self._verdicts.clear()
        self._remembered = 0

    def _look_at_any(self, number: int, line: bytes, keys: int) -> Verdict | None:
        """What is to be said of a row of no known shape, which is counted; None if it must be parsed for that."""
        if len(line) > LARGEST or keys == SUSPECT:
            return None
        try:
            fields = decode_any(line)
            if not isinstance(fields, dict):
                return None
            verdict = check_known_row(fields, self._format)
            if (not self._passes(verdict) and len(line) > MODERATE) or not is_sound(line, fields, keys):
                return None
        except (*UNDECODED, NotQuick):
            return None
        self._count(number, fields)
        if self._answers and "model_outputs" not in fields and not self._shape.lacks("model_outputs"):
            self.flush()
            self._shape.may_lack("model_outputs")
        if verdict.telling == self._telling and TOLD.issuperset(verdict.codes):
            self._regular = None
            self._learn({name: json_type(value) for name, value in fields.items()}, fields)
        return verdict

    def _count(self, number: int, fields: dict[str, Any]) -> None:
        """A sound row of plain values, whatever was found in it."""
        if fields.get("id") is not None:
            self._id_lines.append(number)
            self._id_hashes.append(identity_hash(fields["id"]))
        identity = identity_of(fields)
        if identity is None:
            self._tally.objects += 1
        else:
            self._lines.append(number)
            self._hashes.append(hash(identity))
        models = models_of(fields)
        key = (*fields, *map(type, fields.values()), *models, *models.values())
        alike = self._alike.get(key)
        if alike is None:
            self._new_alike(key, _Alike(fields, models))
        else:
            alike.rows += 1

    def _new_alike(self, key: tuple[Any, ...], alike: "_Alike") -> None:
        """Counts the first of such rows at once, as names are told in the order in which they were met."""
        alike.count_in(self._tally, 1)
        if self._can_remember(_weight(key)):
            self._alike[key] = alike

    def _learn(self, types: dict[str, JsonType], fields: dict[str, Any]) -> None:
        few = len(types) <= MOST_KEYS and self._shape.keys_with(types) <= MOST_KNOWN
        if self._lessons < MOST_LESSONS and few and all(map(can_be_learned, types)):
            self._lessons += 1
            self.flush()
            self._shape.learn(types, {name for name, value in fields.items() if not is_flat(value)})
            self._learn_answers(fields)
            if not self._legacy and self._messages.learn(fields["messages"]):
                self._shape.learn_messages(self._messages.type)

    def _learn_answers(self, fields: dict[str, Any]) -> None:
        if self._answers:
            outputs = fields["model_outputs"]
            self._shape.learn_answers(answer for output in outputs for answer in output["responses"])

    def _adds_up(self, line: bytes, keys: int) -> bool:
        """Whether a row is sound although it has other keys than were known; they are known from then on."""
        fields = decode_any(line)
        if keys == SUSPECT or not is_sound(line, fields, keys):
            return False
        if self._answers and self._lessons < MOST_LESSONS:
            self._lessons += 1
            self._learn_answers(fields)
        return True

    def _passes(self, verdict: Verdict) -> bool:
        """Whether there is nothing to say, and the row has the keys of this format and none of another's."""
        return not verdict.faults and verdict.telling == self._telling

    def _look(self, number: int, line: bytes, keys: int, row: Any, expected: int) -> bool:
        """`row` has its known keys as attributes and `expected` keys at the top."""
        try:
            if self._legacy:
                identity, within, doubtful = known_turns(row.conversation, row.system)
            else:
                identity, within, doubtful = self._messages.look(row.messages)
            self._doubts = MESSAGES if doubtful else 0
            expected += within
            plan = None
            if self._answers:
                outputs = row.model_outputs
                if outputs is UNSET:
                    self._doubts |= ANSWERS
                else:
                    plan = self._plan(outputs)
                    expected += plan.keys + self._within
                    if plan.odd:
                        self._doubts |= ANSWERS
            self._answered = plan
            for name in self._shape.nested:
                value = getattr(row, name)
                if value is not UNSET:
                    expected += keys_of(value)
            for name in self._shape.flat:
                value = getattr(row, name)
                if type(value) is dict:
                    expected += len(value)
            own = bounded(row.id)
            regular = expected == keys
            if not regular and (self._doubts or not self._adds_up(line, keys)):
                return False
        except (*UNDECODED, NotQuick):
            return False
        if own is not None and own is not UNSET:
            self._id_lines.append(number)
            self._id_hashes.append(identity_hash(own))
        if plan is not None:
            plan.rows += 1
            if plan.rows == 1:
                plan.count_in(self._tally, 1)
            self._regular = plan if regular else None
            self._left = expected - 1 - plan.keys - self._within
        self._lines.append(number)
        self._hashes.append(hash(identity))
        return True

    def _plan(self, outputs: list[Any]) -> _Plan:
        """The plan of a row's answers; notes how many further keys they hold."""
        key: list[str | int] = []
        odd: list[Any] = []
        extras, further = self._shape.answers.extras, self._shape.answers.further
        within = 0
        for output in outputs:
            responses = output.responses
            key += (output.model_name, len(responses))
            for number, response in enumerate(responses):
                content = response.content
                if type(content) is not str or not content or content.isspace():
                    within -= content is UNSET
                    odd += _odd(len(key), number, content, response.tool_calls)
                if response.reasoning_content is not UNSET:
                    within += 1
                if further:
                    within += extras.keys(extras.values(response))
        self._within = within
        met = (*key, *odd) if odd else tuple(key)
        return self._plans.get(met) or self._new_plan(met, key)

    def _new_plan(self, met: tuple[Any, ...], key: list[str | int]) -> _Plan:
        models = [(str(name), int(number)) for name, number in zip(key[::2], key[1::2], strict=True)]
        names = {name for name, number in models if number and name.strip()}
        if not names or len(names) < len(models):
            raise NotQuick
        plan = _Plan(models, odd=len(met) > len(key))
        if self._can_remember(_weight(met)):
            self._plans[met] = plan
        return plan


def _weight(key: tuple[Any, ...]) -> int:
    """Of what rows are known by: its texts, and some characters for each of its parts."""
    return sum([len(part) for part in key if type(part) is str]) + 16 * len(key)


def _odd(place: int, number: int, content: Any, calls: Any) -> tuple[Any, ...]:
    """What an answer has instead of a text, and where; nothing if it calls a tool. NotQuick if that holds keys."""
    kind = type(content)
    if kind in (list, dict):
        raise NotQuick
    calling = calls is not UNSET and calls is not None
    if calling and kind in (str, NoneType, UnsetType):
        return ()
    return place, number, kind, calling
