"""No form shows the browser's own messages: the server's sentences stand beside the fields."""

from __future__ import annotations

import re
from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "templates"
FORM = re.compile(r"<form\b(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")


def test_every_form_is_validated_by_the_server() -> None:
    tags = [tag for path in TEMPLATES.rglob("*.html") for tag in FORM.findall(path.read_text())]
    browsers = [tag for tag in tags if " novalidate" not in tag and 'method="dialog"' not in tag]
    assert len(tags) > 100
    assert browsers == []
