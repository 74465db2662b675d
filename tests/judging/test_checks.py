from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.checks.registry import registry

from judging.checks import CONTAINER_OPTIONS, TAG, level_messages, sandbox_holds
from judging.core.sandbox.job import Layer


def test_nothing_is_said_where_every_wall_is_active() -> None:
    assert level_messages(3, (), 3) == []


@pytest.mark.parametrize(
    ("level", "missing", "minimum", "code"),
    [
        (2, ("namespaces",), 1, "judging.I001"),
        (2, ("landlock",), 2, "judging.I001"),
        (1, ("namespaces", "landlock"), 1, "judging.W001"),
        (1, ("namespaces", "landlock"), 2, "judging.E001"),
        (2, ("namespaces",), 3, "judging.E001"),
        (0, ("seccomp",), 1, "judging.E001"),
        (0, ("seccomp",), 0, "judging.W002"),
    ],
)
def test_the_fewer_walls_the_graver(level: int, missing: tuple[Layer, ...], minimum: int, code: str) -> None:
    (message,) = level_messages(level, missing, minimum)
    assert message.id == code


def test_what_is_missing_is_named_with_a_remedy() -> None:
    (message,) = level_messages(1, ("namespaces", "landlock"), 1)
    assert "Missing: namespaces, landlock." in str(message.msg)
    assert "Linux 5.13" in str(message.hint)
    assert f"add {CONTAINER_OPTIONS} to" in str(message.hint)
    assert CONTAINER_OPTIONS in Path("docs/deploy.md").read_text()


def test_this_machine_is_tried() -> None:
    found = run_checks(tags=[TAG], include_deployment_checks=True)
    assert {message.id for message in found} <= {
        "judging.I001",
        "judging.W001",
        "judging.E001",
        "judging.E002",
    }


def test_only_who_asks_for_it_pays_for_it() -> None:
    assert sandbox_holds not in registry.get_checks()
    assert sandbox_holds in registry.get_checks(include_deployment_checks=True)
