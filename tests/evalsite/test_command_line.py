"""Options that stand for settings are taken out of the command line."""

from __future__ import annotations

import pytest

from evalsite.command_line import UsageError, take_options


@pytest.mark.parametrize(
    ("arguments", "others", "settings"),
    [
        ("serve --port 9000 --host=0.0.0.0", "serve", {"PORT": "9000", "HOST": "0.0.0.0"}),
        ("--data d report 3 --json", "report 3 --json", {"DATA_DIR": "d"}),
        ("report 3 --data=d", "report 3", {"DATA_DIR": "d"}),
        ("demo_judge --port 80", "demo_judge --port 80", {}),
        ("report -- --data", "report -- --data", {}),
    ],
)
def test_options_become_settings(arguments: str, others: str, settings: dict[str, str]) -> None:
    environment: dict[str, str] = {}
    assert (take_options(arguments.split(), environment), environment) == (others.split(), settings)


def test_they_are_stronger_than_the_environment() -> None:
    environment = {"PORT": "1"}
    take_options(["serve", "--port", "2"], environment)
    assert environment == {"PORT": "2"}


@pytest.mark.parametrize(
    "arguments", [["serve", "--port"], ["serve", "--data", "--no-sample"], ["serve", "--host="]]
)
def test_an_option_without_its_value_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="needs a value"):
        take_options(arguments, {})
