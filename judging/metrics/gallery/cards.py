"""The gallery as shown: its cards in the user's language, filtered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from datasets.core.kinds import COMPARISON
from datasets.messages import translated
from evalsite.accounts.models import Project
from evalsite.hooks import Hook
from judging.core.gallery import TASKS, Card, searched
from judging.core.gallery.own import OwnCard
from judging.core.gallery.record import Record
from judging.metrics.editor.kind_fields import CANDIDATES, GIVES_NAMES
from judging.metrics.gallery.own import card_of, entries_of
from judging.rule_messages import reader_language

TASK_NAMES: dict[str, str | Promise] = {
    "platform": gettext_lazy("From TI-ONE"),
    "template": gettext_lazy("Templates for any task"),
    "general": gettext_lazy("General"),
    "rag": gettext_lazy("Answers from retrieved context (RAG)"),
    "chat": gettext_lazy("Chat"),
    "code": gettext_lazy("Code"),
    "translation": gettext_lazy("Translation"),
    "summary": gettext_lazy("Summarisation"),
    "agent": gettext_lazy("Agents"),
    "safety": gettext_lazy("Safety"),
    "format": gettext_lazy("Format and match, without a judge model"),
}


@dataclass(frozen=True, slots=True)
class ShownCard:
    """A card in the user's language. `needs`: the names of the fields that it reads besides question and answer.
    `record`: the project's newest, else the shipped one."""

    card: Card
    name: str
    sentence: str
    gives: str
    needs: list[str]
    record: Record


@dataclass(frozen=True, slots=True)
class ShownTask:
    """A task and its cards."""

    name: str
    cards: list[ShownCard]


@dataclass(frozen=True, slots=True)
class Choice:
    """An option of a filter."""

    value: str
    name: str
    chosen: bool


def kind_of(card: Card) -> str:
    """What a card gives, comparisons of candidates apart from those with the reference."""
    return CANDIDATES if card.gives == COMPARISON and card.compares_candidates else card.gives


card_records: Hook[Callable[[Project], dict[str, Record]]] = Hook(
    "judging.metrics.gallery.cards.card_records"
)
"""The project's own records by card."""


def records_of(project: Project) -> dict[str, Record]:
    """The project's newest record of each card that was measured in it."""
    return {card: record for read in card_records for card, record in read(project).items()}


def label_of(card: Card, name: str) -> str:
    """A field as it is shown; a column of the project's own metric is shown by its name."""
    return name if isinstance(card, OwnCard) else translated(card.field_specs[name].label)


def shown(card: Card, record: Record | None = None) -> ShownCard:
    language = reader_language()
    needs = [label_of(card, name) for name, field in card.field_specs.items() if not field.optional]
    gives = str(GIVES_NAMES[kind_of(card)])
    name, sentence = card.name.text(language), card.sentence.text(language)
    return ShownCard(card, name, sentence, gives, needs, record or card.record)


def shown_tasks(query: QueryDict, project: Project) -> list[ShownTask]:
    """The cards that the query (task, gives, q) selects, by task; tasks without any are left out."""
    records = records_of(project)
    task, gives = query.get("task", ""), query.get("gives", "")
    cards = [
        card
        for card in searched(query.get("q", ""))
        if (not task or card.task == task) and (not gives or kind_of(card) == gives)
    ]
    by_task = (
        (name, [shown(card, records.get(card.id)) for card in cards if card.task == name]) for name in TASKS
    )
    return [ShownTask(str(TASK_NAMES[name]), matches) for name, matches in by_task if matches]


def task_choices(query: QueryDict) -> list[Choice]:
    return [Choice(task, str(TASK_NAMES[task]), query.get("task") == task) for task in TASKS]


def own_cards(project: Project, query: QueryDict) -> list[ShownCard]:
    """The project's own gallery, if the query filters by no task, as it does with the rest."""
    words, gives = query.get("q", "").casefold().split(), query.get("gives", "")
    cards = [] if query.get("task") else [card_of(entry) for entry in entries_of(project)]
    return [
        shown(card)
        for card in cards
        if (not gives or kind_of(card) == gives)
        and all(word in f"{card.name.en} {card.sentence.en}".casefold() for word in words)
    ]


def gives_choices(query: QueryDict) -> list[Choice]:
    return [Choice(kind, str(name), query.get("gives") == kind) for kind, name in GIVES_NAMES.items() if kind]
