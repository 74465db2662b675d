"""The examples of docs/metrics-file.md, as files."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {
    language: (DOCS / name).read_text(encoding="utf-8")
    for language, name in (("en", "metrics-file.md"), ("zh", "metrics-file.zh.md"))
}


def write_example(folder: Path, language: str = "en", *, first: bool = False) -> Path:
    """Write the files of the full example, or of the first one, to `folder`; return the path of its YAML file."""
    page = PAGES[language].split("\n## ")[1 if first else 2]
    files = dict(re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)```", page, re.MULTILINE | re.DOTALL))
    (files["metrics.yaml"],) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "metrics.yaml"
