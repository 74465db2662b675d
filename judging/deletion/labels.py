"""What goes with a deleted object, and what an archived one holds, in words."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import ngettext_lazy

from evalsite.templatetags.show import number

_TEXTS: dict[str, Promise | str] = {
    "datasets": ngettext_lazy("%(n)s data set", "%(n)s data sets", "count"),
    "versions": ngettext_lazy("%(n)s version", "%(n)s versions", "count"),
    "rows": ngettext_lazy("%(n)s row", "%(n)s rows", "count"),
    "answers": ngettext_lazy("%(n)s answer", "%(n)s answers", "count"),
    "runs": ngettext_lazy("%(n)s run", "%(n)s runs", "count"),
    "evaluations": ngettext_lazy("%(n)s human evaluation", "%(n)s human evaluations", "count"),
    "judgements": ngettext_lazy("%(n)s judgement", "%(n)s judgements", "count"),
    "ratings": ngettext_lazy("%(n)s rating", "%(n)s ratings", "count"),
    "overrides": ngettext_lazy("%(n)s override", "%(n)s overrides", "count"),
    "comments": ngettext_lazy("%(n)s comment", "%(n)s comments", "count"),
    "marks": ngettext_lazy(
        "%(n)s tag, assignment or exclusion", "%(n)s tags, assignments and exclusions", "count"
    ),
    "notes": ngettext_lazy("%(n)s note on answers", "%(n)s notes on answers", "count"),
    "links": ngettext_lazy("%(n)s report link", "%(n)s report links", "count"),
    "derived": ngettext_lazy("%(n)s computed result", "%(n)s computed results", "count"),
    "files": ngettext_lazy("%(n)s stored file", "%(n)s stored files", "count"),
}
"""By kind of contents (kinds.CONTENTS)."""


def content_texts(counts: Mapping[str, int]) -> list[str]:
    """Each kind of contents with its number."""
    return [str(_TEXTS[name] % {"n": number(count), "count": count}) for name, count in counts.items()]
