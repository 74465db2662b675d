"""The quick look at a row: proves that there is nothing to say about it, or leaves it to the careful look.

What is decoded here into typed structures is right by the decoder's word: JSON, roles known, texts texts. The
rest is a few comparisons. Whoever changes a rule in checks.py must see that nothing slips through here;
a test compares the two on many rows.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, convert

from datasets.core.formats.checks import joined, messages_identity, readable
from datasets.core.formats.cutting import Pattern, learned
from datasets.core.formats.keycount import SUSPECT
from datasets.core.formats.names import ROLES, Format, Message
from datasets.core.formats.shapes import (
    Shape,
    Turn,
    can_be_learned,
    is_flat,
    json_type,
    json_type_of,
)
from datasets.core.formats.sound import UNDECODED, NotQuick, bounded, count_keys, decode_any, is_sound
from datasets.core.jsontext import JsonType
from datasets.core.rows import NewRow, Pieces, cut
from datasets.core.tally import TYPE_BITS, Tally, identity_hash

MOST_LESSONS = 40
MOST_KEYS = 100
MOST_PLANS = 5_000
LARGEST = 1_000_000
"""A longer row is decoded only into a known shape: as plain values it could take many times its bytes."""


class _Plan:
    """Which models answered how often in a row, how many keys that makes, and how many rows have just this.

    `pattern` is what stands around their answers in rows of the last hand that was met.
    """

    __slots__ = ("keys", "lessons", "pattern", "rows")

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.rows = 0
        self.pattern: Pattern | None = None
        self.lessons = 0


class QuickLook:
    """Bound to one format and one tally; a row that passes is counted there, after `flush` at the latest.

    It is added to `kept`, if that is given, at once.
    """

    def __init__(self, fmt: Format, tally: Tally, kept: list[NewRow] | None = None) -> None:
        self._tally = tally
        self._kept = kept
        self._answers = fmt == "judge_only"
        self._legacy = fmt == "legacy_jsonl"
        self._shape = Shape()
        self._lessons = 0
        self._plans: dict[tuple[str | int, ...], _Plan] = {}
        self._lines: list[int] = []
        self._hashes: list[int] = []
        self._within = 0
        self._left = 0  # keys of the last row without its answers
        self._regular: _Plan | None = (
            None  # of the last row, if all its keys were known and its answers are shallow
        )
        self._wide = False  # the last row looked at as plain values can be no other
        self._calls = False
        self._kinds: dict[tuple[Any, ...], int] = {}

    def passes(self, number: int, line: bytes, keys: int) -> bool:
        """Whether the row has neither errors nor warnings of its own; `keys` is key_counts' figure for it."""
        return not list(self.unclean(number, [line], [keys]))

    def unclean(self, first: int, lines: list[bytes], counts: list[int]) -> Iterator[int]:
        """Places of the lines that do not pass; the first has the number `first`, `counts` are key_counts' figures.

        What passed before such a line is in the tally when its place comes out.
        """
        shape = self._shape
        for index, line in enumerate(lines):
            keys = counts[index]
            try:
                row = None if self._wide and len(line) <= LARGEST else shape.decode(line)
            except UNDECODED:
                row = None
            if row is None:
                passed = keys != SUSPECT and self._looks_at_any(first + index, line, keys)
            else:
                mix = shape.same or shape.mix(row)
                passed = self._look(first + index, line, keys, row, mix.keys)
                mix.rows += passed
            if passed:
                if self._kept is not None:
                    self._kept.append(self._as_kept(first + index, line))
            else:
                self._flush_hashes()
                yield index
        self._flush_hashes()

    def _as_kept(self, number: int, line: bytes) -> NewRow:
        """A row that has just passed."""
        if self._answers:
            return NewRow(number, True, *self._cut(line.strip()))
        return NewRow(number, True, line.strip())

    def _cut(self, line: bytes) -> Pieces:
        plan = self._regular
        if plan is None:
            return cut(line)
        pieces = plan.pattern.cut(line, self._left) if plan.pattern else None
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
        self._lines.clear()
        self._hashes.clear()

    def flush(self) -> None:
        """Moves what was counted by shape and by plan into the tally."""
        for name, kind, rows in self._shape.counted():
            self._tally.field(name, TYPE_BITS[kind], rows)
        for plan_key, plan in self._plans.items():
            for model, responses in zip(plan_key[::2], plan_key[1::2], strict=True):
                self._tally.model(str(model), int(responses), plan.rows)
        self._plans.clear()
        for key, rows in self._kinds.items():
            half = len(key) // 2
            for name, met in zip(key[:half], key[half:], strict=True):
                self._tally.field(name, TYPE_BITS[json_type_of(met)], rows)
        self._kinds.clear()

    def _looks_at_any(self, number: int, line: bytes, keys: int) -> bool:
        """The same for a row with keys or types that are not known yet, or with messages of more than role and text."""
        if len(line) > LARGEST:
            return False
        try:
            fields = decode_any(line)
            if not isinstance(fields, dict) or not self._fits(fields):
                return False
            identity = self._messages(fields)
            plan = self._any_plan(fields["model_outputs"]) if self._answers else None
            if not is_sound(line, fields, keys):
                return False
        except (*UNDECODED, NotQuick):
            return False
        if fields.get("id") is not None:
            self._tally.ids.add(number, identity_hash(fields["id"]))
        if plan is not None:
            plan.rows += 1
            self._regular = None
        self._lines.append(number)
        self._hashes.append(hash(identity))
        self._count_fields(fields)
        self._wide = not isinstance(identity, tuple) or self._calls
        if not self._wide:
            self._learn({name: json_type(value) for name, value in fields.items()}, fields)
        return True

    def _count_fields(self, fields: dict[str, Any]) -> None:
        """Rows of the same keys and types are counted together; the first at once, as names are told in their order."""
        key = (*fields, *map(type, fields.values()))
        known = self._kinds.get(key)
        if known is not None:
            self._kinds[key] = known + 1
            return
        if len(self._kinds) >= MOST_PLANS:
            self.flush()
        self._kinds[key] = 0
        for name, value in fields.items():
            self._tally.field(name, TYPE_BITS[json_type(value)])

    def _messages(self, fields: dict[str, Any]) -> Any:
        """The identity of a row's messages, with which all is well."""
        if self._legacy:
            return _turns(convert(fields["conversation"], list[Turn]), fields.get("system", UNSET))
        messages = fields["messages"]
        _check_any_messages(messages)
        return messages_identity(messages)

    def _learn(self, types: dict[str, JsonType], fields: dict[str, Any]) -> None:
        if self._lessons < MOST_LESSONS and len(types) <= MOST_KEYS and all(map(can_be_learned, types)):
            self._lessons += 1
            self.flush()
            self._shape.learn(types, {name for name, value in fields.items() if not is_flat(value)})
            self._learn_answers(fields)

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

    def _fits(self, row: dict[str, Any]) -> bool:
        """Whether the row has the keys of this format and none of another's."""
        if self._legacy:
            return "conversation" in row and not {"messages", "model_outputs"} & row.keys()
        return "messages" in row and "conversation" not in row and self._answers == ("model_outputs" in row)

    def _look(self, number: int, line: bytes, keys: int, row: Any, expected: int) -> bool:
        """`row` has its known keys as attributes and `expected` keys at the top."""
        try:
            messages = _turns(row.conversation, row.system) if self._legacy else row.messages
            if not self._legacy:
                _check_messages(messages)
            expected += 2 * (len(row.conversation) if self._legacy else len(messages))
            plan = self._plan(row.model_outputs) if self._answers else None
            if plan is not None:
                expected += plan.keys + self._within
            for name in self._shape.nested:
                expected += count_keys(getattr(row, name))
            for name in self._shape.flat:
                value = getattr(row, name)
                if type(value) is dict:
                    expected += len(value)
            bounded(row.id)
            regular = expected == keys
            if not regular and not self._adds_up(line, keys):
                return False
        except (*UNDECODED, NotQuick):
            return False
        identity = row.id
        if identity is not None and identity is not UNSET:
            self._tally.ids.add(number, identity_hash(identity))
        if plan is not None:
            plan.rows += 1
            self._regular = plan if regular and self._shape.answers.shallow else None
            self._left = expected - 1 - plan.keys - self._within
        self._lines.append(number)
        self._hashes.append(hash(messages))
        return True

    def _plan(self, outputs: list[Any]) -> _Plan:
        """The plan of a row's answers, none of which is blank; notes how many further keys they hold."""
        key: list[str | int] = []
        answers = self._shape.answers
        within = 0
        for output in outputs:
            responses = output.responses
            key += (output.model_name, len(responses))
            for response in responses:
                if response.content.isspace():
                    raise NotQuick
                if response.reasoning_content is not UNSET:
                    within += 1
                for name in answers.extras:
                    value = getattr(response, name)
                    if value is not UNSET:
                        within += 1
                        if name in answers.deep:
                            within += count_keys(value)
        self._within = within
        plan = self._plans.get(tuple(key))
        return plan or self._new_plan(tuple(key))

    def _any_plan(self, outputs: Any) -> _Plan:
        """The same for answers as plain values, with calls perhaps instead of a text."""
        key: list[str | int] = []
        self._calls = False
        if not isinstance(outputs, list):
            raise NotQuick
        for output in outputs:
            name, responses = _name_and_responses(output)
            key += (name, len(responses))
            for response in responses:
                self._calls |= _check_any_response(response)
        plan = self._plans.get(tuple(key))
        return plan or self._new_plan(tuple(key))

    def _new_plan(self, key: tuple[str | int, ...]) -> _Plan:
        names, numbers = key[::2], [int(number) for number in key[1::2]]
        if (
            not names
            or len(set(names)) < len(names)
            or 0 in numbers
            or not all(str(n).strip() for n in names)
        ):
            raise NotQuick
        if len(self._plans) >= MOST_PLANS:
            self.flush()
        plan = self._plans[key] = _Plan(2 * len(names) + sum(numbers))
        return plan


