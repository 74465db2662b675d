"""The careful look at one row: everything that is wrong with it, and the facts that the version's tally wants.

Rules are asked of plain values, or of structures that hold the same. Where in the text a finding stands is looked up
only for those that will be read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import UNSET, Struct

from datasets.core.findings import ERRORS, Finding, Param, finding
from datasets.core.formats.facts import Facts, facts_of, joined, readable
from datasets.core.formats.names import ROLES, Format, Telling
from datasets.core.formats.outline import Items, Places, Steps, outline, type_of
from datasets.core.jsonnodes import REMEMBERED, place_of
from datasets.core.jsontext import JsonProblem, Node, flaws, parse, path_of, trusted
from datasets.core.modelrepairs import can_merge
from datasets.core.python_literal import as_json
from datasets.core.spelling import misspelt, role_meant

MOST_IN_A_ROW = 1_000
"""Findings of one code in one row that are kept."""
MESSAGES, ANSWERS = 1, 2
"""What of a row may be in doubt."""
TOLD = frozenset(
    (
        *("role.missing", "role.unknown", "content.missing", "content.blank", "messages.no_user"),
        *("messages.system_not_first", "messages.same_role_twice", "prompt.blank", "response.blank"),
        *("response.content_missing", "response.content_not_text"),
    )
)
"""What may be wrong with a row that is decoded into a structure, beside a lack of `model_outputs`."""
_REPAIRS = {"comment": "strip_comments", "trailing_comma": "strip_trailing_commas"}


class Fault(NamedTuple):
    """What will be a finding if somebody is to read it; `there`: the value at the steps exists and has a column."""

    code: str
    steps: Steps
    there: bool
    params: dict[str, Param]

    @property
    def repair(self) -> str | None:
        """The repair that it may have."""
        if self.code == "model_name.twice_in_row":
            return "merge_models"
        return "fix_role" if self.code == "role.unknown" and "meant" in self.params else None

    def at(self, line: int, text: str, column: Callable[[Steps], int]) -> Finding:
        """What it is in this line, whose text is `text`; `column` finds the place of the value at some steps."""
        found = column(self.steps) if self.there else None
        repair = self.repair
        if repair == "merge_models" and not can_merge(text, str(self.params["model"])):
            repair = None
        return finding(
            self.code, line=line, column=found, path=path_of(self.steps), repair=repair, **self.params
        )


def columns_of(source: bytes) -> Callable[[Steps], int]:
    """Finds places in a row that is JSON without a flaw, fast in a long one if they come in the text's order."""
    text = source.decode()
    if len(text) <= REMEMBERED:
        return lambda steps: place_of(text, steps) + 1
    places = Places(trusted(text))
    return lambda steps: places.node(steps).column


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the rules say of a row that is JSON without a flaw, and of every other one that gives them the same to see.

    Of very many faults of a code the later ones are only counted, in `more`.
    """

    telling: Telling
    faults: tuple[Fault, ...]
    more: dict[str, int]
    codes: tuple[str, ...]
    valid: bool


Told = tuple[int, bytes, Verdict]
"""A line's number, its text, and what there is to say of it."""


@dataclass(slots=True)
class Check:
    """One row under examination; `facts` is None where it is no object.

    Of a row with very many findings of a code the later ones are only counted, in `more`.
    """

    line: int = 0
    faults: list[Finding | Fault] = field(default_factory=list)
    facts: Facts | None = None
    root: Node | None = None
    more: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, int] = field(default_factory=dict)
    _places: Places | None = None

    def add(self, code: str, path: str | None, column: int | None = None, **params: Param) -> None:
        if self._has_room(code):
            self.faults.append(finding(code, line=self.line, column=column, path=path, repair=None, **params))

    def fault(self, code: str, steps: Steps, *, there: bool = True, **params: Param) -> None:
        """The same of what stands, or should stand, at the end of the steps."""
        if self._has_room(code):
            self.faults.append(Fault(code, steps, there, params))

    def missing(self, key: str, at: Steps, holder: Any, known: "_Keys", code: str = "") -> None:
        """A key that an object lacks; named with it is the key that seems to be meant for it."""
        near = misspelt(holder, key, known.names) if isinstance(holder, dict) else ""
        params: dict[str, Any] = {"near": near, "meant": key} if near else {}
        self.fault(code or f"{key}.missing", (*at, key), there=False, **params)

    def _has_room(self, code: str) -> bool:
        kept = self._kept.get(code, 0)
        if kept >= MOST_IN_A_ROW:
            self.more[code] = self.more.get(code, 0) + 1
            return False
        self._kept[code] = kept + 1
        return True

    def explained(self, fault: Finding | Fault) -> Finding:
        """The finding that says it, with its place in the text."""
        if isinstance(fault, Finding):
            return fault
        assert self.root  # what has steps was parsed
        return fault.at(self.line, self.root.text, self._column)

    def _column(self, steps: Steps) -> int:
        if self._places is None:
            assert self.root  # what has steps was parsed
            self._places = Places(self.root)
        return self._places.node(steps).column

    @property
    def found(self) -> list[Finding]:
        """Everything, explained."""
        return [self.explained(fault) for fault in self.faults]

    @property
    def valid(self) -> bool:
        return ERRORS.isdisjoint([one.code for one in self.faults])

    def verdict(self, telling: Telling) -> Verdict:
        """On a row that was not parsed, so that there is nothing but faults."""
        faults = tuple(one for one in self.faults if isinstance(one, Fault))
        return Verdict(telling, faults, self.more, tuple([fault.code for fault in faults]), self.valid)


