"""A database of the first release is upgraded and keeps its figures.

The fixtures were created with `make run` of that release: the sample's run with overrides, one of them before its
answer was re-judged, two human evaluations by two raters with adjudications, and data sets with findings.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from evalsite.supervisor import manage
from tests.processes.conftest import SETTINGS

pytestmark = [pytest.mark.processes, pytest.mark.django_db]
Environment = dict[str, str]
HERE = Path(__file__).parent
RUN = "Sample evaluation · 示例评测"
METRIC = "Closeness to the reference · 与参考答案的接近程度"
OVERRIDDEN = "heron-large"


@pytest.fixture(scope="module")
def first_release(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """The environment of a process that uses a database of the first release."""
    folder = tmp_path_factory.mktemp("first_release")
    environment = {**os.environ, **SETTINGS, "DATA_DIR": str(folder), "DEMO_JUDGE": "0"}
    if connection.vendor == "sqlite":
        packed = (HERE / "first_release.sqlite3.gz").read_bytes()
        (folder / "evalsite.sqlite3").write_bytes(gzip.decompress(packed))
        yield environment
        return
    server, _, _ = os.environ["DATABASE_URL"].rpartition("/")
    name = f"{connection.settings_dict['NAME']}_first_release"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as administration:
        administration.execute(f'DROP DATABASE IF EXISTS "{name}"')
        administration.execute(f'CREATE DATABASE "{name}"')
        with psycopg.connect(f"{server}/{name}") as database:
            database.execute(gzip.decompress((HERE / "first_release.sql.gz").read_bytes()))
        yield {**environment, "DATABASE_URL": f"{server}/{name}"}
        administration.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@dataclass(frozen=True)
class Upgraded:
    """The database after the first command of this release, and that command's report."""

    environment: Environment
    report: dict[str, Any]


@pytest.fixture(scope="module")
def upgraded(first_release: Environment) -> Upgraded:
    """Upgraded once for all tests: the migrations take five seconds of processor time."""
    return Upgraded(first_release, json.loads(output(first_release, "report", RUN, "--json")))


def output(environment: Environment, *arguments: str) -> str:
    done = subprocess.run(manage(*arguments), env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Figures of `before` that differ or are missing in `after`; additional ones in `after` are ignored."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [d for key in before for d in differences(before[key], after.get(key), f"{path}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [d for place, (old, new) in pairs for d in differences(old, new, f"{path}/{place}")]
    close = pytest.approx(after, rel=1e-4) if isinstance(after, float) else after  # the dump has milliseconds
    same = before == close
    return [] if same else [f"{path}: {before} → {after}"]


def test_figures_stay_as_they_were_but_for_an_override_that_judging_again_had_dropped(
    upgraded: Upgraded,
) -> None:
    before = json.loads((HERE / "first_release.report.json").read_text())
    after = upgraded.report
    concerned = (f"/candidates/{OVERRIDDEN}/{METRIC}/", "/pairs/1/")  # that candidate and metric's pair
    assert [one for one in differences(before, after) if not one.startswith(concerned)] == []
    old, new = (document["candidates"][OVERRIDDEN][METRIC] for document in (before, after))
    assert new["overridden"] == old["overridden"] + 1
    assert new["mean"] == pytest.approx(old["mean"] - (10 - 1) / old["items"])  # scored 10, overridden with 1


OF_RATERS = """
import json
from judging.runs.models import Judgement
said = Judgement.objects.exclude(rater=None).select_related("rating__rater", "run_metric")
own = [one.rating.rater.user_id == one.rater_id and one.rating.attempt == one.attempt for one in said]
values = [json.loads(one.rating.values).get(str(one.run_metric.number)) for one in said]
print(len(said) > 0, all(own), values == [one.value and json.loads(one.value) for one in said])
"""


def test_a_raters_judgements_belong_to_the_rating_that_made_them(upgraded: Upgraded) -> None:
    assert output(upgraded.environment, "shell", "--no-imports", "-c", OF_RATERS).split() == ["True"] * 3


def test_an_upgraded_database_has_the_columns_indexes_and_constraints_of_a_new_one(
    upgraded: Upgraded,
) -> None:
    other = connection.copy()
    if connection.vendor == "sqlite":
        other.settings_dict["NAME"] = Path(upgraded.environment["DATA_DIR"], "evalsite.sqlite3")
    else:
        other.settings_dict["NAME"] = upgraded.environment["DATABASE_URL"].rpartition("/")[2]
    with closing(other):
        assert tables(other) == tables(connection)  # the test database was migrated as a new installation is


def tables(of: BaseDatabaseWrapper) -> dict[str, tuple[list[str], list[str]]]:
    """The columns, indexes and constraints of this product's tables, without names generated from a hash."""
    with of.cursor() as cursor:
        return {
            table: (
                sorted(column.name for column in of.introspection.get_table_description(cursor, table)),
                sorted(
                    name
                    for name in of.introspection.get_constraints(cursor, table)
                    if not MADE_UP.search(name)
                ),
            )
            for table in of.introspection.table_names(cursor)
            if table.startswith(("datasets_", "judging_", "evalsite_", "accounts_"))
        }


MADE_UP = re.compile(r"_[0-9a-f]{8}(_|$)|_pkey$|_key$|_like$|^sqlite_|^fk_[0-9]+$|^__")
