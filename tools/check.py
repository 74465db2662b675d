"""`make check`: every check that does not need a running site. Runs all checks; exits 1 if any failed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
LONGEST = "types"


def tracked(*patterns: str) -> list[str]:
    """Files tracked by git that match `patterns` and exist."""
    listing = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return [name for name in listing.stdout.splitlines() if (ROOT / name).exists()]


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
        "names": [python, str(ROOT / "tools" / "names.py")],
    }


def passes(name: str, command: list[str]) -> bool:
    """Run a check and report it."""
    started, environment = time.monotonic(), {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    mark, seconds = "ok  " if done.returncode == 0 else "FAIL", time.monotonic() - started
    output = done.stdout[-6000:] + done.stderr[-3000:] if done.returncode else ""
    print("\n".join(filter(None, [f"{mark} {name} ({seconds:.1f} s)", output])), flush=True)
    return done.returncode == 0


def main() -> int:
    """Run the type checker, which takes longer than all others together, beside these."""
    commands = steps()
    with ThreadPoolExecutor(1) as beside:
        typed = beside.submit(passes, LONGEST, commands.pop(LONGEST))
        results = [passes(name, command) for name, command in commands.items()]
        return 0 if all([*results, typed.result()]) else 1


if __name__ == "__main__":
    sys.exit(main())
