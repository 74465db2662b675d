"""The careful look at one row: everything that is wrong with it, and the facts that the version's tally wants."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from datasets.core.findings import CODES, Finding, Param, finding
from datasets.core.formats.names import ROLES, Format, Message
from datasets.core.formats.shapes import json_type
from datasets.core.jsontext import JsonProblem, JsonType, Node, flaws, parse, trusted

MOST_IN_A_ROW = 1_000
"""Findings of one code in one row that are kept."""
MOST_KEYS = 20_000
"""Further keys of one row are no fields that a tally would count apart."""
WHOLE = 100_000
"""Characters of a value up to which it is decoded to be compared; of a longer odd one the text is compared."""
_REPAIRS = {"comment": "strip_comments", "trailing_comma": "strip_trailing_commas"}


@dataclass(slots=True)
class Facts:
    """Of one object or record, faulty or not: what warnings on the whole version are made of.

    `types` maps each top-level key to its JSON type, `models` each model to its number of responses,
    `identity` is the value of `id`, `messages` anything hashable that equals only for equal messages.
    """

    types: dict[str, JsonType] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    identity: Any = None
    messages: Any = None


@dataclass(slots=True)
class Check:
    """One row under examination; `facts` is None where it is no object.

    Of a row with very many findings of a code the later ones are only counted, in `more`.
    """

    line: int
    found: list[Finding] = field(default_factory=list)
    facts: Facts | None = None
    more: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, path: str | None, node: Node | None = None, **params: Param) -> None:
        self.add_at(code, path, node.column if node else None, **params)

    def add_at(self, code: str, path: str | None, column: int | None, **params: Param) -> None:
        kept = self._kept.get(code, 0)
        if kept >= MOST_IN_A_ROW:
            self.more[code] = self.more.get(code, 0) + 1
            return
        self._kept[code] = kept + 1
        self.found.append(finding(code, line=self.line, column=column, path=path, repair=None, **params))

    @property
    def valid(self) -> bool:
        codes = {one.code for one in self.found} | self.more.keys()
        return all(CODES[code].severity == "warning" for code in codes)


def check_json_row(line: int, text: str, fmt: Format | None, known: dict[str, Any] | None = None) -> Check:
    """Everything found in one line of a JSONL upload of format `fmt` (None: not known, only JSON is looked at).

    `known` is the row decoded, where that has happened and it is JSON without a flaw: it need not be proven again.
    """
    check = Check(line)
    if known is not None:
        check.facts = _facts_known(known)
        if fmt:
            _check_family(check, trusted(text), fmt)
        return check
    try:
        root = parse(text)
    except JsonProblem as problem:
        check.found.append(invalid_json(line, problem))
        return check
    for flaw in flaws(text, root):
        check.add_at(flaw.code, flaw.path, flaw.column, name=flaw.name)
    if root.type != "object":
        check.add("json.not_object", None, root, met=root.type)
        return check
    check.facts = _facts(root)
    if fmt:
        _check_family(check, root, fmt)
    return check


def invalid_json(line: int, problem: JsonProblem) -> Finding:
    return finding(
        "json.invalid",
        line=line,
        column=problem.position + 1,
        repair=_REPAIRS.get(problem.reason),
        reason=problem.reason,
        met=problem.met,
        wanted=problem.wanted,
    )


def _facts(root: Node) -> Facts:
    facts = Facts()
    for key, value in root.members():
        name = key.value
        if len(facts.types) < MOST_KEYS or name in facts.types:
            facts.types[name] = value.type
    identity, messages, conversation = (root.member(name) for name in ("id", "messages", "conversation"))
    if identity and identity.type != "null":
        facts.identity = identity.plain() if identity.end - identity.start < WHOLE else identity.source
    if messages:
        facts.messages = _messages_identity_of(messages)
    elif conversation:
        facts.messages = _conversation_identity_of(conversation, root.member("system"))
    _count_models(facts, root.member("model_outputs"))
    return facts


def _facts_known(row: dict[str, Any]) -> Facts:
    """The same of a decoded row."""
    facts = Facts({name: json_type(value) for name, value in islice(row.items(), MOST_KEYS)})
    facts.identity = row.get("id")
    if "messages" in row:
        facts.messages = messages_identity(row["messages"])
    elif "conversation" in row:
        facts.messages = conversation_identity(row["conversation"], row.get("system"))
    outputs = row.get("model_outputs")
    for output in outputs if isinstance(outputs, list) else ():
        name = output.get("model_name") if isinstance(output, dict) else None
        if isinstance(name, str) and name.strip():
            responses = output.get("responses")
            number = len(responses) if isinstance(responses, list) else 0
            facts.models[name] = facts.models.get(name, 0) + number
    return facts


def _count_models(facts: Facts, outputs: Node | None) -> None:
    for output in outputs.items() if outputs else ():
        name, responses = output.member("model_name"), output.member("responses")
        if name and name.type == "string" and name.value.strip():
            number = sum(1 for _ in responses.items()) if responses else 0
            facts.models[name.value] = facts.models.get(name.value, 0) + number


def _messages_identity_of(messages: Node) -> Any:
    """The same for a node; of a huge one that is out of the ordinary its text as it is written."""
    try:
        return _decode_messages(messages.source)
    except (msgspec.MsgspecError, UnicodeError):
        large = messages.end - messages.start >= WHOLE
        return messages.source if large else messages_identity(messages.plain())


def _conversation_identity_of(conversation: Node, system: Node | None) -> Any:
    if conversation.end - conversation.start >= WHOLE:
        return conversation.source
    return conversation_identity(conversation.plain(), system.plain() if system else None)


_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode_messages = msgspec.json.Decoder(tuple[Message, ...]).decode


def messages_identity(messages: Any) -> Any:
    """Hashable, and the same for messages that read the same; a plain tuple of Message where that says it all."""
    if isinstance(messages, list) and all(_is_plain(message) for message in messages):
        return tuple(Message(message["role"], joined(message["content"])) for message in messages)
    return _sorted_json(messages)


def _sorted_json(value: Any) -> str | bytes:
    try:
        return _encode_sorted(value)
    except UnicodeError:  # half characters
        return json.dumps(value, sort_keys=True)


def conversation_identity(conversation: Any, system: Any) -> Any:
    """The same for the messages that a legacy row becomes."""
    turns = conversation if isinstance(conversation, list) else [conversation]
    if not all(_is_turn(turn) for turn in turns):
        return json.dumps((system, conversation), sort_keys=True)
    start = (Message("system", system),) if isinstance(system, str) and system.strip() else ()
    pairs = ((Message("user", turn["prompt"]), Message("assistant", turn["response"])) for turn in turns)
    return start + tuple(message for pair in pairs for message in pair)


def _is_plain(message: Any) -> bool:
    return (
        isinstance(message, dict) and message.keys() == {"role", "content"} and readable(message["content"])
    )


def _is_turn(turn: Any) -> bool:
    return (
        isinstance(turn, dict)
        and isinstance(turn.get("prompt"), str)
        and isinstance(turn.get("response"), str)
    )


def readable(content: Any) -> bool:
    """Whether a message's content is a string or a list of text parts."""
    if isinstance(content, str):
        return True
    return isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    )


