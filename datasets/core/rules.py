"""Validation rules for the plain values of a row.

A finding's path leads to its value; `placed` adds the column only to findings that are stored.
"""

import re
from collections.abc import Container, Iterable, Sequence
from typing import Any

from msgspec import UNSET

from datasets.core.findings import ERRORS, Finding, finding
from datasets.core.formats import LEGACY, ROLES, Format
from datasets.core.json_errors import trusted
from datasets.core.json_nodes import JsonType, NodePositions
from datasets.core.row_repairs import can_merge
from datasets.core.spelling import near_miss, role_meant
from datasets.core.variables import joined

MOST_IN_A_ROW = 1_000
"""How many findings of one code are stored per row."""
JSON_TYPES: dict[type, JsonType] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_ROLES = frozenset(ROLES)
_TOP_KEYS = ("messages", "model_outputs", "conversation", "system")
_MESSAGE_KEYS = ("role", "content", "tool_calls")
_OUTPUT_KEYS = ("model_name", "responses")
_RESPONSE_KEYS = ("content", "reasoning_content", "tool_calls")
_TURN_KEYS = ("prompt", "response")
_STEP = re.compile(r"\[(\d+)\]|\w+")


class RowFindings:
    """The findings of one row. Beyond a limit per code, findings are only counted.

    So are those of codes in `full`, unless they have a repair.
    """

    __slots__ = ("_full", "counts", "found")

    def __init__(self, full: Container[str] = ()) -> None:
        self.found: list[Finding] = []
        self.counts: dict[str, int] = {}
        self._full = full

    def add(
        self,
        code: str,
        path: str | None,
        *,
        column: int | None = None,
        repair: str | None = None,
        **params: Any,
    ) -> None:
        count = self.counts[code] = self.counts.get(code, 0) + 1
        if count <= MOST_IN_A_ROW and (repair or code not in self._full):
            self.found.append(finding(code, column=column, path=path, repair=repair, **params))

    def put(self, one: Finding) -> None:
        count = self.counts[one.code] = self.counts.get(one.code, 0) + 1
        if count <= MOST_IN_A_ROW:
            self.found.append(one)

    def missing(self, code: str, key: str, at: str, holder: dict[str, Any], known: Sequence[str]) -> None:
        """Report a missing key, together with a key that may be a misspelling of it."""
        near = (
            {} if code in self._full else near_miss(holder, key, known)
        )  # which costs more than the row's rules
        self.add(code, f"{at}.{key}" if at else key, **near)

    @property
    def valid(self) -> bool:
        return ERRORS.isdisjoint(self.counts)


def placed(found: Iterable[Finding], line: int, text: str, *, unique_keys: bool = False) -> Iterable[Finding]:
    """Add line and column to the findings of a row with the text `text`, valid JSON unless they have columns.

    `unique_keys`: the row has no duplicate keys.
    """
    places: NodePositions | None = None
    for one in found:
        column, repair = one.column, one.repair
        if column is None and one.path and not one.code.endswith("missing"):
            places = places or NodePositions(trusted(text), unique_keys=unique_keys)
            column = places.node(_steps(one.path)).column
        if repair == "merge_models" and not can_merge(text, int(str(_steps(one.path or "")[1]))):
            repair = None
        yield Finding(line, column, one.path, one.code, one.severity, repair, one.params)


def _steps(path: str) -> tuple[str | int, ...]:
    """Parse a path created by the rules, in which all keys are identifiers."""
    return tuple(int(step[1]) if step[1] else step[0] for step in _STEP.finditer(path))


def check_row(row: dict[str, Any], fmt: Format, found: RowFindings) -> None:
    """Add all findings of a row under the rules of a format."""
    legacy = fmt in LEGACY
    own, other = ("conversation", "messages") if legacy else ("messages", "conversation")
    if own not in row and other in row:
        found.add("file.mixed_formats", other, format=fmt)
        legacy = not legacy
    elif fmt == "judge_only" and "model_outputs" not in row:
        found.missing("model_outputs.missing", "model_outputs", "", row, _TOP_KEYS)
    elif fmt != "judge_only" and "model_outputs" in row:
        found.add("file.mixed_formats", "model_outputs", format=fmt)
    if legacy:
        _check_legacy(found, row)
    else:
        _check_messages(found, row)
    if "model_outputs" in row:
        _check_outputs(found, row)


def _items(
    found: RowFindings, holder: dict[str, Any], key: str, known: Sequence[str], at: str = ""
) -> list[Any]:
    """The items of a required, non-empty list; otherwise adds a finding."""
    items = holder.get(key, UNSET)
    if type(items) is list:
        if not items:
            found.add(f"{key}.empty", f"{at}.{key}" if at else key)
        return items
    if items is UNSET:
        found.missing(f"{key}.missing", key, at, holder, known)
    else:
        found.add(f"{key}.not_list", f"{at}.{key}" if at else key, met=JSON_TYPES[type(items)])
    return []


def _check_messages(found: RowFindings, row: dict[str, Any]) -> None:
    previous: str | None = None
    asked = False
    messages = _items(found, row, "messages", _TOP_KEYS)
    for index, message in enumerate(messages):
        role = _check_message(found, message, index)
        if role is None or role == "user":
            asked = True
        elif role == "system" and index > 0:
            found.add("messages.system_not_first", f"messages[{index}].role")
        if role is not None and role == previous and role != "tool":
            found.add("messages.same_role_twice", f"messages[{index}].role", role=role)
        previous = role
    if messages and not asked:
        found.add("messages.no_user", "messages")


