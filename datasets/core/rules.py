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
from datasets.core.row_repairs import can_be_messages, can_be_outputs, can_merge
from datasets.core.rubric import RUBRIC, lines_of, points_in, read_rubric
from datasets.core.spelling import (
    MESSAGE_KEYS,
    OUTPUT_KEYS,
    RESPONSE_KEYS,
    TOP_KEYS,
    TURN_KEYS,
    is_for,
    near_miss,
    role_meant,
)
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
_STEP = re.compile(r"\[(\d+)\]|\w+")


class RowFindings:
    """The findings of one row. Beyond a limit per code, findings are only counted.

    So are those of codes in `full`, unless they have a repair.
    """

    __slots__ = ("_full", "counts", "stored")

    def __init__(self, full: Container[str] = ()) -> None:
        self.stored: list[Finding] = []
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
            self.stored.append(finding(code, column=column, path=path, repair=repair, **params))

    def add_finding(self, finding: Finding) -> None:
        count = self.counts[finding.code] = self.counts.get(finding.code, 0) + 1
        if count <= MOST_IN_A_ROW:
            self.stored.append(finding)

    def missing(self, code: str, key: str, at: str, holder: dict[str, Any], key_names: Sequence[str]) -> None:
        """Report a missing key, together with a key that may be a misspelling of it."""
        near = near_miss(holder, key, key_names)
        repair = "rename_key" if near and is_for(key, holder[near["near"]]) else None
        self.add(code, f"{at}.{key}" if at else key, repair=repair, **near)

    @property
    def valid(self) -> bool:
        return ERRORS.isdisjoint(self.counts)


def placed(
    findings: Iterable[Finding], line: int, text: str, *, unique_keys: bool = False
) -> Iterable[Finding]:
    """Add line and column to the findings of a row with the text `text`, valid JSON unless they have columns.

    `unique_keys`: the row has no duplicate keys.
    """
    places: NodePositions | None = None
    for flaw in findings:
        column, repair = flaw.column, flaw.repair
        if column is None and flaw.path and not flaw.code.endswith("missing"):
            places = places or NodePositions(trusted(text), unique_keys=unique_keys)
            column = places.node(_steps(flaw.path)).column
        if repair == "merge_models" and not can_merge(text, int(str(_steps(flaw.path or "")[1]))):
            repair = None
        yield Finding(line, column, flaw.path, flaw.code, flaw.severity, repair, flaw.params)


def _steps(path: str) -> tuple[str | int, ...]:
    """Parse a path created by the rules, in which all keys are identifiers."""
    return tuple(int(step[1]) if step[1] else step[0] for step in _STEP.finditer(path))


def check_row(row: dict[str, Any], fmt: Format, findings: RowFindings) -> None:
    """Add all findings of a row under the rules of a format."""
    legacy = fmt in LEGACY
    own, other = ("conversation", "messages") if legacy else ("messages", "conversation")
    if own not in row and other in row:
        findings.add("file.mixed_formats", other, format=fmt)
        legacy = not legacy
    elif fmt == "judge_only" and "model_outputs" not in row:
        findings.missing("model_outputs.missing", "model_outputs", "", row, TOP_KEYS)
    elif fmt != "judge_only" and "model_outputs" in row:
        findings.add("file.mixed_formats", "model_outputs", format=fmt)
    if legacy:
        _check_legacy(findings, row)
    else:
        _check_messages(findings, row)
    if "model_outputs" in row:
        _check_outputs(findings, row)
    if row.get(RUBRIC) is not None:
        _check_rubric(findings, row[RUBRIC])


def _check_rubric(findings: RowFindings, rubric: Any) -> None:
    for problem in read_rubric(rubric)[1]:
        value, repair = problem.value, None
        if problem.code == "rubric.not_list" and isinstance(value, str) and lines_of(value):
            repair = "rubric_from_text"
        elif problem.code == "rubric.points_not_number" and points_in(value) is not None:
            repair = "rubric_points"
        met = value if problem.code == "rubric.duplicate" else JSON_TYPES[type(value)]
        findings.add(problem.code, problem.path, repair=repair, met=met)


def _items(
    findings: RowFindings, holder: dict[str, Any], key: str, key_names: Sequence[str], at: str = ""
) -> list[Any]:
    """The items of a required, non-empty list; otherwise adds a finding."""
    items = holder.get(key, UNSET)
    if type(items) is list:
        if not items:
            findings.add(f"{key}.empty", f"{at}.{key}" if at else key)
        return items
    if items is UNSET:
        findings.missing(f"{key}.missing", key, at, holder, key_names)
    else:
        met, repair = JSON_TYPES[type(items)], _listing(key, items)
        findings.add(f"{key}.not_list", f"{at}.{key}" if at else key, met=met, repair=repair)
    return []


def _listing(key: str, value: Any) -> str | None:
    """The repair that makes a list of the value, if there is one."""
    if key == "messages" and type(value) is str and can_be_messages(value):
        return "messages_to_list"
    if key == "model_outputs" and type(value) is dict and can_be_outputs(value):
        return "model_outputs_to_list"
    return None


def _check_messages(findings: RowFindings, row: dict[str, Any]) -> None:
    previous: str | None = None
    has_user_message = False
    messages = _items(findings, row, "messages", TOP_KEYS)
    for index, message in enumerate(messages):
        role = _check_message(findings, message, index)
        if role is None or role == "user":
            has_user_message = True
        elif role == "system" and index > 0:
            findings.add("messages.system_not_first", f"messages[{index}].role")
        if role is not None and role == previous and role != "tool":
            findings.add("messages.same_role_twice", f"messages[{index}].role", role=role)
        previous = role
    if messages and not has_user_message:
        findings.add("messages.no_user", "messages")


