"""The fields of a row that gallery metrics read, under whatever names a data set has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from datasets.core.texts import Text, gettext_noop


class MappedField(NamedTuple):
    """A field that a metric reads. `aliases`: names that data sets commonly give it. `fallback`: what takes its place
    where no column is chosen; '' if one has to be. `optional`: the prompt may do without it. `endings`: last words of a
    column's name that tell it where no whole name does."""

    label: Text
    aliases: tuple[str, ...]
    fallback: str = ""
    optional: bool = False
    endings: tuple[str, ...] = ()


FIELDS: dict[str, MappedField] = {
    "reference": MappedField(
        gettext_noop("Reference"),
        (
            *("ref_answer", "reference", "reference_answer", "ground_truth", "gold", "expected_answer"),
            *("expected_output", "target", "gold_answer", "expected", "reference_translation", "target_text"),
            *("reference_summary", "canonical_solution", "solution", "answer", "answers"),
            *(
                "translation",
                "summary",
                "参考答案",
                "标准答案",
                "参考译文",
                "参考摘要",
                "答案",
                "译文",
                "摘要",
            ),
        ),
        "ref_answer",
    ),
    "context": MappedField(
        gettext_noop("Retrieved context"),
        (
            *("context", "contexts", "passages", "passage", "documents", "docs", "chunks", "evidence"),
            *("retrieved_contexts", "retrieved", "knowledge", "上下文", "检索结果", "检索内容", "参考资料"),
        ),
        endings=("context", "contexts", "passages", "passage", "documents", "docs", "chunks"),
    ),
    "source": MappedField(
        gettext_noop("Source text"),
        ("source", "source_text", "src", "original", "article", "document", "text", "原文"),
        "data.question",
    ),
    "guide": MappedField(
        gettext_noop("Style guide"),
        ("guide", "style_guide", "tone", "persona", "voice", "语气要求", "风格指南"),
        optional=True,
        endings=("guide", "tone", "voice", "persona"),
    ),
    "tools": MappedField(
        gettext_noop("Available tools"),
        ("tools", "functions", "tool_definitions", "工具", "可用工具"),
        optional=True,
        endings=("tools", "functions"),
    ),
    "expected": MappedField(
        gettext_noop("Expected calls"),
        (
            *("expected_calls", "expected_tool_calls", "expected_tools", "expected_tool", "expected_call"),
            *("expected_function", "tool_calls", "期望调用", "预期调用"),
        ),
        optional=True,
    ),
    "tests": MappedField(
        gettext_noop("Tests (Python)"),
        ("tests", "test", "test_code", "test_cases", "unit_tests", "test_list", "测试", "测试用例"),
    ),
    "pattern": MappedField(gettext_noop("Regular expression"), ("pattern", "regex", "正则", "正则表达式")),
    "schema": MappedField(gettext_noop("JSON schema"), ("schema", "json_schema", "结构", "模式")),
}

_BETWEEN = re.compile(r"[\s_\-]+")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def guessed_fields(
    names: Iterable[str], columns: Iterable[str], fields: Mapping[str, MappedField] = FIELDS
) -> dict[str, str]:
    """The likely column of a data set for each of these fields; a field without one is left out. A column is used once.

    The order of aliases decides; case, blanks, hyphens and underscores don't count. Then the last word of a name does.
    """
    names, columns = list(names), list(columns)
    by_plain = {_plain(column): column for column in reversed(columns)}
    mapping: dict[str, str] = {}
    for name in names:
        matches = (by_plain.get(_plain(alias)) for alias in fields[name].aliases)
        column = next((match for match in matches if match and match not in mapping.values()), None)
        if column:
            mapping[name] = column
    for name in names:
        left = (column for column in columns if column not in mapping.values())
        if name not in mapping and (
            column := next((c for c in left if _ending(c) in fields[name].endings), "")
        ):
            mapping[name] = column
    return mapping


def _ending(name: str) -> str:
    return _BETWEEN.split(_CAPITAL.sub("_", name).strip())[-1].casefold()


def unmapped(
    names: Iterable[str], mapping: Mapping[str, str], fields: Mapping[str, MappedField] = FIELDS
) -> list[str]:
    """The fields among these that have to be mapped and are not."""
    return [
        name
        for name in names
        if not mapping.get(name) and not fields[name].fallback and not fields[name].optional
    ]


def _plain(name: str) -> str:
    return _BETWEEN.sub("", name).casefold()
