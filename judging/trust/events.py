"""What webhooks are told of licences."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from evalsite.links import absolute_url
from evalsite.webhooks.events import emit
from evalsite.webhooks.kinds import Event
from judging.core.licensing import definition_hash
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import MetricVersion
from judging.trust.models import Licence, LicenceState
from judging.trust.outdated import results_outdate


def emit_licence(event: Event, licence: Licence, state: LicenceState) -> None:
    """Tell of a licence. Call in the transaction that stores the change."""
    metric = licence.metric_version.metric
    url = absolute_url("trust:licence", metric.project.slug, licence.pk)
    emit(event, metric.project, pk=licence.pk, name=metric.name, state=str(state), url=url)


def tell_of_change(before: MetricVersion, after: MetricVersion) -> None:
    """Tell that the licence of a metric's newest version lapsed, if the version after it judges otherwise."""
    hashes = {definition_hash(MetricDefinition.from_json(version.definition)) for version in (before, after)}
    not_lapsed = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    licence = Licence.objects.filter(not_lapsed, metric_version=before).order_by("-opened_at", "-pk").first()
    if licence is not None and len(hashes) > 1:
        emit_licence(Event.LICENCE_LAPSED, licence, LicenceState.LAPSED)


def tell_of_dates() -> None:
    """Tell of licences that lapsed by their date, each once, and have the results that rested on them computed again;
    called by the reconciler."""
    over = Licence.objects.filter(expires_at__lte=timezone.now(), lapse_told=False)
    for licence in over.select_related("metric_version__metric__project"):
        with transaction.atomic():
            if Licence.objects.filter(pk=licence.pk, lapse_told=False).update(lapse_told=True):
                emit_licence(Event.LICENCE_LAPSED, licence, LicenceState.LAPSED)
                results_outdate(metric=licence.metric_version.metric)
