"""Take the screenshots in docs/images from the sample projects: python -m tools.pictures

Takes each picture in English and Chinese, in both themes.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.serving import served

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = {"width": 1280, "height": 800}
COLOURS = 96
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
SAMPLES = {"en": "sample", "zh": "sample-zh"}  # slugs of the sample projects
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
TIMEOUT_MS = 60_000  # milliseconds
EVALUATIONS = 2  # the sample's, one of them finished
RUN = r"/runs/\d+/$"
FAULTY = [
    {"messages": [{"role": "user", "content": "2 + 2?"}], "ref_answer": "4"},
    {"messages": [{"role": "user", "content": ""}], "ref_answer": "Paris"},
    {"messages": [{"role": "robot", "content": "Hello"}]},
]


@dataclass(frozen=True)
class Visit:
    """A browser page in one language, for the sample project in that language."""

    page: Page
    site: str
    language: str

    def open(self, path: str) -> None:
        self.page.goto(f"{self.site}/p/{SAMPLES[self.language]}/{path}")

    def follow(self, link: str | re.Pattern[str], number: int = 0) -> None:
        """Open the first link whose URL matches the pattern, or of different ones the one with this number from 0."""
        pattern = re.compile(link)
        addresses = self.page.locator("main a[href]").evaluate_all("all => all.map(each => each.href)")
        self.page.goto(list(dict.fromkeys(filter(pattern.search, addresses)))[number])

    def show(self, heading: str) -> None:
        """Scroll the card with a heading whose id begins so to the top."""
        card = self.page.locator(f".card:has([id^='{heading}'])").first
        card.evaluate("card => scrollTo(0, card.getBoundingClientRect().top + scrollY - 16)")


def report(visit: Visit) -> None:
    visit.open("")
    visit.follow(RUN)
    visit.page.goto(f"{visit.page.url}report/")


def part_of_report(heading: str, *, run: int = 0, metric: int = 1) -> Callable[[Visit], None]:
    """The heading's part of the report on the sample's latest runs, 0 the last, and one of its metrics from 1."""

    def take(visit: Visit) -> None:
        visit.open("")
        visit.follow(RUN, run)
        visit.page.goto(f"{visit.page.url}report/?metric={metric}")
        visit.show(heading)

    return take


def comparisons(visit: Visit) -> None:
    visit.open("")
    visit.follow(RUN)
    visit.page.goto(visit.page.url + "judgements/?state=unsettled")
    visit.follow(r"/judgements/\d+/")
    visit.page.evaluate("scrollTo(0, 320)")  # to both answers and both verdicts


def findings(visit: Visit) -> None:
    rows = [json.dumps(row) for row in FAULTY]
    text = "\n".join([rows[0], rows[1], rows[0].replace('"4"}', '"4",}'), rows[2], rows[0]])
    visit.open("datasets/upload/")
    visit.page.locator("input[type=file]").set_input_files(
        {"name": "questions.jsonl", "mimeType": "application/json", "buffer": text.encode()}
    )
    visit.page.locator("main form button.primary").first.click()
    visit.page.locator("#findings").wait_for()


def editor(visit: Visit) -> None:
    visit.open("metrics/")
    visit.follow(r"/metrics/\d+/$")
    visit.page.locator("#preview mark").first.wait_for()


def desk(visit: Visit) -> None:
    visit.open("rating/")
    visit.follow(r"/desk/\d+/$")
    visit.page.locator("#reading button").click()


def judgement(visit: Visit) -> None:
    report(visit)
    visit.open("")
    visit.follow(RUN)
    visit.page.goto(visit.page.url + "judgements/?overridden=yes")
    visit.follow(r"/judgements/\d+/")


PICTURES: dict[str, Callable[[Visit], None]] = {
    "report": report,
    "findings": findings,
    "editor": editor,
    "desk": desk,
    "judgement": judgement,
    "pass-fail": part_of_report("judge-"),
    "scores": part_of_report("leaderboard-", metric=2),
    "categories": part_of_report("shares-", metric=3),
    "comparisons": comparisons,
    "checklists": part_of_report("criteria-", run=1),
    "rules": part_of_report("rules-", run=2),
}


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder)) as site,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for language in LOCALES:
            for name, prepare in PICTURES.items():
                for theme, taken in pictures(browser, site, language, prepare).items():
                    file = FOLDER / file_name(name, language, theme)
                    file.write_bytes(few_colours(taken))
                    print(f"{file.name}: {file.stat().st_size:,} bytes")
        browser.close()


def file_name(name: str, language: str, theme: Theme) -> str:
    """For example `report.png`, `report.zh.png`, `report.zh.dark.png`."""
    parts = [name, "" if language == "en" else language, "" if theme == "light" else theme]
    return ".".join([*filter(None, parts), "png"])


def pictures(
    browser: Browser, site: str, language: str, prepare: Callable[[Visit], None]
) -> dict[Theme, bytes]:
    context = browser.new_context(
        locale=LOCALES[language],
        viewport=SIZE,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    visit = Visit(page, site, language)
    finished(visit)
    prepare(visit)
    page.wait_for_load_state("networkidle")
    taken = {}
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        taken[theme] = page.screenshot()
    context.close()
    return taken


def finished(visit: Visit) -> None:
    """Wait until the sample's run has finished and people's ratings are there, which come last."""
    visit.open("evaluations/")
    while visit.page.locator("main table a").count() < EVALUATIONS:
        visit.page.wait_for_timeout(500)
        visit.page.reload()


def few_colours(png: bytes) -> bytes:
    """Reduce the number of colours: a third of the size, and text stays sharp."""
    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main()
