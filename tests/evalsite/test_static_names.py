"""Templates name only existing static files: with hashed names, a missing one breaks the whole page."""

from __future__ import annotations

import re
from pathlib import Path

from django.contrib.staticfiles import finders

TEMPLATES = Path(__file__).parents[2] / "templates"
NAMED = re.compile(r"""{% static ['"]([^'"]+)['"]""")


def test_every_static_file_that_a_template_names_exists() -> None:
    named = {
        (path.name, name) for path in TEMPLATES.rglob("*.html") for name in NAMED.findall(path.read_text())
    }
    assert named
    assert [each for each in sorted(named) if not finders.find(each[1])] == []
