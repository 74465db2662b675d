"""Localized messages for lint findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy, ngettext_lazy

from judging.core.lint import LintFinding
from judging.sandbox_messages import localized

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

SENTENCES: dict[str, StrPromise] = {
    "syntax": gettext_lazy("The template can't be read: %(message)s"),
    "render_error": ngettext_lazy(
        "The template fails in %(rows)s row: %(message)s",
        "The template fails in %(rows)s rows: %(message)s",
        "rows",
    ),
    "unknown_name": gettext_lazy("No row has “%(name)s”."),
    "name_missing": ngettext_lazy(
        "“%(name)s” is missing in %(rows)s row. Ask first whether it “is defined”, or give it a default.",
        "“%(name)s” is missing in %(rows)s rows. Ask first whether it “is defined”, or give it a default.",
        "rows",
    ),
    "name_none": ngettext_lazy(
        "“%(name)s” has no value (None) in %(rows)s row, and the prompt uses it there.",
        "“%(name)s” has no value (None) in %(rows)s rows, and the prompt uses it there.",
        "rows",
    ),
    "name_falsy": ngettext_lazy(
        "“%(name)s” is 0, false or empty in %(rows)s row, which the template treats as having no reference. "
        "Test “%(name)s is not none” instead.",
        "“%(name)s” is 0, false or empty in %(rows)s rows, which the template treats as having no reference. "
        "Test “%(name)s is not none” instead.",
        "rows",
    ),
    "blank_render": ngettext_lazy(
        "The prompt of %(rows)s row is blank.", "The prompts of %(rows)s rows are blank.", "rows"
    ),
    "response_unused": gettext_lazy(
        "The template never mentions the response: the judge does not see what it judges. "
        "Add {{ response.content }}, unless the preprocess script puts the answer elsewhere."
    ),
}
OF_PREPROCESS: dict[str, StrPromise] = {
    "syntax": gettext_lazy("The preprocess script can't be loaded: %(message)s"),
    "render_error": ngettext_lazy(
        "The preprocess script fails in %(rows)s row: %(message)s",
        "The preprocess script fails in %(rows)s rows: %(message)s",
        "rows",
    ),
}
_SUGGESTED = gettext_lazy("No row has “%(name)s”. Did you mean “%(suggestion)s”?")


def sentence(found: LintFinding) -> str:
    """The message for a finding, with advice."""
    text = SENTENCES[found.code]
    if found.name == "preprocess":
        text = OF_PREPROCESS.get(found.code, text)
    if found.suggestion is not None:
        text = _SUGGESTED
    return text % {
        "name": found.name,
        "rows": found.rows,
        "suggestion": found.suggestion,
        "message": localized(found.message),
    }
