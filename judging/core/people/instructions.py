"""A judge's prompt as a guideline for people: without what only a template or a model needs. No I/O."""

from __future__ import annotations

import re

from evalsite.rounding import significant

_OTHERWISE = re.compile(r"\{%-?\s*(?:else|elif)\b.*?(?=\{%-?\s*endif\b)", re.DOTALL)
_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FRAME = re.compile(r"\s*(?:-{3,}.*|={3,}.*|</?\w+>\s*)")  # lines around what is filled in
_ABOUT_FRAMES = re.compile(r"^.*(?:\bBEGINS?\b.*\bENDS?\b|“开始”行.*“结束”行).*$", re.MULTILINE)
_ROLE = re.compile(r"^(?:You are an? [^.\n]{1,80}\.|你是一[名位个][^。\n]{1,40}。)\s*", re.MULTILINE)
_GAP = re.compile(r"\n{3,}")


def instruction_of(template: str, low: float, high: float, system_prompt: str | None = None) -> str:
    """The template's own words, of conditions the first case, with the ends of the scale filled in. Lines into which a
    row's texts are inserted, those that frame them, and what the model is told to be are left out. The whole template
    if nothing else is left."""
    text = _ABOUT_FRAMES.sub("", _STATEMENT.sub("", _OTHERWISE.sub("", template)))
    for name, end in (("min_score", low), ("max_score", high)):
        text = re.sub(rf"\{{\{{[^}}]*\b{name}\b[^}}]*\}}\}}", significant(end, 6), text)
    lines = _PLACEHOLDER.sub("\0", text).splitlines()
    own_lines = [line.rstrip() for line in lines if "\0" not in line and not _FRAME.fullmatch(line)]
    parts = [(system_prompt or "").strip(), "\n".join(own_lines).strip()]
    words = _ROLE.sub("", "\n\n".join(part for part in parts if part)).strip()
    return _GAP.sub("\n\n", words) or template.strip()
