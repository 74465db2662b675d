"""The pages on servers and exports name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from judging.core.metrics_file import read_metrics_file
from judging.endpoints.presets import PRESETS
from judging.transfer.export.files import FORMS

FOLDER = Path(__file__).parents[2] / "docs" / "integrations"


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["servers.md", "servers.zh.md"])
def test_every_server_is_listed_with_address_and_protocol(name: str) -> None:
    listed = re.findall(r"^\| .+? \| `(.+?)` \| `(.+?)` \|", text_of(name), re.MULTILINE)
    assert listed == [(preset.url, preset.protocol) for preset in PRESETS]


@pytest.mark.parametrize("name", ["servers.md", "servers.zh.md"])
def test_the_metrics_file_of_the_page_is_one(name: str) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", text_of(name), re.DOTALL)
    (metric,) = read_metrics_file(text, FOLDER).metrics
    assert metric.judges[0].url == "http://127.0.0.1:11434/v1"


@pytest.mark.parametrize("name", ["exports.md", "exports.zh.md"])
def test_every_form_of_an_export_is_listed(name: str) -> None:
    rows = re.findall(r"^\| (`.+?) \|", text_of(name), re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(rows[1:])) == list(FORMS)