def joined(content: str | list[dict[str, str]]) -> str:
    """A readable content as one text."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _check_family(check: Check, root: Node, fmt: Format) -> None:
    legacy = fmt in ("legacy_jsonl", "legacy_csv")
    own, other = ("conversation", "messages") if legacy else ("messages", "conversation")
    if root.member(own) is None and root.member(other) is not None:
        check.add("file.mixed_formats", other, root.member(other), format=fmt)
        legacy = not legacy
    else:
        _check_outputs_key(check, root, fmt)
    (_check_legacy if legacy else _check_messages)(check, root)
    if root.member("model_outputs"):
        _check_outputs(check, root)


def _check_outputs_key(check: Check, root: Node, fmt: Format) -> None:
    outputs = root.member("model_outputs")
    if fmt == "judge_only" and outputs is None:
        check.add("model_outputs.missing", "model_outputs")
    if fmt != "judge_only" and outputs is not None:
        check.add("file.mixed_formats", "model_outputs", outputs, format=fmt)


def _list(check: Check, root: Node, key: str, path: str, prefix: str) -> Iterator[Node]:
    """The items of a list that must be there and hold something; else a finding and nothing."""
    node = root.member(key)
    if node is None:
        check.add(f"{prefix}.missing", path)
    elif node.type != "array":
        check.add(f"{prefix}.not_list", path, node, met=node.type)
    else:
        if next(iter(node.items()), None) is None:
            check.add(f"{prefix}.empty", path, node)
        yield from node.items()


def _check_messages(check: Check, root: Node) -> None:
    previous: str | None = None
    roles: set[str | None] = set()
    for index, message in enumerate(_list(check, root, "messages", "messages", "messages")):
        role = _check_message(check, message, f"messages[{index}]")
        if role == "system" and index > 0:
            check.add("messages.system_not_first", f"messages[{index}].role", message.member("role"))
        if role is not None and role == previous and role != "tool":
            check.add(
                "messages.same_role_twice", f"messages[{index}].role", message.member("role"), role=role
            )
        previous = role
        roles.add(role)
    if roles and not roles & {None, "user"}:
        check.add("messages.no_user", "messages", root.member("messages"))


def _check_message(check: Check, message: Node, path: str) -> str | None:
    """The message's role, None if it has no known one."""
    if message.type != "object":
        check.add("message.not_object", path, message, met=message.type)
        return None
    role = _role(check, message, f"{path}.role")
    calls = message.member("tool_calls")
    may_lack = role == "assistant" and calls is not None and calls.type != "null"
    content = message.member("content")
    if content is None:
        if not may_lack:
            check.add("content.missing", f"{path}.content")
    elif not (content.type == "null" and may_lack):
        _check_content(check, content, f"{path}.content", may_lack)
    return role


