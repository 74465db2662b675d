"""What a change of a running study does, as sentences to confirm."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import number, percent
from judging.people.changes import StudyChange
from judging.people.models import Evaluation
from judging.people.progress import overall


def effects_of(evaluation: Evaluation, change: StudyChange) -> list[str]:
    """What a change does, as sentences; empty if it changes nothing."""
    sentences = []
    items = evaluation.items_count
    if change.rows:
        text = ngettext(
            "%(n)s row is drawn and added; it comes after the items that are there.",
            "%(n)s rows are drawn and added; they come after the items that are there.",
            change.rows,
        )
        sentences.append(text % {"n": number(change.rows)})
    if change.overlap > evaluation.overlap:
        sentences.append(
            _(
                "Each item gets %(n)s raters instead of %(before)s: %(more)s ratings more for the items that are there."
            )
            % {
                "n": change.overlap,
                "before": evaluation.overlap,
                "more": number(items * (change.overlap - evaluation.overlap)),
            }
        )
        if evaluation.raters.filter(left_at=None).count() < change.overlap:
            sentences.append(_("There are fewer raters than that: add some, or items will stay unfinished."))
    if change.gold_share != evaluation.gold_share:
        sentences.append(
            _("From now on %(share)s of a rater's items are gold instead of %(before)s.")
            % {"share": percent(change.gold_share, 0), "before": percent(evaluation.gold_share, 0)}
        )
    if sentences:
        sentences.append(kept_sentence(evaluation))
    return sentences


def kept_sentence(evaluation: Evaluation) -> str:
    """What a change does to the ratings so far: nothing."""
    ratings = overall(evaluation).ratings
    text = ngettext(
        "%(n)s rating so far is kept and counts as before.",
        "%(n)s ratings so far are kept and count as before.",
        ratings,
    )
    return text % {"n": number(ratings)}
