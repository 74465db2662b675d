"""Mending `model_outputs` inside a row's own text: two entries of one model merged, spellings of a name made one."""

import json
from collections.abc import Iterable

from datasets.core.formats.names import model_key
from datasets.core.jsontext import JsonProblem, Node, parse

Edit = tuple[int, int, str]


def merged(text: str) -> str:
    """The row with each model's later entries moved into its first; as it was where they contradict each other."""
    outputs = _outputs(text)
    firsts: dict[str, int] = {}
    later: dict[int, list[int]] = {}
    for index, output in enumerate(outputs):
        name, responses = output.member("model_name"), output.member("responses")
        if not name or name.type != "string" or not responses or responses.type != "array":
            continue
        if name.value in firsts:
            later.setdefault(firsts[name.value], []).append(index)
        firsts.setdefault(name.value, index)
    edits: list[Edit] = []
    for first, indices in later.items():
        edits += _merge_edits(text, outputs, first, indices)
    return _edited(text, edits)


def _merge_edits(text: str, outputs: list[Node], first: int, indices: list[int]) -> list[Edit]:
    keys = {key.value: text[value.start : value.end] for key, value in outputs[first].value}
    target = outputs[first].member("responses")
    assert target is not None  # only entries with a list of responses come here
    answers = [text[item.start : item.end] for item in target.value]
    added: list[str] = []
    extra: list[str] = []
    for index in indices:
        for key, value in outputs[index].value:
            source = text[value.start : value.end]
            if key.value == "responses":
                added += [text[item.start : item.end] for item in value.value]
            elif keys.setdefault(key.value, source) != source and key.value != "model_name":
                return []
            elif outputs[first].member(key.value) is None:
                extra.append(f", {text[key.start : key.end]}: {source}")
    glue = ", " if answers and added else ""
    edits = [(target.end - 1, target.end - 1, glue + ", ".join(added))]
    edits.append((outputs[first].end - 1, outputs[first].end - 1, "".join(dict.fromkeys(extra))))
    return edits + [(outputs[index - 1].end, outputs[index].end, "") for index in indices]


def renamed(text: str, name: str, wanted: str) -> str:
    """The row with every model name whose key (see names.py) is `wanted` replaced by `name`."""
    spelt = json.dumps(name, ensure_ascii=False)
    names = (output.member("model_name") for output in _outputs(text))
    return _edited(
        text,
        [
            (node.start, node.end, spelt)
            for node in names
            if node and node.type == "string" and node.value != name and model_key(node.value) == wanted
        ],
    )


def _outputs(text: str) -> list[Node]:
    """The entries of a row that are objects in a list; none where the row is not readable."""
    try:
        outputs = parse(text).member("model_outputs")
    except JsonProblem:
        return []
    if outputs is None or outputs.type != "array" or any(item.type != "object" for item in outputs.value):
        return []
    return list(outputs.value)


def _edited(text: str, edits: Iterable[Edit]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