def _role(check: Check, message: Node, path: str) -> str | None:
    role = message.member("role")
    if role is None:
        check.add("role.missing", path)
    elif role.type != "string" or role.value not in ROLES:
        text = role.value if role.type == "string" else ""
        kind: dict[str, Param] = {} if role.type == "string" else {"type": role.type}
        check.add("role.unknown", path, role, met=text, **kind)
    else:
        return str(role.value)
    return None


def _check_content(check: Check, content: Node, path: str, may_be_blank: bool) -> None:
    plain = content.plain()
    if not readable(plain):
        check.add("content.not_text", path, content, met=content.type)
    elif not may_be_blank and not joined(plain).strip():
        check.add("content.blank", path, content)


def _check_outputs(check: Check, root: Node) -> None:
    seen: set[str] = set()
    for index, output in enumerate(_list(check, root, "model_outputs", "model_outputs", "model_outputs")):
        path = f"model_outputs[{index}]"
        if output.type != "object":
            check.add("model_output.not_object", path, output, met=output.type)
            continue
        _check_model_name(check, output, f"{path}.model_name", seen)
        responses = _list(check, output, "responses", f"{path}.responses", "responses")
        for number, response in enumerate(responses):
            _check_response(check, response, f"{path}.responses[{number}]")


def _check_model_name(check: Check, output: Node, path: str, seen: set[str]) -> None:
    name = output.member("model_name")
    if name is None:
        check.add("model_name.missing", path)
    elif name.type != "string":
        check.add("model_name.not_text", path, name, met=name.type)
    elif not name.value.strip():
        check.add("model_name.blank", path, name)
    elif name.value in seen:
        check.add("model_name.twice_in_row", path, name, model=name.value)
    else:
        seen.add(name.value)


def _check_response(check: Check, response: Node, path: str) -> None:
    if response.type != "object":
        check.add("response.not_object", path, response, met=response.type)
        return
    calls, content = response.member("tool_calls"), response.member("content")
    may_lack = calls is not None and calls.type != "null"
    if content is None:
        if not may_lack:
            check.add("response.content_missing", f"{path}.content")
    elif content.type != "string":
        if not (content.type == "null" and may_lack):
            check.add("response.content_not_text", f"{path}.content", content, met=content.type)
    elif not content.value.strip() and not may_lack:
        check.add("response.blank", f"{path}.content", content)
    reasoning = response.member("reasoning_content")
    if reasoning and reasoning.type not in ("string", "null"):
        check.add("response.reasoning_not_text", f"{path}.reasoning_content", reasoning, met=reasoning.type)


def _check_legacy(check: Check, root: Node) -> None:
    system = root.member("system")
    if system and system.type != "string":
        check.add("system.not_text", "system", system, met=system.type)
    for index, turn in enumerate(_list(check, root, "conversation", "conversation", "conversation")):
        path = f"conversation[{index}]"
        if turn.type != "object":
            check.add("turn.not_object", path, turn, met=turn.type)
            continue
        _check_prompt(check, turn, f"{path}.prompt")
        _check_turn_response(check, turn, f"{path}.response")


def _check_prompt(check: Check, turn: Node, path: str) -> None:
    prompt = turn.member("prompt")
    if prompt is None:
        check.add("prompt.missing", path)
    elif prompt.type != "string":
        check.add("prompt.not_text", path, prompt, met=prompt.type)
    elif not prompt.value.strip():
        check.add("prompt.blank", path, prompt)


def _check_turn_response(check: Check, turn: Node, path: str) -> None:
    response = turn.member("response")
    if response is None:
        check.add("turn.response_missing", path)
    elif response.type != "string":
        check.add("turn.response_not_text", path, response, met=response.type)
    elif not response.value.strip():
        check.add("response.blank", path, response)