def _check_message(found: RowFindings, message: Any, index: int) -> str | None:
    """Check a message and return its role, or None if it is unknown."""
    if type(message) is not dict:
        found.add("message.not_object", f"messages[{index}]", met=JSON_TYPES[type(message)])
        return None
    role = message.get("role", UNSET)
    if type(role) is not str or role not in _ROLES:
        _check_role(found, role, message, index)
        role = None
    content = message.get("content", UNSET)
    calls = role == "assistant" and message.get("tool_calls") is not None
    if calls and (content is UNSET or content is None):
        return role  # type: ignore[no-any-return]
    if type(content) is str:
        if (not content or content.isspace()) and not calls:
            found.add("content.blank", f"messages[{index}].content")
    elif content is UNSET:
        found.missing("content.missing", "content", f"messages[{index}]", message, _MESSAGE_KEYS)
    elif not is_text(content):
        found.add("content.not_text", f"messages[{index}].content", met=JSON_TYPES[type(content)])
    elif not calls and not joined(content).strip():
        found.add("content.blank", f"messages[{index}].content")
    return role  # type: ignore[no-any-return]


def _check_role(found: RowFindings, role: Any, message: dict[str, Any], index: int) -> None:
    path = f"messages[{index}].role"
    if role is UNSET:
        found.missing("role.missing", "role", f"messages[{index}]", message, _MESSAGE_KEYS)
    elif type(role) is not str:
        found.add("role.unknown", path, met="", type=JSON_TYPES[type(role)])
    elif meant := role_meant(role):
        found.add("role.unknown", path, repair="fix_role", met=role, meant=meant)
    else:
        found.add("role.unknown", path, met=role)


def is_text(content: Any) -> bool:
    """Whether a message's content is a string or a list of text parts."""
    return type(content) is str or (type(content) is list and all(map(_is_part, content)))


def _is_part(part: Any) -> bool:
    return type(part) is dict and part.get("type") == "text" and type(part.get("text")) is str


def _check_outputs(found: RowFindings, row: dict[str, Any]) -> None:
    seen: set[str] = set()
    for index, output in enumerate(_items(found, row, "model_outputs", _TOP_KEYS)):
        if type(output) is not dict:
            found.add("model_output.not_object", f"model_outputs[{index}]", met=JSON_TYPES[type(output)])
            continue
        name = output.get("model_name", UNSET)
        if type(name) is str and name not in seen and not name.isspace() and name:
            seen.add(name)
        else:
            _check_model_name(found, name, output, index)
        responses = output.get("responses")
        if type(responses) is not list or not responses:
            responses = _items(found, output, "responses", _OUTPUT_KEYS, f"model_outputs[{index}]")
        for number, response in enumerate(responses):
            _check_response(found, response, index, number)


def _check_model_name(found: RowFindings, name: Any, output: dict[str, Any], index: int) -> None:
    """Check a model name that is invalid or already used in the row."""
    path = f"model_outputs[{index}].model_name"
    if name is UNSET:
        found.missing("model_name.missing", "model_name", f"model_outputs[{index}]", output, _OUTPUT_KEYS)
    elif type(name) is not str:
        found.add("model_name.not_text", path, met=JSON_TYPES[type(name)])
    elif not name.strip():
        found.add("model_name.blank", path)
    else:
        found.add("model_name.twice_in_row", path, repair="merge_models", model=name)


def _check_response(found: RowFindings, response: Any, index: int, number: int) -> None:
    at = f"model_outputs[{index}].responses[{number}]"
    if type(response) is not dict:
        found.add("response.not_object", at, met=JSON_TYPES[type(response)])
        return
    content = response.get("content", UNSET)
    calls = response.get("tool_calls") is not None
    if type(content) is str:
        if (not content or content.isspace()) and not calls:
            found.add("response.blank", f"{at}.content")
    elif content is UNSET:
        if not calls:
            found.missing("response.content_missing", "content", at, response, _RESPONSE_KEYS)
    elif content is not None or not calls:
        found.add("response.content_not_text", f"{at}.content", met=JSON_TYPES[type(content)])
    reasoning = response.get("reasoning_content")
    if reasoning is not None and type(reasoning) is not str:
        found.add("response.reasoning_not_text", f"{at}.reasoning_content", met=JSON_TYPES[type(reasoning)])


def _check_legacy(found: RowFindings, row: dict[str, Any]) -> None:
    system = row.get("system", "")
    if type(system) is not str:
        found.add("system.not_text", "system", met=JSON_TYPES[type(system)])
    for index, turn in enumerate(_items(found, row, "conversation", _TOP_KEYS)):
        at = f"conversation[{index}]"
        if type(turn) is not dict:
            found.add("turn.not_object", at, met=JSON_TYPES[type(turn)])
            continue
        for key, code in (("prompt", "prompt."), ("response", "turn.response_")):
            said = turn.get(key, UNSET)
            if said is UNSET:
                found.missing(f"{code}missing", key, at, turn, _TURN_KEYS)
            elif type(said) is not str:
                found.add(f"{code}not_text", f"{at}.{key}", met=JSON_TYPES[type(said)])
            elif not said or said.isspace():
                found.add(f"{key}.blank", f"{at}.{key}")
