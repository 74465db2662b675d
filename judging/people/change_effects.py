"""What a change of a running study does, as sentences. Where there are any, pages and the API make the change only once
it is confirmed."""

from __future__ import annotations

from datetime import datetime

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.templatetags.show import moment, number, percent
from judging.core.people.forecast import behind
from judging.core.people.guideline_shift import MOST_REPEATS
from judging.people.changes import StudyChange
from judging.people.guidelines.repeats import version_repeats_expected
from judging.people.guidelines.selectors import ratings_by_version
from judging.people.models import Evaluation
from judging.people.progress import overall
from judging.people.timeline import timeline_of

RATED_IN = ("open", "paused")
"""The states in which a change concerns raters and their ratings."""


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


def end_effects(evaluation: Evaluation, ends_at: datetime | None) -> list[str]:
    """What another end does to an evaluation whose raters rate, as sentences; empty if it does nothing."""
    if evaluation.state not in RATED_IN or ends_at == evaluation.ends_at:
        return []
    before = moment(evaluation.ends_at)
    if ends_at is None:
        sentences = [format_html(_("It no longer closes by itself at {before}."), before=before)]
    elif evaluation.ends_at is None:
        sentences = [format_html(_("It closes by itself at {end}."), end=moment(ends_at))]
    else:
        text = _("It closes by itself at {end} instead of {before}.")
        sentences = [format_html(text, end=moment(ends_at), before=before)]
    timeline = timeline_of(evaluation)
    if behind(timeline.end, ends_at):
        text = _("At the pace of the last days, the ratings will be complete at {end}, after it has closed.")
        sentences.append(format_html(text, end=moment(timeline.end)))
    return [*sentences, kept_sentence(evaluation)]


def quota_effects(evaluation: Evaluation, quota: int | None) -> list[str]:
    """What another quota does to an evaluation whose raters rate, as sentences; empty if it does nothing."""
    if evaluation.state not in RATED_IN or quota == evaluation.quota:
        return []
    if quota is None:
        return [_("Raters get items as long as there are any."), kept_sentence(evaluation)]
    return [
        _("From now on, items per rater at most: %(n)s.") % {"n": number(quota)},
        _("Raters who were told fewer are asked first and can stop at the old number."),
        kept_sentence(evaluation),
    ]


def version_effects(evaluation: Evaluation) -> list[str]:
    """What another guideline does, as sentences; empty for a draft, whose raters have seen none."""
    if evaluation.state == "draft":
        return []
    ratings, repeats = sum(ratings_by_version(evaluation).values()), version_repeats_expected(evaluation)
    sentences = [
        _("This begins version %(n)s. Raters see the new text before their next item and confirm it.")
        % {"n": evaluation.guideline_version + 1},
        ngettext(
            "%(n)s rating so far keeps its version and still counts; the report says that it mixes versions.",
            "%(n)s ratings so far keep their version and still count; the report says that it mixes versions.",
            ratings,
        )
        % {"n": number(ratings)},
    ]
    if repeats:
        text = _(
            "Raters get some of their items again, at most %(most)s each and %(n)s in all, without seeing which; these "
            "only measure the shift."
        )
        sentences.append(text % {"n": number(repeats), "most": MOST_REPEATS})
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
