"""What drawing the rows of an evaluation reads: it holds SQLite's only write lock meanwhile."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.accounts.models import Project
from judging.people.models import Scheme
from judging.people.sampling import ItemChoice, gather
from tests.make import a_version

pytestmark = pytest.mark.django_db


def test_only_the_texts_of_drawn_rows_are_read(project: Project) -> None:
    version = a_version(project, rows=30)
    choice = ItemChoice(version, list(version.candidates.all()), Scheme.EVERY_PAIR, sample_size=2, seed=1)
    with CaptureQueriesContext(connection) as asked:
        gathered = gather(choice)
    (texts,) = [one["sql"] for one in asked if '"datasets_row"."raw"' in one["sql"]]
    assert texts.partition(" IN (")[2].count(",") == 1
    assert gathered.rows == 2
