"""The page of a card: its fields mapped to the columns of a data set, and its prompt on a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
from django.http import HttpRequest, QueryDict

from datasets.core.variables import reference_in
from evalsite.accounts.models import Project
from evalsite.hooks import Hook
from evalsite.web.numbers import whole
from judging.core.gallery import LANGUAGES, Card, Start
from judging.core.gallery.fields import guessed_fields, unmapped
from judging.core.gallery.own import OwnCard
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.endpoints.selectors import endpoints_of
from judging.metrics.editor import samples
from judging.metrics.editor.preview import PromptPreview, preview_prompt
from judging.metrics.editor.samples import Sample
from judging.metrics.editor.scripts import ScriptRun, script_runs
from judging.metrics.gallery.cards import label_of, shown
from judging.metrics.gallery.examples import shown_examples
from judging.rule_messages import reader_language

MAX_COLUMN = 60  # characters of the name of a column that is offered
_NOT_OFFERED = ("id", "rubric")
_PREFIX = "field-"


card_contexts: Hook[Callable[[Project, Card], dict[str, Any]]] = Hook(
    "judging.metrics.gallery.page.card_contexts"
)
"""What higher packages show on the page of a card."""


def with_endpoint(definition: MetricDefinition, endpoint: Endpoint | None) -> MetricDefinition:
    """The metric with its judge at this endpoint, if it has one."""
    if endpoint is None or not definition.judges:
        return definition
    judge = msgspec.structs.replace(definition.judges[0], name=endpoint.name, endpoint=endpoint.pk)
    return msgspec.structs.replace(definition, judges=(judge,))


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A field that the metric reads, and the column that is chosen for it ('' for none)."""

    name: str
    label: str
    column: str
    fallback: str
    optional: bool
    is_missing: bool


class CardPage:
    """One request for the page of a card. `typed`: in, row_version, endpoint, and `field-NAME` for each field."""

    def __init__(self, request: HttpRequest, project: Project, card: Card, typed: QueryDict) -> None:
        self.request, self.project, self.card, self.typed = request, project, card, typed
        self.last_version = samples.last_version(request, project, typed)

    @cached_property
    def sample(self) -> Sample | None:
        return samples.choose_sample(self.project, self.typed, self.last_version)

    @cached_property
    def columns(self) -> list[str]:
        """The columns of the previewed version that can be chosen."""
        names = self.sample.version.fields_found if self.sample else {}
        return [name for name in names if name not in _NOT_OFFERED and len(name) <= MAX_COLUMN]

    @cached_property
    def mapping(self) -> dict[str, str]:
        """The chosen column of each field, or one guessed by its name."""
        guessed = guessed_fields(self.card.needs, self.columns, self.card.field_specs)
        mapping: dict[str, str] = {}
        for name in self.card.needs:
            column = self.typed.get(_PREFIX + name)
            is_chosen = column is not None and (not column or column in self.columns)
            mapping[name] = (column if is_chosen else guessed.get(name, "")) or ""
        return mapping

    @property
    def fields(self) -> list[FieldChoice]:
        missing = self.missing
        return [
            FieldChoice(
                name,
                label_of(self.card, name),
                column,
                "" if name in missing else self.card.field_specs[name].fallback,
                self.card.field_specs[name].optional,
                name in missing,
            )
            for name, column in self.mapping.items()
        ]

    @cached_property
    def missing(self) -> list[str]:
        """The fields for which a column has to be chosen first."""
        missing = unmapped(self.card.needs, self.mapping, self.card.field_specs)
        return ["reference", *missing] if self._lacks_reference else missing

    @property
    def _lacks_reference(self) -> bool:
        """Whether a metric that compares with a reference has none, neither in a column nor in the previewed row."""
        if self.mapping.get("reference") != "" or self.sample is None or self.is_own:
            return False
        return "ref_answer" not in self.columns and reference_in(self.sample.data) is None

    @cached_property
    def start(self) -> Start:
        wanted = self.typed.get("in") or reader_language()
        language = next((language for language in LANGUAGES if language == wanted), LANGUAGES[0])
        return Start(self.card, language, self.mapping)

    @cached_property
    def endpoints(self) -> list[Endpoint]:
        """The project's endpoints, those with a passed connection test first; for a metric of the project, its own
        judge's before all others."""
        rows = endpoints_of(self.project) if self.card.asks_judge else Endpoint.objects.none()
        own = self.card.source.judges[:1] if isinstance(self.card, OwnCard) else ()
        first = own[0].endpoint if own else None
        return sorted(rows, key=lambda endpoint: (endpoint.pk != first, not endpoint.works))

    @cached_property
    def endpoint(self) -> Endpoint | None:
        """The chosen judge, else the first one that passed its connection test."""
        pk = whole(self.typed.get("endpoint", ""))
        chosen = next((endpoint for endpoint in self.endpoints if endpoint.pk == pk), None)
        return chosen or next((endpoint for endpoint in self.endpoints if endpoint.works), None)

    @cached_property
    def definition(self) -> MetricDefinition:
        """The metric as it would be saved."""
        return with_endpoint(self.start.definition, self.endpoint)

    @property
    def is_own(self) -> bool:
        """Whether it is a metric of the project."""
        return isinstance(self.card, OwnCard)

    @property
    def can_use(self) -> bool:
        has_judge = self.endpoint is not None or not self.card.asks_judge
        return has_judge and not self.missing

    @cached_property
    def preview(self) -> PromptPreview:
        sample = self.sample
        prompt = None
        if sample and self.definition.judges and not self.missing:
            prompt = preview_prompt(self.definition, 0, sample.item_for(self.definition))
        versions = samples.versions_offered(self.project, sample)
        return PromptPreview(self.definition, 0, sample, prompt, versions, {})

    @property
    def script_run(self) -> ScriptRun | None:
        """What the script of a metric without a judge returns on the row."""
        if not self.definition.scripts or self.definition.judges or self.missing:
            return None
        return script_runs(self.definition, self.sample, None, "")[0]

    def context(self) -> dict[str, Any]:
        more = {
            name: value
            for read in ([] if self.is_own else card_contexts)
            for name, value in read(self.project, self.card).items()
        }
        return more | {
            "page": self,
            "shown": shown(self.card),
            "preview": self.preview,
            "prompt": self.preview.prompt,
            "sample": self.sample,
            "examples": shown_examples(self.card, self.start.language),
        }
