"""The columns of a data set in the prompts and scripts of a gallery metric, which name them `data.NAME`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from judging.core.metric_definition import MetricDefinition

_NAMED = re.compile(
    r"""\bdata(?:\.(?!(?:get|items|keys|values)\b)(?P<plain>\w+)"""
    r"""|\[(?P<quote>['"])(?P<item>[^'"\n]+)(?P=quote)\]|\.get\((?P<mark>['"])(?P<got>[^'"\n]+)(?P=mark))"""
)
_OF_EVERY_ROW = frozenset(
    ("id", "messages", "question", "history", "ref_answer", "gt", "rubric", "model_outputs", "conversation")
)
"""Names that every row has, under whatever columns."""
_PART = re.compile(
    r"\{% if data\.(?P<name>\w+) is defined -%\}\n(?P<with>.*?)"
    r"(?:\n\{%- else -%\}\n(?P<without>.*?)\n\{%- endif %\}|\{% endif -%\}\n)",
    re.DOTALL,
)
"""A part of a prompt for rows with a column, perhaps with one for those without; neither holds further parts."""


def columns_named(definition: MetricDefinition) -> list[str]:
    """The columns of a data set that a metric's templates and scripts name, in order, without those of every row."""
    texts = [judge.template for judge in definition.judges] + [script.source for script in definition.scripts]
    return list(dict.fromkeys(name for text in texts for name in _names(text) if name not in _OF_EVERY_ROW))


def _names(text: str) -> Iterator[str]:
    for match in _NAMED.finditer(text):
        yield match["plain"] or match["item"] or match["got"]


def with_columns(text: str, renamed: Mapping[str, str]) -> str:
    """A template or script that names other columns: {named so far: named instead}."""

    def replaced(match: re.Match[str]) -> str:
        column = renamed.get(match["plain"] or match["item"] or match["got"])
        if column is None:
            return match[0]
        if match["got"]:
            return f"data.get({column!r}"
        return f"data.{column}" if match["plain"] and column.isidentifier() else f"data[{column!r}]"

    return _NAMED.sub(replaced, text)


def with_chosen_parts(template: str, mapping: Mapping[str, str]) -> str:
    """A template whose parts for rows with a column are decided: there is one exactly if `mapping` has it."""
    return _PART.sub(
        lambda match: (match["with"] if mapping.get(match["name"]) else match["without"]) or "", template
    )
