"""The project's own gallery: metrics of the project that its members find among the others, as they were saved."""

from __future__ import annotations

from django import forms
from django.db import transaction
from django.utils.translation import gettext_lazy

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.web.numbers import whole
from judging.core.gallery import own
from judging.core.gallery.own import OwnCard
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import GalleryEntry, Metric
from judging.metrics.selectors import newest_version

PREFIX = "own-"
"""Of the ids of the project's own cards, before the entry's number."""


class EntryForm(forms.Form):
    sentence = forms.CharField(
        label=gettext_lazy("What it is for, in a sentence"), max_length=200, required=False
    )


def entries_of(project: Project) -> list[GalleryEntry]:
    """The project's own gallery by name, without archived metrics."""
    entries = GalleryEntry.objects.filter(metric__project=project, metric__archived_at=None)
    return list(entries.select_related("metric", "version").order_by("metric__name"))


def entry_of(metric: Metric) -> GalleryEntry | None:
    """The metric's entry, if it is in the gallery."""
    return GalleryEntry.objects.filter(metric=metric).select_related("version").first()


def own_card(project: Project, card: str) -> OwnCard | None:
    """The card with this id, if it is one of the project's."""
    number = whole(card.removeprefix(PREFIX)) if card.startswith(PREFIX) else None
    entries = GalleryEntry.objects.filter(metric__project=project, metric__archived_at=None)
    entry = entries.filter(pk=number or 0).select_related("metric", "version").first()
    return card_of(entry) if entry else None


def card_of(entry: GalleryEntry) -> OwnCard:
    definition = MetricDefinition.from_json(entry.version.definition)
    return own.own_card(f"{PREFIX}{entry.pk}", definition, entry.sentence)


@transaction.atomic
def entry_save(*, metric: Metric, sentence: str, user: User) -> GalleryEntry:
    """Save the metric's newest version to the project's gallery, in place of an earlier one."""
    version = newest_version(metric)
    entry, _new = GalleryEntry.objects.update_or_create(
        metric=metric, defaults={"version": version, "sentence": sentence, "created_by": user}
    )
    record(Action.GALLERY_SAVED, project=metric.project, thing=metric, by=user, version=version.number)
    return entry


@transaction.atomic
def entry_remove(*, metric: Metric) -> None:
    """Take the metric out of the gallery."""
    if GalleryEntry.objects.filter(metric=metric).delete()[0]:
        record(Action.GALLERY_REMOVED, project=metric.project, thing=metric)
