"""A metric of a project in its own gallery: a card whose fields are the columns that its templates and scripts name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from judging.core.answer_format import Language
from judging.core.gallery import Card, Example
from judging.core.gallery.fields import MappedField
from judging.core.metric_definition import MetricDefinition

_NAMED = re.compile(
    r"""\bdata(?:\.(?!(?:get|items|keys|values)\b)(?P<plain>\w+)"""
    r"""|\[(?P<quote>['"])(?P<item>[^'"\n]+)(?P=quote)\]|\.get\((?P<mark>['"])(?P<got>[^'"\n]+)(?P=mark))"""
)
_OF_EVERY_ROW = frozenset(
    ("id", "messages", "question", "history", "ref_answer", "gt", "rubric", "model_outputs", "conversation")
)
"""Names that every row has, under whatever columns."""


class OwnCard(Card, frozen=True, kw_only=True):
    """`source`: the metric as it was saved; `columns`: those of its data set that it reads."""

    source: MetricDefinition
    columns: list[str]

    @property
    def asks_judge(self) -> bool:
        return bool(self.source.judges)

    @property
    def compares_candidates(self) -> bool:
        return self.source.compares_candidates

    @property
    def calls(self) -> int:
        return self.source.calls

    @property
    def mapped_fields(self) -> list[str]:
        return self.columns

    @property
    def field_specs(self) -> dict[str, MappedField]:
        return {name: MappedField(name, (name,)) for name in self.columns}

    def template(self, language: Language, mapping: Mapping[str, str]) -> str:
        return "\n\n".join(judge.template for judge in self.definition(language, mapping).judges)

    def definition(self, language: Language, mapping: Mapping[str, str]) -> MetricDefinition:
        """The metric, its templates and scripts with the columns of `mapping`."""
        renamed = {name: column for name, column in mapping.items() if column and column != name}
        if not renamed:
            return self.source
        return msgspec.structs.replace(
            self.source,
            judges=tuple(
                msgspec.structs.replace(judge, template=_with_columns(judge.template, renamed))
                for judge in self.source.judges
            ),
            scripts=tuple(
                msgspec.structs.replace(script, source=_with_columns(script.source, renamed))
                for script in self.source.scripts
            ),
        )

    def example_mapping(self, examples: Sequence[Example]) -> dict[str, str]:
        return {}


def columns_named(definition: MetricDefinition) -> list[str]:
    """The columns of a data set that a metric's templates and scripts name, in order, without those of every row."""
    texts = [judge.template for judge in definition.judges] + [script.source for script in definition.scripts]
    return list(dict.fromkeys(name for text in texts for name in _names(text) if name not in _OF_EVERY_ROW))


def _names(text: str) -> Iterator[str]:
    for match in _NAMED.finditer(text):
        yield match["plain"] or match["item"] or match["got"]


def _with_columns(text: str, renamed: Mapping[str, str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        column = renamed.get(match["plain"] or match["item"] or match["got"])
        if column is None:
            return match[0]
        if match["got"]:
            return f"data.get({column!r}"
        return f"data.{column}" if match["plain"] and column.isidentifier() else f"data[{column!r}]"

    return _NAMED.sub(replaced, text)
