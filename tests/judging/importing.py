"""Write results files for tests and import them with the command."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

from datasets.models import Version
from judging.records.models import Run


def verdict(line: int = 1, model: str = "alpha", value: Any = 7, **more: Any) -> dict[str, Any]:
    """A line of a results file; by the judge `gpt` unless a rater is given."""
    source = {} if "rater" in more else {"judge": "gpt"}
    return {"line": line, "model": model, "value": value, **source, **more}


def results_file(folder: Path, lines: Iterable[dict[str, Any] | str], name: str = "results.jsonl") -> Path:
    path = folder / name
    texts = [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in lines]
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def imports(
    dataset: str | Path | Version, results: Path, name: str = "elsewhere", *, strict: bool = False
) -> tuple[dict[str, Any], int]:
    """Run `import_results --json`; return its document and the exit status."""
    out, status = StringIO(), 0
    named = dataset.dataset.name if isinstance(dataset, Version) else str(dataset)
    try:
        call_command("import_results", named, results, name=name, strict=strict, json=True, stdout=out)
    except CommandError as error:
        status = error.returncode
    return json.loads(out.getvalue() or "null"), status


def imported(version: Version, folder: Path, *lines: dict[str, Any], name: str = "elsewhere") -> Run:
    """Import these verdicts, assert that none is refused, and return the run."""
    found, status = imports(version, results_file(folder, lines), name)
    assert (status, found["refused"]) == (0, [])
    return Run.objects.get(pk=found["run"])
