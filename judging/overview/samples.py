"""Which of the sample projects a reader is shown."""

from __future__ import annotations

from collections.abc import Collection

SLUGS = {"en": "sample", "zh": "sample-zh"}  # language → project


def samples_in_other_languages(projects: Collection[str], language: str) -> list[str]:
    """Slugs of the samples that a reader need not see, as the one in the reader's language is among the projects."""
    own = SLUGS[language]
    return [slug for slug in SLUGS.values() if slug != own and own in projects]