def _check_message(findings: RowFindings, message: Any, index: int) -> str | None:
    """Check a message and return its role, or None if it is unknown."""
    if type(message) is not dict:
        findings.add("message.not_object", f"messages[{index}]", met=JSON_TYPES[type(message)])
        return None
    role = message.get("role", UNSET)
    if type(role) is not str or role not in _ROLES:
        _check_role(findings, role, message, index)
        role = None
    content = message.get("content", UNSET)
    calls = role == "assistant" and message.get("tool_calls") is not None
    if calls and (content is UNSET or content is None):
        return role  # type: ignore[no-any-return]
    if type(content) is str:
        if (not content or content.isspace()) and not calls:
            findings.add("content.blank", f"messages[{index}].content")
    elif content is UNSET:
        findings.missing("content.missing", "content", f"messages[{index}]", message, MESSAGE_KEYS)
    elif not is_text(content):
        findings.add("content.not_text", f"messages[{index}].content", met=JSON_TYPES[type(content)])
    elif not calls and not joined(content).strip():
        findings.add("content.blank", f"messages[{index}].content")
    return role  # type: ignore[no-any-return]


def _check_role(findings: RowFindings, role: Any, message: dict[str, Any], index: int) -> None:
    path = f"messages[{index}].role"
    if role is UNSET:
        findings.missing("role.missing", "role", f"messages[{index}]", message, MESSAGE_KEYS)
    elif type(role) is not str:
        findings.add("role.unknown", path, met="", type=JSON_TYPES[type(role)])
    elif meant := role_meant(role):
        findings.add("role.unknown", path, repair="fix_role", met=role, meant=meant)
    else:
        findings.add("role.unknown", path, met=role)


def is_text(content: Any) -> bool:
    """Whether a message's content is a string or a list of text parts."""
    return type(content) is str or (type(content) is list and all(map(_is_part, content)))


def _is_part(part: Any) -> bool:
    return type(part) is dict and part.get("type") == "text" and type(part.get("text")) is str


def _check_outputs(findings: RowFindings, row: dict[str, Any]) -> None:
    seen: set[str] = set()
    for index, output in enumerate(_items(findings, row, "model_outputs", TOP_KEYS)):
        if type(output) is not dict:
            findings.add("model_output.not_object", f"model_outputs[{index}]", met=JSON_TYPES[type(output)])
            continue
        name = output.get("model_name", UNSET)
        if type(name) is str and name not in seen and not name.isspace() and name:
            seen.add(name)
        else:
            _check_model_name(findings, name, output, index)
        responses = output.get("responses")
        if type(responses) is not list or not responses:
            responses = _items(findings, output, "responses", OUTPUT_KEYS, f"model_outputs[{index}]")
        for number, response in enumerate(responses):
            _check_response(findings, response, index, number)


def _check_model_name(findings: RowFindings, name: Any, output: dict[str, Any], index: int) -> None:
    """Check a model name that is invalid or already used in the row."""
    path = f"model_outputs[{index}].model_name"
    if name is UNSET:
        findings.missing("model_name.missing", "model_name", f"model_outputs[{index}]", output, OUTPUT_KEYS)
    elif type(name) is not str:
        findings.add("model_name.not_text", path, met=JSON_TYPES[type(name)])
    elif not name.strip():
        findings.add("model_name.blank", path)
    else:
        findings.add("model_name.twice_in_row", path, repair="merge_models", model=name)


def _check_response(findings: RowFindings, response: Any, index: int, number: int) -> None:
    at = f"model_outputs[{index}].responses[{number}]"
    if type(response) is not dict:
        findings.add("response.not_object", at, met=JSON_TYPES[type(response)])
        return
    content = response.get("content", UNSET)
    calls = response.get("tool_calls") is not None
    if type(content) is str:
        if (not content or content.isspace()) and not calls:
            findings.add("response.blank", f"{at}.content")
    elif content is UNSET:
        if not calls:
            findings.missing("response.content_missing", "content", at, response, RESPONSE_KEYS)
    elif content is not None or not calls:
        findings.add("response.content_not_text", f"{at}.content", met=JSON_TYPES[type(content)])
    reasoning = response.get("reasoning_content")
    if reasoning is not None and type(reasoning) is not str:
        findings.add(
            "response.reasoning_not_text", f"{at}.reasoning_content", met=JSON_TYPES[type(reasoning)]
        )


def _check_legacy(findings: RowFindings, row: dict[str, Any]) -> None:
    system = row.get("system", "")
    if type(system) is not str:
        findings.add("system.not_text", "system", met=JSON_TYPES[type(system)])
    for index, turn in enumerate(_items(findings, row, "conversation", TOP_KEYS)):
        at = f"conversation[{index}]"
        if type(turn) is not dict:
            findings.add("turn.not_object", at, met=JSON_TYPES[type(turn)])
            continue
        for key, code in (("prompt", "prompt."), ("response", "turn.response_")):
            said = turn.get(key, UNSET)
            if said is UNSET:
                findings.missing(f"{code}missing", key, at, turn, TURN_KEYS)
            elif type(said) is not str:
                findings.add(f"{code}not_text", f"{at}.{key}", met=JSON_TYPES[type(said)])
            elif not said or said.isspace():
                findings.add(f"{key}.blank", f"{at}.{key}")
