"""The guides: pages of docs/ in English and Chinese, shown in the app."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from posixpath import dirname, relpath

from django.conf import settings
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from judging.markdown import html_of
from judging.rule_messages import reader_language

TASKS = (
    "start",
    "datasets",
    "metrics",
    "gallery",
    "runs",
    "looking",
    "aligning",
    "drill",
    "reports",
    "rating",
    "studies",
    "reviewing",
    "administration",
)
KINDS = ("pass-fail", "scores", "categories", "comparisons", "checklists", "rules")
REFERENCE = ("moving", "glossary", "prompts", "metrics-file", "results", "imports", "notebook", "webhooks")
TOOLS = (
    "servers",
    "lm-eval",
    "inspect",
    "promptfoo",
    "mt-bench",
    "alpaca-eval",
    "arena-hard",
    "openai-evals",
    "label-studio",
    "argilla",
    "every-eval-ever",
    "exports",
)
GUIDES = {
    name: {"en": f"{folder}{name}.md", "zh": f"{folder}{name}.zh.md"}
    for folder, names in {"": (*TASKS, *KINDS, *REFERENCE), "integrations/": TOOLS}.items()
    for name in names
}
_PICTURE = re.compile(r"^!\[(.+)\]\(images/([\w.-]+)\)$", re.MULTILINE)


def guide(page: str, language: str, address_of: Callable[[str], str]) -> tuple[str, SafeString]:
    """Title and HTML of a guide in the given language, or else in the user's. Links to guides become their URLs."""
    file = GUIDES[page].get(language) or GUIDES[page][reader_language()]
    title, _newline, text = _text(file).partition("\n")
    for other, files in GUIDES.items():
        address = "" if other == page else address_of(other)
        for code, name in files.items():
            text = text.replace(f"]({relpath(name, dirname(file) or '.')})", f"]({address}?in={code})")
    return title.removeprefix("# "), _html(text)


def titles(pages: Iterable[str]) -> dict[str, str]:
    """Each guide's title in the user's language."""
    headings = {page: _text(GUIDES[page][reader_language()]).partition("\n")[0] for page in pages}
    return {page: title.removeprefix("# ") for page, title in headings.items()}


def _html(text: str) -> SafeString:
    """Render a guide. Pictures are inserted between blocks of Markdown, which would turn them into links.

    Both themes' pictures are included and the style sheet shows one, since the app's theme may differ from the
    browser's.
    """
    before, *rest = _PICTURE.split(text)
    pictures = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    return format_html(
        "{}{}",
        html_of(before, wrapped=True),
        format_html_join(
            "",
            "<figure>{}{}</figure>{}",
            (
                (
                    _picture("in-light", file, alt),
                    _picture("in-dark", f"{file.removesuffix('.png')}.dark.png", alt),
                    html_of(after, wrapped=True),
                )
                for alt, file, after in pictures
            ),
        ),
    )


def _picture(shown: str, file: str, alt: str) -> SafeString:
    return format_html(
        '<img class="{}" src="{}" alt="{}" loading="lazy" width="1280" height="800">',
        shown,
        static(f"guide/{file}"),
        alt,
    )


def _text(file: str) -> str:
    return (settings.BASE_DIR / "docs" / file).read_text(encoding="utf-8")