def check_json_row(line: int, text: str, fmt: Format | None) -> Check:
    """Everything found in one line of a JSONL upload of format `fmt` (None: not known, only JSON is looked at)."""
    check = Check(line)
    try:
        root = parse(text)
    except JsonProblem as problem:
        check.faults.append(invalid_json(line, problem, text))
        return check
    for flaw in flaws(text, root):
        check.add(flaw.code, flaw.path, flaw.column, name=flaw.name)
    if root.type != "object":
        check.add("json.not_object", None, root.column, met=root.type)
        return check
    check.facts = facts_of(root)
    check.root = root
    if fmt:
        _check_family(check, outline(root), fmt)
    return check


def check_known_row(row: dict[str, Any], fmt: Format) -> Verdict:
    """The same of a row that is decoded already, JSON without a flaw; its facts are left to be taken."""
    held, check = _ROW.of(row), Check()
    messages, outputs, conversation, _ = held
    _check_family(check, row, fmt)
    return check.verdict((messages is not UNSET, outputs is not UNSET, conversation is not UNSET))


def check_doubts(row: Any, fmt: Format, doubts: int) -> Verdict:
    """The same of a row decoded into a structure of its format, all of which is well but for what is in doubt."""
    check = Check()
    if fmt == "legacy_jsonl":
        _check_legacy(check, row.conversation, row.system)
        return check.verdict((False, False, True))
    outputs = row.model_outputs
    if fmt == "judge_only" and outputs is UNSET:
        check.fault("model_outputs.missing", ("model_outputs",), there=False)
    if doubts & MESSAGES:
        check_messages(check, row.messages)
    if doubts & ANSWERS and outputs is not UNSET:
        _check_answers(check, outputs)
    return check.verdict((True, outputs is not UNSET, False))


def _check_answers(check: Check, outputs: Sequence[Any]) -> None:
    """Those that have no text, of models with which all is well."""
    for index, output in enumerate(outputs):
        for number, response in enumerate(output.responses):
            content = response.content
            if type(content) is not str or not content or content.isspace():
                _check_response(check, response, ("model_outputs", index, "responses", number))


def not_utf8(line: int, broken: tuple[int, str]) -> Finding:
    """Of a text whose first broken byte is known: its column, and the byte as `0xFF`."""
    column, met = broken
    return finding("file.encoding", line=line, column=column, met=met)


def invalid_json(line: int, problem: JsonProblem, text: str = "") -> Finding:
    """`text` is the whole line, if it is one that can be repaired."""
    repair = _REPAIRS.get(problem.reason) or ("python_literal" if as_json(text) else None)
    return finding(
        "json.invalid",
        line=line,
        column=problem.position + 1,
        repair=repair,
        reason=problem.reason,
        met=problem.met,
        wanted=problem.wanted,
    )


class _Keys:
    """What stands under some keys of an object: of plain values or of a structure; UNSET where nothing does."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self._attributes = attrgetter(*names)

    def of(self, holder: Any) -> Sequence[Any]:
        """Nothing if it is no object."""
        if isinstance(holder, dict):
            get = holder.get
            return [get(name, UNSET) for name in self.names]
        return self._attributes(holder) if isinstance(holder, Struct) else ()


_ROW = _Keys("messages", "model_outputs", "conversation", "system")
_MESSAGE = _Keys("role", "content", "tool_calls")
_OUTPUT = _Keys("model_name", "responses")
_RESPONSE = _Keys("content", "reasoning_content", "tool_calls")
_TURN = _Keys("prompt", "response")


def _check_family(check: Check, row: Any, fmt: Format) -> None:
    held = _ROW.of(row)
    messages, outputs, conversation, system = held
    top: Any = row if isinstance(row, dict) else ()
    legacy = fmt in ("legacy_jsonl", "legacy_csv")
    own, other, name = (
        (conversation, messages, "messages") if legacy else (messages, conversation, "conversation")
    )
    if own is UNSET and other is not UNSET:
        check.fault("file.mixed_formats", (name,), format=fmt)
        legacy = not legacy
    elif fmt == "judge_only" and outputs is UNSET:
        check.missing("model_outputs", (), top, _ROW)
    elif fmt != "judge_only" and outputs is not UNSET:
        check.fault("file.mixed_formats", ("model_outputs",), format=fmt)
    if legacy:
        _check_legacy(check, conversation, system, top)
    else:
        check_messages(check, messages, top)
    if outputs is not UNSET:
        _check_outputs(check, outputs)


def _list(check: Check, items: Any, key: str, holder: Any, known: _Keys, at: Steps = ()) -> Iterable[Any]:
    """The items of a list that must be there under a key and hold something; else a finding and nothing."""
    if type(items) in _LISTS:
        if not items:
            check.fault(f"{key}.empty", (*at, key))
        return items  # type: ignore[no-any-return]
    if items is UNSET:
        check.missing(key, at, holder, known)
    else:
        check.fault(f"{key}.not_list", (*at, key), met=type_of(items))
    return ()


_LISTS = (list, tuple, Items)


def check_messages(check: Check, messages: Any, row: Any = ()) -> None:
    previous: str | None = None
    asked = False
    listed = _list(check, messages, "messages", row, _ROW)
    for index, message in enumerate(listed):
        at: Steps = ("messages", index)
        role = _check_message(check, message, at)
        if role == "system" and index > 0:
            check.fault("messages.system_not_first", (*at, "role"))
        if role is not None and role == previous and role != "tool":
            check.fault("messages.same_role_twice", (*at, "role"), role=role)
        previous = role
        asked = asked or role is None or role == "user"
    if listed and not asked:
        check.fault("messages.no_user", ("messages",))


def _check_message(check: Check, message: Any, at: Steps) -> str | None:
    """The message's role, None if it has no known one."""
    held = _MESSAGE.of(message)
    if not held:
        check.fault("message.not_object", at, met=type_of(message))
        return None
    met, content, calls = held
    role = _role(check, met, at, message)
    may_lack = role == "assistant" and calls is not UNSET and calls is not None
    if may_lack and (content is UNSET or content is None):
        return role
    if content is UNSET:
        check.missing("content", at, message, _MESSAGE)
    elif not readable(content):
        check.fault("content.not_text", (*at, "content"), met=type_of(content))
    elif not may_lack and not joined(content).strip():
        check.fault("content.blank", (*at, "content"))
    return role


