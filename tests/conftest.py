"""Shared fixtures. Users: Alice (analyst), Bob (reviewer), Rita (rater), Adam (admin), Charlie (other project)."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.test import Client, TransactionTestCase
from django.utils import translation
from hypothesis import HealthCheck, settings
from pytest_django import DjangoDbBlocker

from evalsite.accounts.models import Membership, Project, Role, User
from tests.migrated import drop_template, migrated, migrated_template

# Searching all imported modules for garbage at Python's usual rate takes 3 % of the suite's time.
gc.set_threshold(10_000, 20, 50)

PASSWORD = "correct horse battery"
ClientOf = Callable[[User], Client]


def person(name: str, **more: object) -> User:
    return User.objects.create_user(username=name, password=PASSWORD, first_name=name.title(), **more)


def member(name: str, project: Project, role: Role) -> User:
    user = person(name)
    Membership.objects.create(user=user, project=project, role=role)
    return user


PARTS = {"timed": ("timed",), "processes": ("browser", "processes"), "together": ()}  # part → its markers
OF_ANOTHER_PART = re.compile(r"^pytestmark = .*\bmark\.(?:timed|browser|processes)\b", re.MULTILINE)
TESTS = Path(__file__).parent
BROWSER = TESTS / "browser"  # its conftest marks all tests there

DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "processes"}
ALIKE_ON_ALL_DATABASES = {  # folder: the names of its test files; *: all that it holds
    "browser": "*",
    "datasets": "api",
    "datasets/core": "*",
    "datasets/versions": "round_trip",
    "datasets/views": "attach file_import format_guide repair row_edit upload version",
    "evalsite": "access language_and_colours mcp",
    "evalsite/accounts": "create_token invitations local_mode log_api members passwords projects sign_in "
    "single_sign_on tokens",
    "evalsite/api": "client description description_holds errors every_address",
    "evalsite/web": "*",
    "judging": "drafts guides",
    "judging/core": "*",
    "judging/endpoints": "failing_servers hostile_servers",
    "judging/engine": "hostile_scripts rule_effects",
    "judging/evidence": "*",
    "judging/management": "evaluate_messages evaluate_pairs",
    "judging/metrics": "gallery gallery_walk metrics prompt_draft transfer",
    "judging/metrics/editor": "*",
    "judging/metrics/rule_editor": "*",
    "judging/people": "blind_side presets rating_export two_files",
    "judging/people/inviting": "lists",
    "judging/people/views": "desk evaluations",
    "judging/reports": "ci files notebook_docs outcomes people_result published_results sharing",
    "judging/reports/comparison": "changes views",
    "judging/review": "columns filter_menu grid permissions rule_lines saved_views",
    "judging/rubrics": "drafts",
    "judging/runs": "new_run",
    "judging/status": "*",
    "judging/transfer/export": "files other_tools",
    "judging/trust": "improving judges kinds_drawn labels_there suggestions whole_path",
    "processes": "base_path client evaluate hostile_judges serve slow_clients supervisor",
}
ONE_IS_ENOUGH = {"who": "adam", "protocol": "chat"}  # parameters that another database does not depend on
ALIKE_BY_NAME = ("page.py", "pages.py", "_command.py")

# Under CI, examples are the same every time, so that only a code change can make a test fail; developers get new ones.
# No deadline: how long an example takes depends on the machine.
_always = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("home", **_always)
settings.register_profile("ci", **_always, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("EVALSITE_CI") == "1" else "home")


def _give_rows_the_other_way_round(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Reverse the row order of unordered queries on SQLite, to expose tests and code that rely on it."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA reverse_unordered_selects = ON")


connection_created.connect(_give_rows_the_other_way_round)

KEPT_TABLES = {"django_migrations", "django_content_type", "auth_permission"}


def _delete_all_rows(test: TransactionTestCase) -> None:
    """Empty the tables after a transactional test. Django's flush truncates every table and recreates all permissions,
    which takes 2 s on PostgreSQL instead of 0.05 s."""
    for alias in test._databases_names(include_mirrors=False):
        connection = connections[alias]
        tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
        with transaction.atomic(using=alias), connection.cursor() as cursor:
            for table in sorted(tables - KEPT_TABLES):
                audit_on_postgres = table == "evalsite_auditentry" and connection.vendor == "postgresql"
                verb = "TRUNCATE" if audit_on_postgres else "DELETE FROM"  # a trigger rejects DELETE
                cursor.execute(f"{verb} {connection.ops.quote_name(table)}")


TransactionTestCase._fixture_teardown = _delete_all_rows


MAY_BE_SKIPPED = (
    "real data set",
    "on this database",
)  # what CI may lack, and what runs in CI's other pass
_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Under CI, record every test skipped for a reason not in MAY_BE_SKIPPED."""
    if report.skipped and os.environ.get("EVALSITE_CI") == "1" and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not any(allowed in reason for allowed in MAY_BE_SKIPPED):
            _skipped.append(f"{report.nodeid}: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        drop_template()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _skipped:
        terminalreporter.write_line(f"SKIPPED, but should run: {line}", red=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--other-database", action="store_true", help="only what may differ on another database (.ci/run)"
    )
    parser.addoption("--part", choices=tuple(PARTS), help="one part of `make test` (tools/tests.py)")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without tests of the selection: importing all files would take each process seconds."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    if config.getoption("other_database") and is_alike(collection_path):
        return True
    part = config.getoption("part")
    if not part:
        return None
    if BROWSER in collection_path.parents:
        return None if part == "processes" else True
    text = collection_path.read_text()
    markers = PARTS[part]
    if markers:
        return None if any(f"mark.{marker}" in text for marker in markers) else True
    return OF_ANOTHER_PART.search(text) is not None or None


@pytest.hookimpl(trylast=True)  # after tests/browser/conftest.py has added its markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run browser tests last: Playwright's event loop keeps running in this thread, where some tests run one of their
    own. None of the part `processes` does, so there the longest file starts first. Apply the selection options."""
    axe_first = config.getoption("part") == "processes"

    def order(item: pytest.Item) -> tuple[bool, bool]:
        axe = item.nodeid.startswith("tests/browser/test_axe.py")
        return item.nodeid.startswith("tests/browser/") and not (axe and axe_first), not axe

    items.sort(key=order)
    if config.getoption("other_database"):
        select(items, config, may_differ)
    if part := config.getoption("part"):
        select(items, config, lambda item: part_of(item) == part)


def select(items: list[pytest.Item], config: pytest.Config, is_wanted: Callable[[pytest.Item], bool]) -> None:
    """Deselect all other tests."""
    wanted, others = [], []
    for item in items:
        (wanted if is_wanted(item) else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = wanted


def may_differ(item: pytest.Item) -> bool:
    """Return whether the result may depend on the database. Not for tests without one, nor for tests of pages, forms,
    commands and figures whose queries are covered by other tests: those of services and frames, and
    test_every_address.py, which opens every page as an administrator."""
    uses = item.get_closest_marker("django_db") or DATABASE_FIXTURES & set(getattr(item, "fixturenames", ()))
    params = item.callspec.params if hasattr(item, "callspec") else {}
    is_repeated = any(params.get(name, enough) != enough for name, enough in ONE_IS_ENOUGH.items())
    return bool(uses) and not is_repeated and item.get_closest_marker("alike") is None


def is_alike(path: Path) -> bool:
    """Whether the tests of a file give the same results on all databases."""
    folder = path.parent.relative_to(TESTS)
    names = ALIKE_ON_ALL_DATABASES.get(folder.as_posix(), "").split()
    below_alike = any(
        ALIKE_ON_ALL_DATABASES.get(parent.as_posix()) == "*" for parent in (folder, *folder.parents)
    )
    return below_alike or path.name.endswith(ALIKE_BY_NAME) or path.stem.removeprefix("test_") in names


def part_of(item: pytest.Item) -> str:
    """The part of `make test` that runs this test."""
    return next(
        part for part, markers in PARTS.items() if not markers or any(map(item.get_closest_marker, markers))
    )


@pytest.fixture(scope="session")
def django_db_keepdb(request: pytest.FixtureRequest, django_db_modify_db_settings: None) -> bool:
    """Give each test process a copy of one migrated database instead of running the migrations."""
    if connection.vendor == "sqlite":
        migrated(Path(connection.settings_dict["TEST"]["NAME"]))
    else:
        connection.settings_dict["TEST"]["TEMPLATE"] = migrated_template()
    return connection.vendor == "sqlite" or bool(request.config.getvalue("reuse_db"))


@pytest.fixture(autouse=True)
def _language_of_nobody() -> None:
    """Activate English: an earlier request may have left another language active in this thread."""
    translation.activate("en")


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database for fixtures of module scope: their rows are there for all tests of a module, each of which rolls
    back only its own changes. Not for modules with transactional tests."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture
def project(db: None) -> Project:
    return Project.objects.create(name="Physics", slug="physics")


@pytest.fixture
def alice(project: Project) -> User:
    return member("alice", project, Role.ANALYST)


@pytest.fixture
def bob(project: Project) -> User:
    return member("bob", project, Role.REVIEWER)


@pytest.fixture
def rita(project: Project) -> User:
    return member("rita", project, Role.RATER)


@pytest.fixture
def adam(project: Project) -> User:
    return member("adam", project, Role.ADMIN)


@pytest.fixture
def charlie(db: None) -> User:
    """Admin of another project, not a member of this one."""
    return member("charlie", Project.objects.create(name="Elsewhere", slug="elsewhere"), Role.ADMIN)


@pytest.fixture
def olga(db: None) -> User:
    """A superuser."""
    return person("olga", is_superuser=True)


@pytest.fixture
def cast(alice: User, bob: User, rita: User, adam: User, charlie: User, olga: User) -> dict[str, User]:
    """All users by username."""
    return {user.username: user for user in (alice, bob, rita, adam, charlie, olga)}


@pytest.fixture
def client_of() -> ClientOf:
    """Return a function that signs a user in and returns the test client."""

    def signed_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return signed_in
