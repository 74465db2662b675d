"""The fields of a row that gallery metrics read, under whatever names a data set has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from datasets.core.texts import Text, gettext_noop


class MappedField(NamedTuple):
    """A field that a metric reads. `aliases`: names that data sets commonly give it. `fallback`: the template
    expression that takes its place where no column is chosen; '' if one has to be. `optional`: the prompt may do
    without it."""

    label: Text
    aliases: tuple[str, ...]
    fallback: str = ""
    optional: bool = False


_REFERENCE = "(data.ref_answer if data.ref_answer is not none else data.gt)"

FIELDS: dict[str, MappedField] = {
    "reference": MappedField(
        gettext_noop("Reference"),
        (
            *("ref_answer", "reference", "reference_answer", "ground_truth", "gold", "expected_answer"),
            *("expected_output", "target", "参考答案", "标准答案", "参考译文"),
        ),
        _REFERENCE,
    ),
    "context": MappedField(
        gettext_noop("Retrieved context"),
        (
            *("context", "contexts", "passages", "passage", "documents", "docs", "chunks", "evidence"),
            *("retrieved_contexts", "retrieved", "knowledge", "上下文", "检索结果", "检索内容", "参考资料"),
        ),
    ),
    "source": MappedField(
        gettext_noop("Source text"),
        ("source", "source_text", "src", "original", "article", "document", "text", "原文"),
        "data.question",
    ),
    "guide": MappedField(
        gettext_noop("Style guide"),
        ("guide", "style_guide", "tone", "persona", "语气要求", "风格指南"),
        optional=True,
    ),
    "tools": MappedField(
        gettext_noop("Available tools"),
        ("tools", "functions", "tool_definitions", "工具", "可用工具"),
        optional=True,
    ),
    "expected": MappedField(
        gettext_noop("Expected calls"),
        ("expected_calls", "expected_tool_calls", "expected_tools", "tool_calls", "期望调用", "预期调用"),
        optional=True,
    ),
    "tests": MappedField(
        gettext_noop("Tests (Python)"),
        ("tests", "test", "test_code", "unit_tests", "test_list", "测试", "测试用例"),
    ),
    "pattern": MappedField(gettext_noop("Regular expression"), ("pattern", "regex", "正则", "正则表达式")),
    "schema": MappedField(gettext_noop("JSON schema"), ("schema", "json_schema", "结构", "模式")),
}

_BETWEEN = re.compile(r"[\s_\-]+")


def guessed_fields(
    names: Iterable[str], columns: Iterable[str], fields: Mapping[str, MappedField] = FIELDS
) -> dict[str, str]:
    """The likely column of a data set for each of these fields; a field without one is left out. A column is used once.

    The order of aliases decides; case, blanks, hyphens and underscores don't count.
    """
    by_plain = {_plain(column): column for column in reversed(list(columns))}
    mapping: dict[str, str] = {}
    for name in names:
        matches = (by_plain.get(_plain(alias)) for alias in fields[name].aliases)
        column = next((match for match in matches if match and match not in mapping.values()), None)
        if column:
            mapping[name] = column
    return mapping


def unmapped(
    names: Iterable[str], mapping: Mapping[str, str], fields: Mapping[str, MappedField] = FIELDS
) -> list[str]:
    """The fields among these that have to be mapped and are not."""
    return [
        name
        for name in names
        if not mapping.get(name) and not fields[name].fallback and not fields[name].optional
    ]


def expression(name: str, mapping: Mapping[str, str]) -> str:
    """The template expression of a field: its column, or what takes its place; '' if nothing does."""
    column = mapping.get(name, "")
    if not column or (name == "reference" and column == "ref_answer"):
        return FIELDS[name].fallback
    return f"data.{column}" if column.isidentifier() else f"data[{column!r}]"


def _plain(name: str) -> str:
    return _BETWEEN.sub("", name).casefold()
