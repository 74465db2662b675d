"""Changes to metrics. Versions are immutable; editing adds a new one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.hooks import Hook
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.selectors import newest_version

definition_checks: Hook[Callable[[Metric, MetricDefinition], None]] = Hook(
    "judging.metrics.services.definition_checks"
)
"""Raise ValidationError if a metric may not have a definition; called before it is saved, and before a run starts."""


definition_changed: Hook[Callable[[MetricVersion, MetricVersion], None]] = Hook(
    "judging.metrics.services.definition_changed"
)
"""Called with the newest version and the one after it, in the transaction that saves the latter."""


def refuse_definition(metric: Metric, definition: MetricDefinition) -> None:
    """Raise ValidationError with the place if the metric may not have this definition."""
    for check in definition_checks:
        check(metric, definition)


class StaleEdit(Exception):
    """Another version was saved since the edited one was loaded: `newest`."""

    def __init__(self, newest: MetricVersion) -> None:
        super().__init__(newest.number)
        self.newest = newest


def metric_create(*, project: Project, definition: MetricDefinition, user: User | None) -> Metric:
    """Create a metric with its first version. Raises ValidationError if the name is taken."""
    try:
        with transaction.atomic():
            metric = Metric.objects.create(project=project, name=definition.name, created_by=user)
            _append(metric, 1, definition, user)
            record(Action.METRIC_CREATED, project=project, thing=metric, by=user, version=1)
    except IntegrityError:
        raise _taken(definition.name) from None
    return metric


def metric_edit(
    *, metric: Metric, definition: MetricDefinition, based_on: int, user: User | None
) -> MetricVersion:
    """Save the definition as a new version. Returns the newest version if nothing changed.

    Raises StaleEdit if `based_on` is not the newest version's number, ValidationError if the name is taken.
    """
    try:
        with transaction.atomic():
            locked = Metric.objects.select_for_update().get(pk=metric.pk)
            newest = newest_version(locked)
            if newest.number != based_on:
                raise StaleEdit(newest)
            if MetricDefinition.from_json(newest.definition) == definition:
                return newest
            Metric.objects.filter(pk=metric.pk).update(name=definition.name)
            return _changed(locked, newest.number + 1, definition, user)
    except IntegrityError:
        raise _taken(definition.name) from None


def metric_restore_version(*, version: MetricVersion, user: User | None) -> MetricVersion:
    """Save an old version's definition as a new version. The metric keeps its current name."""
    with transaction.atomic():
        metric = Metric.objects.select_for_update().get(pk=version.metric_id)
        definition = renamed(MetricDefinition.from_json(version.definition), metric.name)
        return _changed(metric, newest_version(metric).number + 1, definition, user)


def metric_copy(*, metric: Metric, user: User | None) -> Metric:
    """Create a metric with a copy of the newest version, under the first free name."""
    definition = MetricDefinition.from_json(newest_version(metric).definition)
    name = _free_name(metric.project, metric.name)
    return metric_create(project=metric.project, definition=renamed(definition, name), user=user)


def metric_ensure(*, project: Project, definition: MetricDefinition, user: User | None) -> MetricVersion:
    """The newest version of a metric with this definition: that of its name, if it is the same, or else of a new metric
    under the first free name."""
    metric = Metric.objects.filter(project=project, name=definition.name, archived_at=None).first()
    if metric is not None:
        newest = newest_version(metric)
        if MetricDefinition.from_json(newest.definition) == definition:
            return newest
    named = renamed(definition, _free_name(project, definition.name))
    return newest_version(metric_create(project=project, definition=named, user=user))


def _free_name(project: Project, name: str) -> str:
    """The name, with the first free number from 2 if a metric of the project has it."""
    taken = set(Metric.objects.filter(project=project).values_list("name", flat=True))
    numbered = (f"{name[:180]} ({number})" for number in range(2, len(taken) + 3))
    return next(free for free in (name, *numbered) if free not in taken)


def renamed(definition: MetricDefinition, name: str) -> MetricDefinition:
    return msgspec.structs.replace(definition, name=name)


def _changed(metric: Metric, number: int, definition: MetricDefinition, user: User | None) -> MetricVersion:
    before = newest_version(metric)
    names = {"before": metric.name} if metric.name != definition.name else {}
    record(
        Action.METRIC_CHANGED,
        project=metric.project,
        thing=metric,
        name=definition.name,
        by=user,
        version=number,
        **names,
    )
    version = _append(metric, number, definition, user)
    for tell in definition_changed:
        tell(before, version)
    return version


def _append(metric: Metric, number: int, definition: MetricDefinition, user: User | None) -> MetricVersion:
    refuse_definition(metric, definition)
    return MetricVersion.objects.create(
        metric=metric, number=number, definition=definition.to_json(), created_by=user
    )


def _taken(name: str) -> ValidationError:
    taken = _("A metric named “%(name)s” already exists (it may be archived). Choose another name.")
    return ValidationError({"name": taken % {"name": name}})
