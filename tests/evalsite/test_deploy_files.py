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


def test_the_guide_names_every_file() -> None:
    guide = (ROOT / "docs" / "deploy.md").read_text()
    assert [
        path.name for path in FOLDER.iterdir() if path.name.split("@")[0].split(".")[0] not in guide
    ] == []
