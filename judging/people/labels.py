"""Scales, values, choices, refusals and problems of ratings, in the reader's language."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from datasets.core.kinds import BOTH_BAD, CHECKLIST, SCORE, SPANS
from evalsite.names import with_names
from evalsite.rounding import significant
from judging.core.people.criteria import (
    CANNOT_TELL,
    MET,
    NOT_MET,
    Criterion,
    ValuesRefused,
    counted_value,
    marks_of,
)
from judging.core.people.gold import Accepted, accepted_values
from judging.core.people.item_outcomes import ItemKind
from judging.core.people.parts import LETTERS, parts_of, split
from judging.core.people.ranking import is_ranking, tiers
from judging.core.people.spans import MOST_SPANS, SEVERITIES, spans_of, sum_of
from judging.core.results_file.records import RefusedLine
from judging.core.values import Value, value_text
from judging.people.models import Rating

SEVERITY_NAMES: dict[int, tuple[str | Promise, str]] = {
    severity: (name, key)
    for severity, name, key in zip(
        SEVERITIES,
        (
            pgettext_lazy("severity", "Minor"),
            pgettext_lazy("severity", "Major"),
            pgettext_lazy("severity", "Critical"),
        ),
        "QWE",
        strict=True,
    )
}
"""The severities of spans with their names and keys."""

SCALES: dict[str, str | Promise] = {
    "five": gettext_lazy("1 to 5"),
    "ten": gettext_lazy("1 to 10"),
    "pass_fail": gettext_lazy("pass or fail"),
    "yes_no": gettext_lazy("yes or no"),
    "categories": gettext_lazy("categories"),
    "text": gettext_lazy("free text"),
    "steps": gettext_lazy("which is better, in five steps"),
    "gsb": gettext_lazy("good, same or bad (GSB)"),
    "rank": gettext_lazy("rank of the answers"),
    "spans": gettext_lazy("spans, each with a label and a severity"),
    "checklist": gettext_lazy("checklist: each criterion of the row's rubric"),
}

MARK_NAMES: dict[str, str | Promise] = {
    MET: gettext_lazy("met"),
    NOT_MET: gettext_lazy("not met"),
    CANNOT_TELL: gettext_lazy("can't tell"),
}


def problems_of(refused: ValuesRefused) -> dict[int, str]:
    """{criterion number: error message}."""
    sentences = {
        "missing": _("Please choose."),
        "not_on_scale": _("This value is not on the scale. Choose again."),
        "too_long": _("This is too long; at most 20,000 characters."),
        "too_many": _("That is too many spans; at most %(most)s.") % {"most": MOST_SPANS},
    }
    return {number: sentences.get(code, _("Unknown criterion.")) for number, code in refused.codes.items()}


def value_label(criterion: Criterion, value: Value, names: Sequence[str] = ()) -> str:
    """A value as text; `names`: of the answers that are compared or ranked, else A, B …"""
    if criterion.scale == "pass_fail" and isinstance(value, bool):
        return pgettext("verdict", "Pass") if value else pgettext("verdict", "Fail")
    if isinstance(value, bool):
        return pgettext("verdict", "Yes") if value else pgettext("verdict", "No")
    if criterion.scale == "mark" and value in MARK_NAMES:
        return str(MARK_NAMES[str(value)])
    if criterion.gives == CHECKLIST and isinstance(value, str):
        return _marks_label(value)
    if criterion.ranks and is_ranking(str(value), str(value).count(",") + 1):
        return " > ".join(" = ".join(tier) for tier in tiers(str(value), names or LETTERS))
    if criterion.marks_spans:
        return spans_label(value)
    text = str(value)
    if not criterion.compares:
        return text
    if len(names) > 1 and text in _NAMED:
        return with_names(str(_NAMED[text]), {"a": names[0], "b": names[1]})
    return str(_COMPARED.get(text, text))


def _marks_label(value: str) -> str:
    """How many criteria are met, and what else was said."""
    marks = marks_of(value)
    counts = [(name, marks.count(mark)) for mark, name in MARK_NAMES.items()]
    return " · ".join(f"{count} {name}" for name, count in counts if count)


def spans_label(value: Value) -> str:
    """The sum of spans and the first of their labels; a sum that a reviewer set as it is."""
    if not isinstance(value, str):
        return signed(value)
    spans = spans_of(value)
    labels = [f"{span.label} {signed(span.severity)}" for span in spans[:_LABELS_SHOWN]]
    labels += ["…"] if len(spans) > _LABELS_SHOWN else []
    return " · ".join(filter(None, (signed(sum_of(value)), ", ".join(labels))))


def spans_quoted(value: Value, content: str) -> str:
    """The sum of spans, and each with the passage of the answer that it marks."""
    spans = spans_of(str(value))
    quoted = [
        f"{span.label} {signed(span.severity)} “{Truncator(content[span.start : span.end]).chars(60)}”"
        for span in spans
    ]
    return " · ".join((signed(sum_of(str(value))), *quoted))


def signed(value: Value) -> str:
    """A number with a minus sign instead of a hyphen."""
    return value_text(value).replace("-", "−")


_LABELS_SHOWN = 4


def labelled_values(
    criteria: Mapping[int, Criterion], values: Mapping[int, Value], names: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Values by criterion number as (criterion's name, value as text), in the order of the criteria; of a checklist
    about a certain row each line."""
    labelled: list[tuple[str, str]] = []
    for number, criterion in sorted(criteria.items()):
        if number not in values:
            continue
        value = values[number]
        if criterion.gives == CHECKLIST and criterion.lines and isinstance(value, str):
            marks = split({number: criterion}, {number: value})
            labelled += [
                (part.criterion.name, value_label(part.criterion, marks[part.key]))
                for part in parts_of({number: criterion})
                if part.key in marks
            ]
        else:
            labelled.append((criterion.name, value_label(criterion, value, names)))
    return labelled


