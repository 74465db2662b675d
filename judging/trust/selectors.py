"""Which licence a judge has, whether it holds, and which rows are sealed."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from datasets.models import Row, Version
from evalsite.accounts.models import Project
from judging.core.licensing import definition_hash
from judging.core.metric_definition import MetricDefinition
from judging.records.models import Run
from judging.records.seal import BY_PEOPLE
from judging.trust.models import Licence, LicenceState, Split, Suspension
from judging.trust.seal import sealed_rows


def licences_of(definition: MetricDefinition, project: Project) -> QuerySet[Licence]:
    """The licences of a metric's value, as a run freezes it, newest first: of all versions with equal content."""
    mine = Licence.objects.filter(definition_hash=definition_hash(definition))
    return mine.filter(metric_version__metric__project=project).order_by("-opened_at", "-pk")


def licence_in_force(definition: MetricDefinition, project: Project) -> Licence | None:
    """The newest licence, which replaces earlier ones: a test that was opened anew ends a suspension."""
    return licences_of(definition, project).select_related("opening__test__split").first()


def projects_with_licence(definition: MetricDefinition) -> list[str]:
    """The slugs of the projects in which a metric's value, as a run freezes it, has a valid licence."""
    newest: dict[str, Licence] = {}
    licences = Licence.objects.filter(definition_hash=definition_hash(definition)).order_by("opened_at", "pk")
    for licence in licences.select_related("metric_version__metric__project"):
        newest[licence.metric_version.metric.project.slug] = licence
    return [slug for slug, licence in sorted(newest.items()) if licence_state(licence) == LicenceState.VALID]


def licence_state(
    licence: Licence, definition: MetricDefinition | None = None, now: datetime | None = None
) -> LicenceState:
    """Whether it holds for a definition; a change of the definition, or its date, lets it lapse for good."""
    if definition is not None and definition_hash(definition) != licence.definition_hash:
        return LicenceState.LAPSED
    if licence.expires_at is not None and licence.expires_at <= (now or timezone.now()):
        return LicenceState.LAPSED
    in_force = Suspension.objects.filter(licence=licence, lifted_at=None).exists()
    return LicenceState.SUSPENDED if in_force else LicenceState.VALID


def splits_on_labels_of(run: Run) -> QuerySet[Split]:
    """The splits whose tests took their labels from an evaluation, or from people's verdicts in an imported run."""
    splits = Split.objects.filter(dataset=run.version.dataset_id).select_related("metric", "dataset")
    if run.by_people:
        of_run = Q(test__evaluation__run=run) | Q(test__further_draws__evaluation__run=run)
        return splits.filter(of_run).distinct()
    if not run.verdict_sources.filter(kind__in=BY_PEOPLE).exists():
        return splits.none()
    return splits.filter(test__imported=run)


def sealed_lines(version: Version) -> set[int]:
    """The lines of a version's rows that are in a test which was not opened yet."""
    sealed = frozenset[int]().union(*sealed_rows(version).values())
    return set(Row.objects.filter(pk__in=sealed).values_list("line", flat=True))
