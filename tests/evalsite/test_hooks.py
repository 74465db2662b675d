"""What apps provide for hooks exists, and stands at a hook that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.utils.module_loading import import_string

from evalsite.hooks import Hook, HookTable

PROVIDED = {
    (hook, path)
    for config in apps.get_app_configs()
    for hook, paths in getattr(config, "hooks", {}).items()
    for path in (paths.values() if isinstance(paths, dict) else paths)
}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("hook", "path"), sorted(PROVIDED))
def test_what_is_provided_exists(hook: str, path: str) -> None:
    declared = import_string(hook)
    values = declared.values() if isinstance(declared, HookTable) else declared
    assert declared.name == hook
    assert import_string(path) in list(values)


def test_each_hook_has_something() -> None:
    packages = (ROOT / name for name in ("evalsite", "datasets", "judging"))
    texts = (path.read_text() for package in packages for path in package.rglob("*.py"))
    declared = {
        name for text in texts for name in re.findall(r'= Hook(?:Table)?(?:\[\w+\])?\(\s*"([\w.]+)"', text)
    }
    assert declared == {hook for hook, _path in PROVIDED}


def test_only_what_apps_list_is_provided() -> None:
    assert list(Hook[object]("evalsite.nowhere")) == []
    assert dict(HookTable[object]("evalsite.nowhere")) == {}
