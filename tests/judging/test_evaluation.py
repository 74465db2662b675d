"""What `evaluate` says of a file that it cannot judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalsite.accounts.models import Project
from judging.evaluation import CannotStart, upload

pytestmark = pytest.mark.django_db
ROW = '{"messages": [{"role": "user", "content": "Why?"}]}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{ROW}\n[1]\n", "1 of 2 rows have errors"),
        (f"[\n{ROW},\n{ROW}\n]\n", "its objects do not stand one on each line"),
    ],
)
def test_it_says_what_keeps_a_file_from_being_judged(
    project: Project, tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "some.json"
    file.write_text(text)
    with pytest.raises(CannotStart) as refused:
        upload(project, file, "")
    assert f"cannot be judged: {why} (manage.py validate" in str(refused.value)
