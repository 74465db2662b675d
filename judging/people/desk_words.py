"""What the desk says: refusals, problems of values, choices, reasons for skipping; in the reader's language."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from judging.core.people.criteria import BOTH_BAD, Criterion
from judging.core.values import Value
from judging.people.models import Rating
from judging.people.rating import SKIP_REASONS


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a criterion: its place among them, the value as text, what is written on it, and the key for it."""

    place: int
    value: Value
    label: str
    key: str


def choices_of(criterion: Criterion) -> list[Choice]:
    """What a criterion offers, in order. Numbers have themselves for a key (ten: 0), others their place."""
    return [
        Choice(place, value, value_name(criterion, value), _key(place, value, criterion))
        for place, value in enumerate(criterion.choices)
    ]


def _key(place: int, value: Value, criterion: Criterion) -> str:
    if value == BOTH_BAD and criterion.compares:
        return "0"
    if criterion.scale == "ten":
        return str(int(value) % 10)
    return str(place + 1) if place < 9 else ""


def value_name(criterion: Criterion, value: Value) -> str:
    """A value as people read it."""
    if isinstance(value, bool):
        return pgettext("verdict", "Yes") if value else pgettext("verdict", "No")
    return _compared().get(str(value), str(value)) if criterion.compares else str(value)


def _compared() -> dict[str, str]:
    return {
        "A>>B": pgettext("verdict", "A much better"),
        "A>B": pgettext("verdict", "A better"),
        "A=B": pgettext("verdict", "Equal"),
        "B>A": pgettext("verdict", "B better"),
        "B>>A": pgettext("verdict", "B much better"),
        BOTH_BAD: pgettext("verdict", "Both bad"),
    }


def skip_reasons() -> list[tuple[str, str]]:
    """Codes and names, in order."""
    names = {
        "unclear": _("The question is unclear"),
        "no_knowledge": _("I know too little about this"),
        "broken": _("Something is broken or unreadable"),
        "offensive": _("I would rather not read this"),
        "other": _("Another reason (say it in the comment)"),
    }
    return [(code, names[code]) for code in SKIP_REASONS]


def refusal_sentence(code: str) -> str:
    """Why the desk could not do it, what was kept, what to do."""
    sentences = {
        "closed": _("This evaluation was closed. What you had not submitted by then is kept as a draft."),
        "left": _("You no longer take part here. What you gave is kept as a draft; ask who organises it."),
        "nothing_to_undo": _("There is nothing to take back."),
        "key_used": _("This was sent before as something else. Reload the page and give it again."),
        "sides_differ": _(
            "The answers stood on other sides here. Reload the page and give the verdict again."
        ),
        "not_yet_rated": _("There is no verdict to change here yet. Reload the page."),
        "outdated": _("You changed this verdict elsewhere meanwhile. Reload the page to see it."),
    }
    return sentences.get(code) or _("That could not be done. Reload the page and try again.")


def value_problem(code: str) -> str:
    """Why a value was not taken."""
    sentences = {
        "missing": _("Please choose."),
        "not_on_scale": _("This is not on the scale; choose again."),
        "too_long": _("This is too long; at most 20,000 characters."),
    }
    return sentences.get(code) or _("This is not asked here.")


def saved_sentence(rating: Rating, key: UUID) -> str:
    """What is worth saying of what was stored for what was sent under `key`; '' for the usual."""
    if rating.kind == "undo":
        return _("Taken back.")
    if rating.repeated and rating.key != key and rating.kind != "skip":
        return _(
            "You already gave a verdict here, for example in another tab. That one counts. To change it, open it "
            "under “Earlier ones”."
        )
    if rating.extra and not rating.repeated:
        return _(
            "Saved. Your time for this item was over and somebody else had taken it: both verdicts are kept."
        )
    return ""