def labelled_gold(
    criteria: Mapping[int, Criterion], known: Mapping[int, Accepted], names: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Known answers as (criterion's name, expected value as text with the others that are accepted)."""
    labelled = []
    for number in sorted(known):
        accepted = known[number]
        values = accepted_values(accepted)
        first = labelled_values(criteria, {number: values[0]}, names)
        more = ", ".join(value_label(criteria[number], value, names) for value in values[1:])
        if more:
            both = _("%(value)s (also accepted: %(more)s)")
            first = [(name, both % {"value": text, "more": more}) for name, text in first]
        if isinstance(accepted, dict):
            sums = _("%(value)s (sum within %(n)s)")
            first = [(name, sums % {"value": text, "n": accepted["within"]}) for name, text in first]
        labelled += first
    return labelled


def kind_names(criterion: Criterion) -> dict[ItemKind, str]:
    """The names of the kinds of an item's outcome."""
    return {
        "agreed": _("agreed within a step") if criterion.gives in (SCORE, SPANS) else _("agreed"),
        "equal": _("agreed on a tie"),
        "near": _("nearly agreed"),
        "split": _("split"),
        "single": _("one rating only"),
    }


def labelled_kinds(
    criteria: Mapping[int, Criterion], kinds: Mapping[int, ItemKind]
) -> list[tuple[str, ItemKind, str]]:
    """The kinds of an item's outcome as (criterion's name, kind, its name), in the order of the criteria."""
    return [
        (criteria[number].name, kind, kind_names(criteria[number])[kind])
        for number, kind in sorted(kinds.items())
    ]


_COMPARED: dict[str, str | Promise] = {
    "A>>B": pgettext_lazy("verdict", "A much better"),
    "A>B": pgettext_lazy("verdict", "A better"),
    "A=B": pgettext_lazy("verdict", "Equal"),
    "B>A": pgettext_lazy("verdict", "B better"),
    "B>>A": pgettext_lazy("verdict", "B much better"),
    BOTH_BAD: pgettext_lazy("verdict", "Both bad"),
}
_NAMED: dict[str, str | Promise] = {
    "A>>B": gettext_lazy("%(a)s much better"),
    "A>B": gettext_lazy("%(a)s better"),
    "B>A": gettext_lazy("%(b)s better"),
    "B>>A": gettext_lazy("%(b)s much better"),
}


def values_of(text: str) -> dict[int, Any]:
    """A rating's values from their stored JSON, by criterion number."""
    return {int(number): value for number, value in json.loads(text or "{}").items()}


def counted_values(criteria: Mapping[int, Criterion], text: str) -> dict[int, Any]:
    """The same as they count in figures: of spans their sum."""
    return {
        number: counted_value(criteria[number], value) if number in criteria else value
        for number, value in values_of(text).items()
    }


_BAD_LINES: dict[str, str | Promise] = {
    "not_json": gettext_lazy("This line is not JSON."),
    "not_object": gettext_lazy("This line is not a JSON object."),
    "not_csv": gettext_lazy("Invalid CSV from here on: unclosed quotation mark."),
    "too_many_cells": gettext_lazy("This line has more cells than the header."),
    "values": gettext_lazy(
        "“values” must be an object that maps criteria to a number, a string, true or false."
    ),
    "rater": gettext_lazy("“rater” is missing."),
    "key": gettext_lazy("“key” is not a UUID; omit it if you have none."),
    "number": gettext_lazy("“%(name)s” must be a positive integer."),
    "text": gettext_lazy("“%(name)s” must be a string."),
    "moment": gettext_lazy("“at” is not a valid time such as 2026-05-31T12:00:00+08:00."),
    "no_rater": gettext_lazy("There is no rater called “%(name)s”. Add the person as a rater first."),
    "set_aside": gettext_lazy(
        "The ratings of “%(name)s” are set aside. Count them again first, on the rater's page."
    ),
    "no_item": gettext_lazy("The rated item is missing: add item, or row and candidate."),
    "no_such_item": gettext_lazy("The evaluation has no such item."),
    "no_candidate": gettext_lazy("The item has no answer of “%(name)s”."),
    "no_line": gettext_lazy("The row's rubric has no criterion with the id “%(name)s”."),
    "no_criterion": gettext_lazy("There is no criterion called “%(name)s”."),
    "value_missing": gettext_lazy("The criterion “%(name)s” is required."),
    "value_not_on_scale": gettext_lazy("The value of “%(name)s” is not on its scale."),
    "value_too_many": gettext_lazy("“%(name)s” has too many spans."),
    "value_too_long": gettext_lazy("The text of “%(name)s” is too long."),
    "spans": gettext_lazy("“spans” must be an object that maps criteria to lists of spans."),
    "side": gettext_lazy("“shown_first” must be 1 (candidate on the left), 2 (other on the left), or empty."),
    "test_closed": gettext_lazy("The item belongs to a test that was closed: no rating of it can be added."),
    "order": gettext_lazy("“shown_order” must list the item's candidates, each once, or be empty."),
    "rated_already": gettext_lazy("This rater has rated this item already; the earlier verdict stays."),
}


def bad_line_sentence(bad: RefusedLine) -> str:
    """Why a line of a ratings file was rejected."""
    return str(_BAD_LINES[bad.code]) % dict(bad.params)


_IMPORT_PROBLEMS: dict[str, str | Promise] = {
    "unexpected": gettext_lazy(
        "The import failed because of a server error. Details are in the server log; contact an administrator."
    ),
    "gone": gettext_lazy("The stored file is missing. Upload it again."),
    "away": gettext_lazy("The file storage did not respond. Upload the file again later."),
    "stopped": gettext_lazy("The import was cancelled."),
}


def import_problem(code: str) -> str:
    """Why a ratings file was not imported; '' without a problem."""
    return str(_IMPORT_PROBLEMS.get(code, ""))


@dataclass(frozen=True, slots=True)
class CriterionChoice:
    """A choice of a criterion: its index, the value as text, the label, and the keyboard shortcut."""

    place: int
    value: Value
    label: str
    key: str


def choices_of(criterion: Criterion) -> list[CriterionChoice]:
    """A criterion's choices in order. The shortcut of a number is the number itself (0 for ten, and of numbers in
    steps from 0 their step), of others their position."""
    return [
        CriterionChoice(place, value, value_label(criterion, value), _key(place, value, criterion))
        for place, value in enumerate(criterion.choices)
    ]


def _key(place: int, value: Value, criterion: Criterion) -> str:
    if value == BOTH_BAD and criterion.compares:
        return "0"
    if criterion.scale == "ten":
        return str(int(value) % 10)
    if criterion.gives == SCORE and criterion.choices[0] == 0:
        return str(place) if place < 10 else ""
    return str(place + 1) if place < 9 else ""


def scale_name(criterion: Criterion) -> str:
    """What people choose from."""
    if criterion.scale == "ends":
        ends = (significant(end, 6) for end in (criterion.min_score, criterion.max_score))
        return _("%(low)s to %(high)s") % dict(zip(("low", "high"), ends, strict=True))
    return str(SCALES[criterion.scale])


def refusal_sentence(code: str) -> str:
    """Error message of the rating page: what happened, what was saved, what to do."""
    sentences = {
        "closed": _("This evaluation was closed. Anything not submitted is kept as a draft."),
        "paused": _("Rating is paused. Anything not submitted is kept as a draft."),
        "left": _("You are no longer a rater here. Your input is kept as a draft; contact the organiser."),
        "test_closed": _(
            "The test that this item belongs to was closed: its ratings can't be changed or added."
        ),
        "qualification_over": _("The qualification is over: its ratings can't be changed any more."),
        "nothing_to_undo": _("Nothing to undo."),
        "key_used": _("This submission ID was already used. Reload the page and rate again."),
        "sides_differ": _("The answers were shown on different sides. Reload the page and rate again."),
        "skip_unexplained": _("Not skipped: choose a reason, and write it if it is another one."),
        "not_yet_rated": _("There is no rating to change yet. Reload the page."),
        "outdated": _(
            "You changed this rating in another tab; that change counts. What you entered now is kept: open “My "
            "earlier ratings” to submit it."
        ),
    }
    return sentences.get(code) or _("Something went wrong. Reload the page and try again.")


def saved_sentence(rating: Rating, key: UUID) -> str:
    """A note on how a submission with this `key` was stored; '' if there is nothing special."""
    if rating.kind == "undo":
        return _("Undone.")
    if rating.repeated and rating.key != key and rating.kind != "skip":
        return _(
            "You already rated this item, for example in another tab; that rating counts. To change it, open “My "
            "earlier ratings”: what you entered now is kept there."
        )
    if rating.extra and not rating.repeated:
        return _(
            "Saved. The time limit for this item had passed and someone else rated it too; both ratings are kept."
        )
    return ""
