"""How commands are started: `manage.py NAME` in a checkout, `evalsite NAME` if installed from a wheel.

Imports no Django: options that stand for settings are read before the settings are.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IS_INSTALLED = ROOT.name == "evalsite_site"  # the only folder of the wheel (pyproject.toml)
PROGRAM = "evalsite" if IS_INSTALLED else "manage.py"
DATA_OPTION = {"--data": "DATA_DIR"}
SERVE_OPTIONS = {**DATA_OPTION, "--host": "HOST", "--port": "PORT"}


class UsageError(Exception):
    """An option without its value, in a sentence."""


def take_options(arguments: Sequence[str], environment: MutableMapping[str, str]) -> list[str]:
    """Set options that stand for settings in `environment`; return the other arguments.

    Every command takes `--data DIR`, before or after its name; `serve` also takes `--host` and `--port`. They are
    stronger than the environment. Raises UsageError if a value is missing.
    """
    options = SERVE_OPTIONS if "serve" in arguments[:3] else DATA_OPTION
    others: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.partition("=")
        if argument == "--":
            return [*others, argument, *rest]
        if name not in options:
            others.append(argument)
            continue
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else ""
        if not value:
            raise UsageError(f"{name} needs a value; see {PROGRAM} serve --help.")
        environment[options[name]] = value
    return others


def default_data_dir() -> Path:
    """The data folder if DATA_DIR is not set: the user's own if installed, `var` in a checkout."""
    if not IS_INSTALLED:
        return ROOT / "var"
    from platformdirs import user_data_path  # only needed here

    return user_data_path("evalsite", appauthor=False)


def advice(data_dir: Path, *arguments: str) -> str:
    """A command on a data folder, as a user types it."""
    if IS_INSTALLED:
        return shlex.join([PROGRAM, *arguments, "--data", str(data_dir)])
    return f"DATA_DIR={data_dir} {shlex.join([sys.executable, str(ROOT / 'manage.py'), *arguments])}"


def start_advice(**settings: str) -> str:
    """How to start the site with other settings (`DATA_DIR`, `HOST`, `PORT`)."""
    if not IS_INSTALLED:
        return " ".join(["make run", *(f"{name}={value}" for name, value in settings.items())])
    options = {setting: option for option, setting in SERVE_OPTIONS.items()}
    return " ".join([PROGRAM, "serve", *(f"{options[name]} {value}" for name, value in settings.items())])
