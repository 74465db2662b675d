"""Reads a cell with the outputs of several models: our list, or an object of names and answers; also as JSON."""

import json
from typing import Any

from datasets.core.imports.chat import TEXT_KEYS, answer, text_in
from datasets.core.row_repairs import can_be_outputs

_NAMES = ("model_name", "model", "name")
_ANSWERS = ("responses", "response", "answer", *TEXT_KEYS)

Output = tuple[str, dict[str, Any]]
"""A model's name and one of its responses."""


def outputs_in(value: Any) -> list[Output] | None:
    """All outputs in order; None if the value holds none, or anything else."""
    if isinstance(value, str):
        value = _from_json(value)
    if isinstance(value, dict) and value.keys().isdisjoint((*_NAMES, *_ANSWERS)) and can_be_outputs(value):
        value = [{"model": name, "responses": answers} for name, answers in value.items()]
    entries = value if isinstance(value, list) else [value]
    by_entry = [outputs for entry in entries if (outputs := _outputs_of(entry)) is not None]
    return (
        [output for outputs in by_entry for output in outputs] if 0 < len(by_entry) == len(entries) else None
    )


def _from_json(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("[", "{") else None
    except (ValueError, RecursionError):
        return None


def _outputs_of(entry: Any) -> list[Output] | None:
    """The outputs of one entry; None if it does not name a model and its answers."""
    if not isinstance(entry, dict):
        return None
    model = next((entry[name] for name in _NAMES if isinstance(entry.get(name), str)), "")
    value = next((entry[name] for name in _ANSWERS if name in entry), None)
    answers = value if isinstance(value, list) else [value]
    if not model.strip() or not answers or any(text_in(text) is None for text in answers):
        return None
    return [(model, _response(text)) for text in answers]


def _response(value: Any) -> dict[str, Any]:
    if isinstance(value, dict) and "content" in value:
        return answer(value)[0]
    return {"content": text_in(value) or ""}
