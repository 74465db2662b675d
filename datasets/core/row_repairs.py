"""Repairs within a row's text: model entries and names, misspelt roles and keys, values that should be lists."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from datasets.core.formats import model_key
from datasets.core.json_errors import JsonProblem, parse
from datasets.core.json_nodes import Node, NodePositions
from datasets.core.rubric import RUBRIC, lines_of, points_in
from datasets.core.spelling import OUTPUT_KEYS, RESPONSE_KEYS, misspelt_keys, role_meant

Edit = tuple[int, int, str]


def merged(text: str) -> str:
    """Move each model's later entries into its first; entries that contradict each other stay unchanged."""
    outputs = _items(text, "model_outputs")
    edits: list[Edit] = []
    for first, *later in _entries(outputs).values():
        edits += _merge_edits(text, outputs, first, later) if later else []
    return edited(text, edits)


def can_merge(text: str, number: int) -> bool:
    """Whether `merged` combines the entry with this number with others of its model."""
    outputs = _items(text, "model_outputs")
    first, *later = next((places for places in _entries(outputs).values() if number in places), [0])
    return bool(later and _merge_edits(text, outputs, first, later))


def _entries(outputs: list[Node]) -> dict[str, list[int]]:
    """{model name: indices of its entries that have a list of responses}."""
    places: dict[str, list[int]] = {}
    for index, output in enumerate(outputs):
        name, responses = output.member("model_name"), output.member("responses")
        if name and name.type == "string" and responses and responses.type == "array":
            places.setdefault(name.plain(), []).append(index)
    return places


def _merge_edits(text: str, outputs: list[Node], first: int, indices: list[int]) -> list[Edit]:
    keys = {key.plain(): text[value.start : value.end] for key, value in outputs[first].members()}
    target = outputs[first].member("responses")
    assert target is not None  # _entries returns only entries with a list of responses
    answers = [text[item.start : item.end] for item in target.items()]
    added: list[str] = []
    extra: list[str] = []
    for index in indices:
        for key, value in outputs[index].members():
            name, source = key.plain(), text[value.start : value.end]
            if name == "responses":
                added += [text[item.start : item.end] for item in value.items()]
            elif keys.setdefault(name, source) != source and name != "model_name":
                return []
            elif outputs[first].member(name) is None:
                extra.append(f", {text[key.start : key.end]}: {source}")
    glue = ", " if answers and added else ""
    edits = [(target.end - 1, target.end - 1, glue + ", ".join(added))]
    edits.append((outputs[first].end - 1, outputs[first].end - 1, "".join(dict.fromkeys(extra))))
    return edits + [(outputs[index - 1].end, outputs[index].end, "") for index in indices]


def renamed(text: str, name: str, wanted: str) -> str:
    """Replace every model name whose `model_key` is `wanted` with `name`."""
    spelt = json.dumps(name, ensure_ascii=False)
    names = (output.member("model_name") for output in _items(text, "model_outputs"))
    return edited(
        text,
        [
            (node.start, node.end, spelt)
            for node in names
            if node and node.type == "string" and node.plain() != name and model_key(node.plain()) == wanted
        ],
    )


def with_roles(text: str) -> str:
    """Correct misspelt roles in the row."""
    roles = (message.member("role") for message in _items(text, "messages"))
    return edited(
        text,
        [
            (node.start, node.end, f'"{meant}"')
            for node in roles
            if node
            and node.type == "string"
            and (meant := role_meant(node.plain())) not in (None, node.plain())
        ],
    )


def with_keys(text: str) -> str:
    """Rename the row's misspelt keys."""
    root = _object(text)
    if root is None:
        return text
    nodes, edits = NodePositions(root), []
    for steps, key, meant in misspelt_keys(root.plain()):
        *_, name = (own for own, _value in nodes.node(steps).members() if own.plain() == key)
        edits.append((name.start, name.end, f'"{meant}"'))
    return edited(text, edits)


def with_list_of_messages(text: str) -> str:
    """Make a list of messages from a text: those that it holds as JSON, else one message of the user."""
    node = _member(text, "messages")
    if node is None or node.type != "string" or not can_be_messages(node.plain()):
        return text
    held = _messages_in(node.plain())
    message = f'[{{"role": "user", "content": {text[node.start : node.end]}}}]'
    return edited(text, [(node.start, node.end, message if held is None else held)])


def can_be_messages(text: str) -> bool:
    """Whether `with_list_of_messages` makes messages of the text; JSON of another shape is left to the reader."""
    return bool(text.strip()) and _messages_in(text) != ""


