"""Worked examples in prompt templates: a text that is put before the material that is judged."""

from __future__ import annotations

import re

_MATERIAL = re.compile(r"\{(?:\{(?! ?'\{' ?\}\})|%)")
"""The first mark of Jinja, but for the one that prints an opening brace (`as_text`)."""


def as_text(text: str) -> str:
    """A text that a template prints as it is: an expression takes the place of every opening mark of Jinja."""
    return re.sub(r"\{(?=[{%#])", "{{ '{' }}", text)


def with_example(template: str, example: str) -> str:
    """The template with an example as a paragraph before the first one that holds a variable, or at its end if none
    does. Unchanged if it has the example already."""
    text = example.strip()
    if text in template:
        return template
    material = _MATERIAL.search(template)
    if material is None:
        return f"{template.rstrip()}\n\n{text}\n"
    break_before = template.rfind("\n\n", 0, material.start())
    place = 0 if break_before < 0 else break_before + 2
    return f"{template[:place]}{text}\n\n{template[place:]}"
