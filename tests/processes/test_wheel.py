"""The wheel, installed beside another package called `datasets` and used from an empty folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from evalsite import __version__
from judging.core.judges.scripted import ScriptedJudge
from tests.judging.evaluate_files import write_metrics, write_rows
from tests.migrated import migrated
from tests.processes.conftest import ended
from tests.starting import leashed

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[2]
SETTINGS = ("HOST", "PORT", "DATA_DIR", "DATABASE_URL", "DJANGO_SETTINGS_MODULE", "PYTHONPATH", "VIRTUAL_ENV")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built by the installed hatchling."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


class Installed:
    """An environment with the wheel and the installed dependencies, and an empty folder to work in."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.data = folder / "share" / "evalsite"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        self.bin = folder / "venv" / "bin"
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        (packages / "datasets.py").write_text("name = 'another package'\n")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.bin / "python"),
            "install",
            "-q",
            "--no-deps",
        ]
        subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
        self.environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        self.environment |= {"HOME": str(folder / "home"), "JUDGE_KEY": "k-123456"}
        self.environment |= {"XDG_DATA_HOME": str(folder / "share")}

    def run(self, *command: object) -> str:
        arguments = [str(self.bin / str(command[0])), *map(str, command[1:])]
        return subprocess.run(
            arguments, cwd=self.work, env=self.environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def serve(self, *options: str) -> subprocess.Popen[str]:
        command = leashed([str(self.bin / "evalsite"), "serve", *options])
        return subprocess.Popen(
            command,
            cwd=self.work,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


@pytest.fixture
def site(installed: Installed) -> Iterator[subprocess.Popen[str]]:
    migrated(installed.data / "evalsite.sqlite3")  # which takes half a minute on a busy machine
    with installed.serve("--no-sample") as process:
        yield process
        if process.poll() is None:
            process.kill()


def test_only_one_folder_and_the_client_enter_site_packages(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert names - {"evalsite_client.py"} == {"evalsite_site", f"evalsite-{__version__}.dist-info"}


def test_the_wheel_holds_what_git_holds_and_no_more(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    names = {name.removeprefix("evalsite_site/") for name in zipfile.ZipFile(wheel).namelist()}
    code = {
        name for name in names if not name.startswith(("staticfiles/", "evalsite-", "evalsite_client.py"))
    }
    source = re.compile(r"(evalsite|datasets|judging|templates|static)/(?!locale/).*")
    assert {name for name in listed.split("\n") if source.fullmatch(name)} - code == set()
    assert code - set(listed.split("\n")) == set()
    assert {"manage.py", "datasets/samples/sample.jsonl", "docs/start.zh.md"} <= code
    assert "evalsite/locale/zh_Hans/LC_MESSAGES/django.mo" in code
    assert [name for name in names if re.fullmatch(r"staticfiles/css/\w+\.[0-9a-f]{12}\.css\.gz", name)]


def test_the_client_is_imported_without_the_site(installed: Installed) -> None:
    code = "import evalsite_client, sys; print('django' in sys.modules, evalsite_client.Client.__name__)"
    assert installed.run("python", "-c", code) == "False Client\n"


def test_the_other_package_stays_what_it_is(installed: Installed) -> None:
    assert installed.run("python", "-c", "import datasets; print(datasets.name)") == "another package\n"
    assert installed.run("evalsite", "--version") == f"evalsite {__version__}\n"


def test_a_site_starts_from_the_wheel_judges_and_reports(
    installed: Installed, site: subprocess.Popen[str]
) -> None:
    address, data = started(site)
    assert data == installed.data
    assert 8000 <= httpx.URL(address).port < 8020  # type: ignore[operator]
    with ScriptedJudge(reply="Score: [[8]]", api_key="k-123456") as judge:
        files = (write_rows(installed.work, 3), "--metrics", write_metrics(installed.work, judge.url))
        document = json.loads(installed.run("evalsite", "evaluate", *files, "--out", "out", "--json"))
    assert (document["judgements"], document["scored"]) == (3, 3)
    report = json.loads(installed.run("evalsite", "report", document["run"], "--json"))
    assert report["candidates"]["alpha"]["quality"]["mean"] == 8
    with httpx.Client(base_url=address, follow_redirects=True, timeout=60, trust_env=False) as client:
        page = client.get("/")
        (styles,) = re.findall(r'href="(/static/css/site\.[0-9a-f]{12}\.css)"', page.text)
        assert (page.status_code, client.get(styles).status_code) == (200, 200)
    site.send_signal(signal.SIGINT)
    assert ended(site, 30) == 0
    assert sorted(path.name for path in installed.work.iterdir()) == ["metrics.yaml", "out", "rows.jsonl"]


def started(site: subprocess.Popen[str]) -> tuple[str, Path]:
    """The address and data folder that `serve` prints."""
    assert site.stdout
    lines = iter(site.stdout)
    address = next(line for line in lines if "evalsite is ready" in line).split()[-1]
    return address, Path(next(line for line in lines if "Data folder" in line).partition(": ")[2].strip())
