"""The files of docs/deploy.md are valid systemd and YAML files and agree with the code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "deploy"
UNITS = sorted(FOLDER.glob("*.service"))
COMMANDS = {path.stem for path in ROOT.glob("*/management/commands/*.py")}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return found


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if not verify:
        pytest.skip("there is no systemd-analyze on this machine")
    # The program is not installed here; everything else must be valid for systemd.
    text = unit.read_text().replace("/opt/evalsite/.venv/bin/python", "/bin/true")
    (tmp_path / unit.name).write_text(text)
    done = subprocess.run([verify, "verify", str(tmp_path / unit.name)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_every_command_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"(?:manage\.py|\"evalsite\",)[\s\",]+([a-z_]+)", path.read_text()))
    assert named <= COMMANDS


def test_every_setting_that_compose_gives_is_explained() -> None:
    known = set(re.findall(r"^\| `([A-Z0-9_]+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))
    assert set(compose()["x-evalsite"]["environment"]) <= known


def test_every_volume_and_service_that_compose_needs_is_there() -> None:
    result = compose()
    volumes = {use.split(":")[0] for one in result["services"].values() for use in one.get("volumes", [])}
    needed = {name for one in result["services"].values() for name in one.get("depends_on", {})}
    assert volumes == set(result["volumes"])
    assert needed <= set(result["services"])


def test_the_image_is_locked_unprivileged_and_watched() -> None:
    text = (FOLDER / "Containerfile").read_text()
    assert "--require-hashes" in text
    made = re.search(r"useradd .*--uid (\d+)", text)
    assert made is not None
    assert text.index(f"\nUSER {made[1]}\n") > text.index("RUN pip install")
    assert "HEALTHCHECK" in text


def test_the_image_holds_the_wheel_alone_and_writes_only_its_data() -> None:
    built = (FOLDER / "Containerfile").read_text().rpartition("\nFROM ")[2]
    assert "COPY . ." not in built
    assert "pip install --no-deps /tmp/wheel/*.whl" in built
    site, data = compose()["x-evalsite"], json.loads(re.findall(r"^VOLUME (.*)", built, re.MULTILINE)[0])
    assert (site["read_only"], site["tmpfs"]) == (True, ["/tmp"])
    assert [volume.partition(":")[2] for volume in site["volumes"]] == data


def test_every_path_that_the_image_copies_exists_and_is_not_left_out() -> None:
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", (FOLDER / "Containerfile").read_text(), re.MULTILINE)
    copied = [path for line in lines for path in line.split()]
    left_out = (ROOT / ".dockerignore").read_text().split()
    assert {"requirements-build.txt", "."} <= set(copied)
    assert [path for path in copied if path in left_out or not (ROOT / path).exists()] == []
    site = compose()["x-evalsite"]["build"]
    assert (FOLDER / site["context"]).resolve() == ROOT
    assert (ROOT / site["dockerfile"]).is_file()


def test_the_image_is_built_from_nothing_that_stays_out_of_it() -> None:
    """What the wheel is made of, and never data or the environment of the machine."""
    left_out = (ROOT / ".dockerignore").read_text().split()
    needed = ("pyproject.toml", "README.md", "LICENSE", "requirements.in", "tools", "docs", "manage.py")
    assert not set(left_out) & set(needed)
    assert {".git", ".venv", "var"} <= set(left_out)


def test_the_image_is_locked_to_the_versions_of_the_checkout() -> None:
    """`pip install --no-deps` of the wheel relies on the lock files of all that it needs."""
    installed = re.findall(r"-r /tmp/(requirements\S+)", (FOLDER / "Containerfile").read_text())
    locked = {
        name for file in installed for name in re.findall(r"^([\w.-]+)==", (ROOT / file).read_text(), re.M)
    }
    needed = {
        re.split(r"[\[<>=~! ]", line)[0].lower()
        for file in ("requirements.in", "requirements-scale.in")
        for line in (ROOT / file).read_text().splitlines()
        if line and not line.startswith(("#", "-"))
    }
    assert needed - locked == set()


def test_the_guide_names_every_file() -> None:
    guide = (ROOT / "docs" / "deploy.md").read_text()
    assert [
        path.name for path in FOLDER.iterdir() if path.name.split("@")[0].split(".")[0] not in guide
    ] == []
