"""Run `import_dataset --json` over files without storing anything, and compare with what is expected of them."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command

Document = dict[str, Any]


def take(*files: Path, **options: Any) -> tuple[Document, int, str]:
    """The document, the exit status and the error message; the rows are written beside the first file."""
    out = StringIO()
    options = {"out": files[0].with_name("rows.out"), "json": True, "stdout": out} | options
    try:
        call_command("import_dataset", *map(str, files), **options)
    except CommandError as error:
        return json.loads(out.getvalue() or "{}"), error.returncode, str(error)
    return json.loads(out.getvalue()), 0, ""


def check(folder: Path, name: str, content: str | bytes, **expected: Any) -> Document:
    """Take a file of this content and check the keys of tests/datasets/files/expected.json; return the document."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    document, _status, said = take(path)
    listed = [*document.get("findings", ()), *document.get("left_out", ())]
    text = "\n".join([*(one["message"] for one in listed), said]).lower()
    figures = ("rows", "answers", "references")
    assert {key: document.get(key) for key in figures if key in expected} == {
        key: expected[key] for key in figures if key in expected
    }
    assert document.get("fields", {}).items() >= expected.get("fields", {}).items()
    assert not expected.get("says") or any(word.lower() in text for word in expected["says"])
    assert {one["line"] for one in listed} >= set(expected.get("lines", ()))
    assert expected.get("repair") in {None, *(one["repair"] for one in document.get("findings", ()))}
    return document
