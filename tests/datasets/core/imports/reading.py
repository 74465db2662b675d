"""Write files of other tools and import them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets.core.imports.model import Options, SourceFile
from datasets.core.imports.registry import recognise


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of an import: source name, rows, verdicts, number of skipped records by code, and unread keys."""

    source: str
    rows: list[dict[str, Any]]
    verdicts: list[dict[str, Any]]
    left_out: Counter[str]
    keys: list[str]

    @property
    def answers(self) -> dict[str, list[str]]:
        """{model: its answers in row order}."""
        found: dict[str, list[str]] = {}
        for output in (output for row in self.rows for output in row.get("model_outputs", [])):
            found.setdefault(output["model_name"], []).extend(one["content"] for one in output["responses"])
        return found

    def said(self, *names: str) -> list[tuple[Any, ...]]:
        """The values of these fields for each verdict."""
        return [tuple(one.get(name) for name in names) for one in self.verdicts]


def lines(*records: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


def files(folder: Path, **contents: str | bytes) -> list[SourceFile]:
    """Write files with these names, in which `__` stands for a dot."""
    made = []
    for name, content in contents.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        made.append(SourceFile.of(path))
    return made


def taken(folder: Path, **contents: str | bytes) -> Taken:
    """Import these files with the source that recognises them."""
    given = files(folder, **contents)
    source = recognise(given)
    assert source is not None, "nothing recognised"
    imported = source.read(given, Options())
    rows = [row.data for row in imported.rows]
    verdicts = list(imported.verdicts)
    keys = [one.detail for one in imported.left_out if one.code == "key_unread"]
    counts = Counter({code: n for code, n in imported.left_out_counts.items() if code != "key_unread"})
    return Taken(source.name, rows, verdicts, counts, keys)