def _role(check: Check, role: Any, at: Steps, message: Any) -> str | None:
    if isinstance(role, str) and role in ROLES:
        return role
    if role is UNSET:
        check.missing("role", at, message, _MESSAGE)
    elif isinstance(role, str):
        meant = role_meant(role)
        hint: dict[str, Any] = {"meant": meant} if meant else {}
        check.fault("role.unknown", (*at, "role"), met=role, **hint)
    else:
        check.fault("role.unknown", (*at, "role"), met="", type=type_of(role))
    return None


def _check_outputs(check: Check, outputs: Any) -> None:
    seen: set[str] = set()
    for index, output in enumerate(_list(check, outputs, "model_outputs", (), _ROW)):
        at: Steps = ("model_outputs", index)
        held = _OUTPUT.of(output)
        if not held:
            check.fault("model_output.not_object", at, met=type_of(output))
            continue
        name, responses = held
        if name is UNSET:
            check.missing("model_name", at, output, _OUTPUT)
        else:
            _check_model_name(check, name, (*at, "model_name"), seen)
        for number, response in enumerate(_list(check, responses, "responses", output, _OUTPUT, at)):
            _check_response(check, response, (*at, "responses", number))


def _check_model_name(check: Check, name: Any, at: Steps, seen: set[str]) -> None:
    if not isinstance(name, str):
        check.fault("model_name.not_text", at, met=type_of(name))
    elif not name.strip():
        check.fault("model_name.blank", at)
    elif name in seen:
        check.fault("model_name.twice_in_row", at, model=name)
    else:
        seen.add(name)


def _check_response(check: Check, response: Any, at: Steps) -> None:
    held = _RESPONSE.of(response)
    if not held:
        check.fault("response.not_object", at, met=type_of(response))
        return
    content, reasoning, calls = held
    may_lack = calls is not None and calls is not UNSET
    if isinstance(content, str):
        if not may_lack and not content.strip():
            check.fault("response.blank", (*at, "content"))
    elif content is UNSET:
        if not may_lack:
            check.missing("content", at, response, _RESPONSE, "response.content_missing")
    elif content is not None or not may_lack:
        check.fault("response.content_not_text", (*at, "content"), met=type_of(content))
    if reasoning is not UNSET and reasoning is not None and not isinstance(reasoning, str):
        check.fault("response.reasoning_not_text", (*at, "reasoning_content"), met=type_of(reasoning))


def _check_legacy(check: Check, conversation: Any, system: Any, row: Any = ()) -> None:
    if system is not UNSET and not isinstance(system, str):
        check.fault("system.not_text", ("system",), met=type_of(system))
    for index, turn in enumerate(_list(check, conversation, "conversation", row, _ROW)):
        at: Steps = ("conversation", index)
        held = _TURN.of(turn)
        if not held:
            check.fault("turn.not_object", at, met=type_of(turn))
            continue
        prompt, response = held
        for key, said, code in (("prompt", prompt, "prompt."), ("response", response, "turn.response_")):
            if said is UNSET:
                check.missing(key, at, turn, _TURN, f"{code}missing")
            else:
                _check_said(check, said, (*at, key), code)


def _check_said(check: Check, said: Any, at: Steps, code: str) -> None:
    """One half of a turn, of which codes begin with `code`."""
    if not isinstance(said, str):
        check.fault(f"{code}not_text", at, met=type_of(said))
    elif not said.strip():
        check.fault(f"{at[-1]}.blank", at)
