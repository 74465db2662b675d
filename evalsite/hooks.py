"""What higher packages provide for lower ones, which may not import them.

A package declares a `Hook` or a `HookTable` under its own dotted name. Apps list in `AppConfig.hooks` the dotted names
of what they provide there. Those modules are imported at first use, so that processes start fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.apps import apps
from django.utils.module_loading import import_string

T = TypeVar("T")


def provided(hook: str) -> list[Any]:
    """What each app lists for the hook of this name."""
    listed = (getattr(config, "hooks", {}).get(hook) for config in apps.get_app_configs())
    return [entry for entry in listed if entry is not None]


class Hook(Generic[T]):
    """What apps provide, in their order: {"package.module.hook": ("package.module.name", …)}."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __iter__(self) -> Iterator[T]:
        return iter(self._provided)

    def __getitem__(self, index: int) -> T:
        return self._provided[index]

    @cached_property
    def _provided(self) -> tuple[T, ...]:
        return tuple(import_string(path) for paths in provided(self.name) for path in paths)


class HookTable(Mapping[str, T]):
    """What apps provide by key: {"package.module.hook": {"key": "package.module.name", …}}."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: str) -> T:
        value: T = import_string(self._paths[key])
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def _paths(self) -> dict[str, str]:
        return {key: path for paths in provided(self.name) for key, path in paths.items()}
