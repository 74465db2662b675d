"""What a supervisor or a load balancer asks."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.test import Client


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_needs_neither_the_sites_name_nor_https(
    client: Client, db: None, settings: LazySettings, path: str
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get(path, headers={"Host": "10.0.0.7:8000"})
    assert (answer.status_code, answer.content) == (200, b"ok\n")


def test_a_probe_leaves_no_session(client: Client, db: None) -> None:
    assert not client.get("/healthz").cookies
