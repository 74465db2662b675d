"""What the wheel holds beside the code: dependencies from requirements*.in, and static files with hashed names.

Run by hatchling (pyproject.toml).
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

EXTRAS = ("scale", "mcp")
CLIENT = "evalsite_client.py"


def requirements(file: Path) -> list[str]:
    """The requirements that a file lists, without its comments and options."""
    lines = [re.sub(r"\s*#.*", "", line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith("-")]


class Requirements(MetadataHookInterface):
    """The dependencies in the wheel's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        metadata["dependencies"] = requirements(root / "requirements.in")
        metadata["optional-dependencies"] = {
            extra: requirements(root / f"requirements-{extra}.in") for extra in EXTRAS
        }


class FurtherFiles(BuildHookInterface[Any]):
    """Collects the static files, so that a start from the wheel needs not, and puts the client for programs, a copy of
    the site's own, beside the folder of the site."""

    folder: tempfile.TemporaryDirectory[str]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="evalsite-wheel-")
        if version == "editable":  # started from its checkout
            return
        root, folder = Path(self.root), Path(self.folder.name)
        collect_static(root, folder / "static")
        shutil.copy(root / "evalsite" / "api" / CLIENT, folder / CLIENT)
        build_data["force_include"] |= {
            str(folder / "static"): "evalsite_site/staticfiles",
            str(folder / CLIENT): CLIENT,
        }

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self.folder.cleanup()


def collect_static(root: Path, folder: Path) -> None:
    """Write the static files, hashed and compressed as `manage.py serve` does, to `folder`."""
    from django.conf import settings
    from django.core.management import call_command

    sys.path.insert(0, str(root))  # for evalsite.static
    settings.configure(
        INSTALLED_APPS=["django.contrib.staticfiles"],
        STATIC_URL="static/",
        STATIC_ROOT=folder,
        STATICFILES_DIRS=[root / "static", ("guide", root / "docs" / "images")],
        STATICFILES_FINDERS=["django.contrib.staticfiles.finders.FileSystemFinder"],
        STORAGES={"staticfiles": {"BACKEND": "evalsite.static.Storage"}},
    )
    import django

    django.setup()
    call_command("collectstatic", interactive=False, verbosity=0)