def _name_and_responses(output: Any) -> tuple[str, list[Any]]:
    if not isinstance(output, dict):
        raise NotQuick
    name, responses = output.get("model_name"), output.get("responses")
    if not isinstance(name, str) or not isinstance(responses, list):
        raise NotQuick
    return name, responses


def _check_any_response(response: Any) -> bool:
    """Whether there are calls in it; with which there need be no text."""
    if not isinstance(response, dict):
        raise NotQuick
    content, calls = response.get("content"), response.get("tool_calls") is not None
    if not isinstance(content, str):
        if content is not None or not calls:
            raise NotQuick
    elif not calls and not content.strip():
        raise NotQuick
    if not isinstance(response.get("reasoning_content"), str | None):
        raise NotQuick
    return calls


def _check_messages(messages: tuple[Message, ...]) -> None:
    previous = ""
    asked = False
    for message in messages:
        role, content = message.role, message.content
        if role == "user":
            asked = True
        if content.isspace() or role == previous or (role == "system" and previous):
            raise NotQuick
        previous = role
    if not asked:
        raise NotQuick


def _check_any_messages(messages: Any) -> None:
    """The same for messages with anything beside role and text, or with a list of parts for the text."""
    previous, asked = "", False
    if not isinstance(messages, list):
        raise NotQuick
    for message in messages:
        if not isinstance(message, dict):
            raise NotQuick
        role, content = message.get("role"), message.get("content")
        calls = role == "assistant" and message.get("tool_calls") is not None
        if role not in ROLES or (content is None and not calls) or not (content is None or readable(content)):
            raise NotQuick
        if not calls and not joined(content or "").strip():
            raise NotQuick
        if (role == previous and role != "tool") or (role == "system" and previous):
            raise NotQuick
        previous, asked = role, asked or role == "user"
    if not asked:
        raise NotQuick


def _turns(turns: list[Turn], system: Any) -> tuple[Message, ...]:
    """The messages of a legacy row, in which nothing that is needed is blank."""
    if not turns or not (system is UNSET or isinstance(system, str)):
        raise NotQuick
    messages = [Message("system", system)] if system is not UNSET and system.strip() else []
    for turn in turns:
        if turn.prompt.isspace() or turn.response.isspace():
            raise NotQuick
        messages += (Message("user", turn.prompt), Message("assistant", turn.response))
    return tuple(messages)
