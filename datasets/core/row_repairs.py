"""Repairs within a row's text: merge entries of the same model, rename models, correct misspelt roles."""

import json
from collections.abc import Iterable

from datasets.core.formats import model_key
from datasets.core.json_errors import JsonProblem, parse
from datasets.core.json_nodes import Node
from datasets.core.spelling import role_meant

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


def _items(text: str, key: str) -> list[Node]:
    """The items of a list in the row; none if the row is invalid."""
    try:
        found = parse(text).member(key)
    except JsonProblem:
        return []
    return list(found.items()) if found else []


def edited(text: str, edits: Iterable[Edit]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
