"""Build the documentation as a static site, strictly: no broken links, nothing loaded from other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FETCHED = re.compile(
    r"<(?:script|img|iframe|link|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)"
)


def build(folder: Path) -> int:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def fetched_elsewhere(folder: Path) -> list[str]:
    """`page: URL` of every resource loaded from another host."""
    return [
        f"{page.relative_to(folder)}: {address}"
        for page in sorted(folder.rglob("*.html"))
        for address in FETCHED.findall(page.read_text())
    ]


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        failed = build(Path(name))
        elsewhere = fetched_elsewhere(Path(name))
    print("\n".join(elsewhere))
    return failed or bool(elsewhere)


if __name__ == "__main__":
    sys.exit(main())
