"""Localized messages for lint findings."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from judging.core.lint import LintFinding
from judging.sandbox_messages import localized


def sentence(found: LintFinding) -> str:
    """The message for a finding, with advice."""
    words = {
        "syntax": _syntax,
        "render_error": _render_error,
        "unknown_name": _unknown_name,
        "name_missing": _name_missing,
        "name_none": _name_none,
        "name_falsy": _name_falsy,
        "blank_render": _blank_render,
        "response_unused": _response_unused,
    }
    return words[found.code](found)


def _syntax(found: LintFinding) -> str:
    if found.name == "preprocess":
        return _("The preprocess script can't be loaded: %(message)s") % {"message": localized(found.message)}
    return _("The template can't be read: %(message)s") % {"message": localized(found.message)}


def _render_error(found: LintFinding) -> str:
    if found.name == "preprocess":
        text = ngettext(
            "The preprocess script fails in %(rows)s row: %(message)s",
            "The preprocess script fails in %(rows)s rows: %(message)s",
            found.rows,
        )
    else:
        text = ngettext(
            "The template fails in %(rows)s row: %(message)s",
            "The template fails in %(rows)s rows: %(message)s",
            found.rows,
        )
    return text % {"rows": found.rows, "message": localized(found.message)}


def _unknown_name(found: LintFinding) -> str:
    if found.suggestion is None:
        return _("No row has “%(name)s”.") % {"name": found.name}
    return _("No row has “%(name)s”. Did you mean “%(suggestion)s”?") % {
        "name": found.name,
        "suggestion": found.suggestion,
    }


def _name_missing(found: LintFinding) -> str:
    text = ngettext(
        "“%(name)s” is missing in %(rows)s row. Ask first whether it “is defined”, or give it a default.",
        "“%(name)s” is missing in %(rows)s rows. Ask first whether it “is defined”, or give it a default.",
        found.rows,
    )
    return text % {"name": found.name, "rows": found.rows}


def _name_none(found: LintFinding) -> str:
    text = ngettext(
        "“%(name)s” has no value (None) in %(rows)s row, and the prompt uses it there.",
        "“%(name)s” has no value (None) in %(rows)s rows, and the prompt uses it there.",
        found.rows,
    )
    return text % {"name": found.name, "rows": found.rows}


def _name_falsy(found: LintFinding) -> str:
    text = ngettext(
        "“%(name)s” is 0, false or empty in %(rows)s row, which the template treats as having no reference. "
        "Test “%(name)s is not none” instead.",
        "“%(name)s” is 0, false or empty in %(rows)s rows, which the template treats as having no reference. "
        "Test “%(name)s is not none” instead.",
        found.rows,
    )
    return text % {"name": found.name, "rows": found.rows}


def _blank_render(found: LintFinding) -> str:
    text = ngettext(
        "The prompt of %(rows)s row is blank.", "The prompts of %(rows)s rows are blank.", found.rows
    )
    return text % {"rows": found.rows}


def _response_unused(found: LintFinding) -> str:
    return _(
        "The template never mentions the response: the judge does not see what it judges. "
        "Add {{ response.content }}, unless the preprocess script puts the answer elsewhere."
    )
