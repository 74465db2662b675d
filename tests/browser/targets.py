"""The targets of a page that a fingertip misses."""

from __future__ import annotations

from playwright.sync_api import Page

FINGERTIP = 43.9  # pixels in each direction; line heights are fractions of one
# A row-link is as large as its row.
_LABELS = "label:is(.check, .scale-choice)"
_TARGETS = f"a[href]:not(.skip, .row-link), tr.linked, button, summary, textarea, .input, {_LABELS}"
_SMALL = """([targets, least]) => [...document.querySelectorAll(targets)]
  .filter((target) => target.checkVisibility())
  .filter((target) => {
    const { width, height } = target.getBoundingClientRect();
    return width < least || height < least;
  }).map((target) => {
    const { width, height } = target.getBoundingClientRect();
    return `${Math.round(width)}×${Math.round(height)} ${target.outerHTML.slice(0, 100)}`;
  })"""


def small_targets(page: Page, targets: str = _TARGETS) -> list[str]:
    """The visible targets smaller than a fingertip, with their sizes."""
    small: list[str] = page.evaluate(_SMALL, [targets, FINGERTIP])
    return small
