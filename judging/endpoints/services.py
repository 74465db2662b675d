"""Changes to endpoints."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from evalsite.secrets import encrypt
from judging.core.judges.errors import Held
from judging.core.judges.probe import Probe
from judging.endpoints.forms import PLAIN, EndpointData
from judging.endpoints.models import Endpoint


def endpoint_create(
    *, project: Project, data: EndpointData, user: User | None, draft: bool = False
) -> Endpoint:
    """Create an endpoint. A draft becomes available once a test succeeds. Raises ValidationError if the name exists."""
    endpoint = Endpoint(project=project, created_by=user, draft=draft)
    with transaction.atomic():
        made = _written(endpoint, data)
        record(Action.ENDPOINT_CREATED, project=project, thing=made, by=user, url=made.url, model=made.model)
    return made


def endpoint_edit(*, endpoint: Endpoint, data: EndpointData) -> Endpoint:
    """Update an endpoint; secrets that are None are unchanged. Raises ValidationError if the name is taken.

    Clears the last connection test's result if it may no longer be valid.
    """
    secrets = {"key": data.key, "headers": data.headers, "proxy": data.proxy}
    changed = sorted(
        [name for name in PLAIN if getattr(endpoint, name) != getattr(data, name)]
        + [name for name, secret in secrets.items() if secret is not None]
    )
    elsewhere = (endpoint.url, endpoint.model) != (data.url, data.model)
    if elsewhere or endpoint.ca_pem != data.ca_pem or any(secret is not None for secret in secrets.values()):
        endpoint.probe, endpoint.probed_at = {}, None
    if elsewhere:
        endpoint.refuses = []
    with transaction.atomic():
        written = _written(endpoint, data)
        if changed:
            record(Action.ENDPOINT_CHANGED, project=endpoint.project, thing=written, changed=changed)
    return written


def endpoint_typed(endpoint: Endpoint, data: EndpointData) -> Endpoint:
    """Apply form data to an endpoint without saving it."""
    for name in PLAIN:
        setattr(endpoint, name, getattr(data, name))
    if data.key is not None:
        endpoint.key_encrypted = encrypt(data.key)
    if data.headers is not None:
        endpoint.headers_encrypted = encrypt(json.dumps(data.headers) if data.headers else "")
    if data.proxy is not None:
        endpoint.proxy_encrypted = encrypt(data.proxy)
    return endpoint


def _written(endpoint: Endpoint, data: EndpointData) -> Endpoint:
    endpoint_typed(endpoint, data)
    try:
        with transaction.atomic():
            endpoint.save()
    except IntegrityError:
        taken = _("An endpoint named “%(name)s” already exists (it may be archived). Choose another name.")
        raise ValidationError({"name": taken % {"name": data.name}}) from None
    return endpoint


@transaction.atomic
def endpoint_archive(*, endpoint: Endpoint) -> None:
    """Hide the endpoint from the lists. Runs and metrics that use it still work."""
    if Endpoint.objects.filter(pk=endpoint.pk, archived_at=None).update(archived_at=timezone.now()):
        record(Action.ENDPOINT_ARCHIVED, project=endpoint.project, thing=endpoint)


@transaction.atomic
def endpoint_restore(*, endpoint: Endpoint) -> None:
    """Show an archived endpoint in the lists again."""
    if Endpoint.objects.filter(pk=endpoint.pk, archived_at__isnull=False).update(archived_at=None):
        record(Action.ENDPOINT_RESTORED, project=endpoint.project, thing=endpoint)


def endpoint_remember_test(*, endpoint: Endpoint, found: Probe) -> None:
    """Store the result of a connection test. Rejected parameters are replaced only if the server answered."""
    if found.code in Held.codes:  # nothing was sent, so keep the known models
        found = replace(found, models=tuple(endpoint.probe.get("models", ())))
    endpoint.probe, endpoint.probed_at = asdict(found), timezone.now()
    if found.ok:
        endpoint.refuses, endpoint.draft = list(found.refuses), False
    endpoint.save(update_fields=["probe", "probed_at", "refuses", "draft"])


def endpoint_publish(*, endpoint: Endpoint) -> None:
    """Make a draft available although its connection test failed."""
    Endpoint.objects.filter(pk=endpoint.pk).update(draft=False)
