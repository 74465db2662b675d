"""`?wait=`: while a request waits, its turn is another's."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest

from evalsite.api.waiting import wait_until
from evalsite.web.server import STEP_ASIDE
from evalsite.web.threads import ThreadsBusy


def request_that(steps_aside: Callable[[], None]) -> HttpRequest:
    request = HttpRequest()
    request.META[STEP_ASIDE] = steps_aside
    return request


def test_it_waits_aside() -> None:
    aside: list[bool] = []
    wait_until(request_that(lambda: aside.append(True)), lambda: aside == [True], 20)
    assert aside == [True]


def test_without_a_wait_it_keeps_its_turn() -> None:
    aside: list[bool] = []
    wait_until(request_that(lambda: aside.append(True)), lambda: False, 0)
    assert aside == []


def test_where_too_many_are_aside_it_does_not_wait() -> None:
    def busy() -> None:
        raise ThreadsBusy

    looks: list[bool] = []
    wait_until(request_that(busy), lambda: bool(looks.append(True)), 20)
    assert looks == []
