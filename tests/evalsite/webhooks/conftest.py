from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.conf import LazySettings

from tests.evalsite.webhooks.receiver import HERE, Receiver, receiving


@pytest.fixture
def here(settings: LazySettings) -> None:
    """Settings with which webhooks reach this machine, and hold links."""
    settings.CONFIG = replace(
        settings.CONFIG,
        webhooks_plain_http=True,
        webhooks_allowed_networks=HERE.networks,
        site_url="https://evals.example",
    )


@pytest.fixture
def receiver(here: None) -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver
