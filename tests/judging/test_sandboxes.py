from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from judging import sandboxes
from judging.checks import of_status
from judging.sandboxes import SandboxStatus, status


def test_the_status_is_found_by_trying_and_says_when() -> None:
    found = status(again=True)
    assert found.level == 3 - len(found.missing)
    assert timezone.now() - found.tried_at < timedelta(minutes=1)


def test_it_is_tried_once_until_someone_asks_again() -> None:
    first = status()
    assert status() is first
    assert status(again=True).tried_at > first.tried_at


@pytest.mark.parametrize(("level", "refused"), [(3, False), (1, False), (0, True), (None, True)])
def test_below_the_minimum_everything_is_refused(level: int | None, refused: bool) -> None:
    assert SandboxStatus(level, (), 1, timezone.now()).refused is refused


def test_a_sandbox_that_can_not_start_is_reported_with_its_reason() -> None:
    (message,) = of_status(SandboxStatus(None, (), 1, timezone.now(), "no more processes"))
    assert (message.id, "no more processes" in str(message.msg)) == ("judging.E002", True)


def test_an_unsafe_sandbox_is_for_developing_only(settings: Any) -> None:
    import dataclasses

    settings.CONFIG = dataclasses.replace(settings.CONFIG, sandbox_allow_unsafe=True, sandbox_minimum_level=0)
    settings.DEBUG = False
    assert sandboxes.minimum_level() == 1
    settings.DEBUG = True
    assert sandboxes.minimum_level() == 0
