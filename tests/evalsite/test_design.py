"""Design tokens have enough contrast in both themes, and the style sheet is small."""

import gzip
import re

import pytest
from django.conf import settings

CSS = settings.BASE_DIR / "static" / "css"
TOKENS = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}, #\w{6})\)", (CSS / "tokens.css").read_text()))
ON_EVERY_GROUND = ("ink", "ink-2", "ink-3", "accent", "accent-strong", "bad", "warn", "info")


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as defined in WCAG 2."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(front: str, back: str, theme: int) -> float:
    a, b = (luminance(TOKENS[name].split(", ")[theme]) for name in (front, back))
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "surface", "sunken"])
@pytest.mark.parametrize("text", ON_EVERY_GROUND)
def test_text_passes_aa_on_every_ground(text: str, ground: str, theme: int) -> None:
    assert contrast(text, ground, theme) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("tone", ["accent", "bad", "warn", "info"])
def test_a_tone_and_ordinary_text_pass_aa_on_its_soft_ground(tone: str, theme: int) -> None:
    assert contrast(tone, f"{tone}-soft", theme) >= 4.5
    assert contrast("ink-2", f"{tone}-soft", theme) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_a_primary_button_passes_aa(theme: int) -> None:
    assert min(contrast("accent-ink", "accent", theme), contrast("accent-ink", "accent-strong", theme)) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("mark", [*(f"series-{n}" for n in range(1, 7)), "line-strong"])
def test_marks_and_the_edges_of_fields_are_seen(mark: str, theme: int) -> None:
    assert min(contrast(mark, "paper", theme), contrast(mark, "surface", theme)) >= 3


def test_the_style_sheets_are_small_on_the_wire() -> None:
    assert (
        sum(len(gzip.compress(path.read_bytes())) for path in CSS.glob("*.css")) <= 20_000
    )  # each file compressed separately, as served
