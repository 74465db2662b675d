"""Run `manage.py` commands in this process: starting a new one takes a second of processor time."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import get_commands, load_command_class

LANGUAGE_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")


@dataclass(frozen=True)
class Ended:
    returncode: int
    stdout: str
    stderr: str


def command(name: str, *arguments: str) -> Ended:
    """Run a command as manage.py would. Closes all database connections, so not for tests that use the database."""
    out, errors = _stream(), _stream()
    status = 0
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            load_command_class(get_commands()[name], name).run_from_argv(["manage.py", name, *arguments])
        except SystemExit as end:
            status = int(end.code or 0)
    return Ended(status, _text(out), _text(errors))


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def start_in(folder: Path, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """Make commands run in `folder`, with a DATA_DIR that does not exist yet and an English locale."""
    monkeypatch.chdir(folder)
    settings.DATA_DIR = folder / "data"
    for name in LANGUAGE_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
