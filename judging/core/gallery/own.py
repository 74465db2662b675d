"""A metric of a project in its own gallery: a card whose fields are the columns that its templates and scripts name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judging.core.gallery import LANGUAGES, Card, Example, InLanguages
from judging.core.gallery.columns import columns_named, with_columns
from judging.core.gallery.fields import MappedField
from judging.core.metric_definition import MetricDefinition


class OwnCard(Card, frozen=True, kw_only=True):
    """`needs`: the columns of its data set that it reads."""

    @property
    def field_specs(self) -> dict[str, MappedField]:
        return {name: MappedField(name, (name,)) for name in self.needs}

    @property
    def source(self) -> MetricDefinition:
        """The metric as it was saved."""
        return self.metrics["en"]

    def example_mapping(self, examples: Sequence[Example]) -> dict[str, str]:
        return {}

    def _prompt(self, template: str, mapping: Mapping[str, str]) -> str:
        return with_columns(template, {name: column for name, column in mapping.items() if column})


def own_card(card_id: str, metric: MetricDefinition, sentence: str) -> OwnCard:
    """The card of a metric of the project."""
    return OwnCard(
        id=card_id,
        task="general",
        name=InLanguages(en=metric.name, zh=metric.name),
        sentence=InLanguages(en=sentence, zh=sentence),
        needs=columns_named(metric),
        metrics=dict.fromkeys(LANGUAGES, metric),
    )