def _messages_in(text: str) -> str | None:
    """The list of messages that a text holds as JSON, on one line; '' if its objects are none, None for plain text."""
    try:
        root = parse(text)
        encoded = text.encode()
    except (JsonProblem, UnicodeEncodeError):
        return None
    messages = [root] if root.type == "object" else list(root.items())
    if not any(message.type == "object" for message in messages):
        return None
    if not all(message.member("role") for message in messages):
        return ""
    listed = msgspec.json.format(encoded, indent=-1).decode()
    return listed if root.type == "array" else f"[{listed}]"


def with_list_of_outputs(text: str) -> str:
    """Make a list of entries from an object {model name: answer or answers}, or from one entry."""
    node = _member(text, "model_outputs")
    if node is None or node.type != "object" or not can_be_outputs(node.plain()):
        return text
    source = text[node.start : node.end]
    if node.member("model_name") is None:
        entries = (
            f'{{"model_name": {text[name.start : name.end]}, "responses": [{_responses(text, value)}]}}'
            for name, value in node.members()
        )
        source = ", ".join(entries)
    return edited(text, [(node.start, node.end, f"[{source}]")])


def can_be_outputs(outputs: dict[str, Any]) -> bool:
    """Whether `with_list_of_outputs` makes entries of the object."""
    if "model_name" in outputs:
        return type(outputs.get("responses")) is list
    ours = not outputs.keys().isdisjoint((*OUTPUT_KEYS, *RESPONSE_KEYS))
    named = bool(outputs) and all(map(str.strip, outputs))
    return named and not ours and all(map(_holds_answers, outputs.values()))


def _holds_answers(value: Any) -> bool:
    """Whether a value is a text, an answer with `content`, or a list of these."""
    answers = value if type(value) is list else [value]
    return bool(answers) and all(
        type(answer) is str or (type(answer) is dict and type(answer.get("content")) is str)
        for answer in answers
    )


def with_rubric_of_lines(text: str) -> str:
    """Make a list of criteria from a rubric that is a text: the one that it holds as JSON, else one a line."""
    node = _member(text, RUBRIC)
    criteria = lines_of(node.plain()) if node and node.type == "string" else []
    if node is None or not criteria:
        return text
    return edited(text, [(node.start, node.end, json.dumps(criteria, ensure_ascii=False))])


def with_criteria(text: str, criteria: Sequence[Any]) -> str:
    """Add criteria at the end of the row's rubric, which may be missing, null or a text of lines.

    Raises ValueError if the row is not valid JSON, or its rubric is anything else.
    """
    text = with_rubric_of_lines(text)
    root = _object(text)
    if root is None:
        raise ValueError("not an object")
    node, listed = root.member(RUBRIC), [json.dumps(item, ensure_ascii=False) for item in criteria]
    if node is None:
        comma = ", " if any(True for _member in root.members()) else ""
        return edited(text, [(root.end - 1, root.end - 1, f'{comma}"{RUBRIC}": [{", ".join(listed)}]')])
    if node.type == "null":
        return edited(text, [(node.start, node.end, f"[{', '.join(listed)}]")])
    if node.type != "array":
        raise ValueError("rubric is no list")
    comma = ", " if any(True for _item in node.items()) and listed else ""
    return edited(text, [(node.end - 1, node.end - 1, comma + ", ".join(listed))])


def with_points(text: str) -> str:
    """Make numbers of a rubric's points that are numbers in a text."""
    return edited(text, _points_edits(_items(text, RUBRIC)))


def _points_edits(criteria: Iterable[Node]) -> list[Edit]:
    edits: list[Edit] = []
    for criterion in criteria:
        if criterion.type != "object":
            continue
        points = criterion.member("points") or criterion.member("weight")
        number = points_in(points.plain()) if points else None
        if points and number is not None:
            edits.append((points.start, points.end, json.dumps(number)))
        children = criterion.member("children")
        edits += _points_edits(children.items()) if children and children.type == "array" else []
    return edits


def _responses(text: str, value: Node) -> str:
    answers = list(value.items()) if value.type == "array" else [value]
    sources = ((answer.type, text[answer.start : answer.end]) for answer in answers)
    return ", ".join(f'{{"content": {source}}}' if kind == "string" else source for kind, source in sources)


def _items(text: str, key: str) -> list[Node]:
    """The items of a list in the row; none if the row is invalid."""
    node = _member(text, key)
    return list(node.items()) if node else []


def _member(text: str, key: str) -> Node | None:
    """A value of the row; None if it has none, or is invalid."""
    root = _object(text)
    return root.member(key) if root else None


def _object(text: str) -> Node | None:
    """The row; None if it is not a valid object."""
    try:
        root = parse(text)
    except JsonProblem:
        return None
    return root if root.type == "object" else None


def edited(text: str, edits: Iterable[Edit]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
