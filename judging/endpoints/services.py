"""Changes to endpoints."""

from __future__ import annotations

from dataclasses import asdict, replace

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.core.judges.errors import Held
from judging.core.judges.probe import Probe
from judging.endpoints.forms import PLAIN, SECRETS
from judging.endpoints.models import Endpoint
from judging.endpoints.prices import list_price


@transaction.atomic
def endpoint_create(*, project: Project, endpoint: Endpoint, user: User | None, draft: bool) -> None:
    """Store a new endpoint; one without prices gets the vendor's list price if that is known. A draft becomes available
    once a test succeeds. Raises ValidationError if the name is taken."""
    endpoint.project, endpoint.created_by, endpoint.draft = project, user, draft
    if endpoint.is_priced:
        endpoint.priced_on = timezone.localdate()
    elif price := list_price(endpoint.url, endpoint.model):
        endpoint.input_price, endpoint.output_price, prices = price
        endpoint.currency, endpoint.priced_on = prices.currency, prices.dated
    _save(endpoint)
    more = {"url": endpoint.url, "model": endpoint.model}
    record(Action.ENDPOINT_CREATED, project=project, thing=endpoint, by=user, **more)


@transaction.atomic
def endpoint_edit(*, before: Endpoint, endpoint: Endpoint) -> None:
    """Store an edited endpoint. Raises ValidationError if the name is taken.

    Clears the last connection test's result if it may no longer be valid.
    """
    columns = {name: name for name in PLAIN} | {name: f"{name}_encrypted" for name in SECRETS}
    changed = {
        name for name, column in columns.items() if getattr(before, column) != getattr(endpoint, column)
    }
    if changed & {"url", "model", "protocol", "ca_pem", *SECRETS}:
        endpoint.probe, endpoint.probed_at = {}, None
    if changed & {"url", "model", "protocol"}:
        endpoint.rejected_params, endpoint.structured = [], ""
    if changed & {"input_price", "output_price", "currency"}:
        endpoint.priced_on = timezone.localdate() if endpoint.is_priced else None
    _save(endpoint)
    if changed:
        record(Action.ENDPOINT_CHANGED, project=endpoint.project, thing=endpoint, changed=sorted(changed))


def _save(endpoint: Endpoint) -> None:
    try:
        with transaction.atomic():
            endpoint.save()
    except IntegrityError:
        taken = _("An endpoint named “%(name)s” already exists (it may be archived). Choose another name.")
        raise ValidationError({"name": taken % {"name": endpoint.name}}) from None


def endpoint_remember_test(*, endpoint: Endpoint, probe: Probe) -> None:
    """Store the result of a connection test. Rejected parameters are replaced only if the server answered."""
    if probe.code in Held.codes:  # nothing was sent, so keep the known models
        probe = replace(probe, models=tuple(endpoint.probe.get("models", ())))
    endpoint.probe, endpoint.probed_at = asdict(probe), timezone.now()
    if probe.ok:
        endpoint.rejected_params, endpoint.draft = list(probe.refuses), False
        endpoint.structured = probe.structured
    endpoint.save(update_fields=["probe", "probed_at", "rejected_params", "draft", "structured"])


def endpoint_publish(*, endpoint: Endpoint) -> None:
    """Make a draft available although its connection test failed."""
    Endpoint.objects.filter(pk=endpoint.pk).update(draft=False)
