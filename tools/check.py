"""`make check`: every check that does not need a running site. Runs all checks; exits 1 if any failed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def tracked(*patterns: str) -> list[str]:
    """Files tracked by git that match `patterns` and exist."""
    found = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return [name for name in found.stdout.splitlines() if (ROOT / name).exists()]


def steps() -> dict[str, list[str]]:
    """Name of each check → its command."""
    python, manage = sys.executable, str(ROOT / "manage.py")
    templates = tracked("templates/*.html")
    return {
        "format": [str(BIN / "ruff"), "format", "--check", "."],
        "lint": [str(BIN / "ruff"), "check", "."],
        "import contracts": [str(BIN / "lint-imports"), "--no-cache"],
        "types": [str(BIN / "mypy")],
        "templates, format": [str(BIN / "djade"), "--target-version", "5.2", "--check", *templates],
        "templates, lint": [str(BIN / "djlint"), "--lint", "--quiet", *templates],
        "migrations": [python, manage, "makemigrations", "--check", "--dry-run"],
        "system check": [python, manage, "check"],
        "deploy check": [python, manage, "check", "--deploy", "--fail-level", "ERROR"],
        "container file": [str(BIN / "hadolint"), "docs/deploy/Containerfile"],
        "compose file": [
            str(BIN / "check-jsonschema"),
            *("--builtin-schema", "vendor.compose-spec", "docs/deploy/compose.yaml"),
        ],
        "documentation": [python, str(ROOT / "tools" / "site.py")],
        "translations": [python, str(ROOT / "tools" / "messages.py"), "check"],
    }


def main() -> int:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    failed = []
    for name, command in steps().items():
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        print(
            f"{'ok  ' if done.returncode == 0 else 'FAIL'} {name} ({time.monotonic() - started:.1f} s)",
            flush=True,
        )
        if done.returncode:
            failed.append(name)
            print(done.stdout[-6000:] + done.stderr[-3000:], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
