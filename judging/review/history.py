"""History of an answer's score as one timeline: attempts, overrides, comments, people's ratings and adjudications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import starmap

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from evalsite.names import labelled
from judging.filters.addresses import judgement_url
from judging.messages import reason_sentence, stored_verdict_text
from judging.people.labels import labelled_values, values_of
from judging.people.models import Adjudication, Item, Rating, RatingKind, SkipReason
from judging.people.selectors import MOST
from judging.records.models import Judgement
from judging.records.overrides import attempts_of, history_of
from judging.teamwork.comments import comments_of


@dataclass(frozen=True, slots=True)
class Entry:
    """`at`: None for pending entries. `what`: the event; `who`: '' for the judge; `value`: '' without one; `words`:
    reason or comment; `url`: link to it."""

    at: datetime | None
    what: str
    value: str = ""
    who: str = ""
    words: str = ""
    url: str = ""
    here: bool = False  # whether it is the page's judgement


def timeline(judgement: Judgement, items: Sequence[int]) -> list[Entry]:
    """All entries, oldest first, pending ones last. `items`: the answer's items whose ratings may be seen
    (judging.people.selectors.items_about)."""
    entries = [*attempts(judgement), *overrides(judgement), *comments(judgement), *people(judgement, items)]
    return sorted(entries, key=lambda entry: (entry.at is None, entry.at or datetime.max.replace(tzinfo=UTC)))


def attempts(judgement: Judgement) -> Iterable[Entry]:
    if judgement.rater_id:
        return  # handled by `people`
    run = judgement.run
    parts = ("reading__metric_version", "run_metric__metric_version", "source")
    for attempt in attempts_of(judgement).select_related(*parts).order_by("attempt"):
        by = attempt.reading or attempt.run_metric
        version = f"{attempt.run_metric.name} v{by.metric_version.number}" if by.metric_version else ""
        yield Entry(
            None if attempt.finished_at is None else datetime.fromtimestamp(attempt.finished_at, UTC),
            _attempt_text(attempt),
            stored_verdict_text(attempt.value) or str(attempt.get_state_display()),
            attempt.source.name if attempt.source else "",
            " · ".join(
                filter(
                    None, (version, reason_sentence(attempt.reason, attempt.detail) if attempt.reason else "")
                )
            ),
            judgement_url(run, attempt.pk),
            attempt.pk == judgement.pk,
        )


def _attempt_text(attempt: Judgement) -> str:
    text = _("Replies re-parsed, no calls") if attempt.replies_from_id else _("Judged")
    return f"{text} · " + _("attempt %(number)s") % {"number": attempt.attempt}


def overrides(judgement: Judgement) -> Iterable[Entry]:
    for override in history_of(judgement).select_related("by"):
        yield Entry(
            override.at,
            _("Override withdrawn") if override.value is None else _("Score overridden"),
            stored_verdict_text(override.value),
            override.by.username,
            override.reason,
            judgement_url(judgement.run, override.judgement_id),
        )


def comments(judgement: Judgement) -> Iterable[Entry]:
    for comment in comments_of(judgement):
        yield Entry(
            comment.at, pgettext("review", "Comment"), who=comment.author.username, words=comment.text
        )


def people(judgement: Judgement, items: Sequence[int]) -> Iterable[Entry]:
    """All actions of raters on the answer, alone or next to another, including verdicts changed later;
    adjudications."""
    if not items:
        return
    criteria, skipped = cache(lambda evaluation: evaluation.criteria), dict(SkipReason.choices)

    def label(item: Item, values: str) -> str:
        named = labelled_values(criteria(item.evaluation), values_of(values), item.candidate_names)
        return "; ".join(starmap(labelled, named))

    parts = ("rater", "assignment__item__evaluation__run", *_names("assignment__item__"))
    ratings = Rating.objects.filter(assignment__item__in=items).select_related(*parts).order_by("pk")
    for rating in ratings[:MOST]:
        item = rating.assignment.item
        words = " · ".join(filter(None, (str(skipped.get(rating.reason, "")), rating.comment)))
        what = _RATED[RatingKind(rating.kind)]()
        yield Entry(
            rating.at, what, label(item, rating.values), rating.rater.pseudonym, words, _url(judgement, item)
        )
    parts = ("by", "item__evaluation__run", *_names("item__"))
    decisions = Adjudication.objects.filter(item__in=items).select_related(*parts).order_by("pk")
    for decided in decisions[:MOST]:
        values, address = label(decided.item, decided.values), _url(judgement, decided.item)
        yield Entry(decided.at, _("Adjudicated"), values, decided.by.username, decided.reason, address)


_RATED: dict[RatingKind, Callable[[], str]] = {
    RatingKind.VERDICT: lambda: _("Rated"),
    RatingKind.CHANGE: lambda: _("Rating changed"),
    RatingKind.SKIP: lambda: _("Skipped"),
    RatingKind.UNDO: lambda: _("Rating undone"),
}


def _names(item: str) -> tuple[str, str]:
    return f"{item}response__candidate", f"{item}other_response__candidate"


def _url(judgement: Judgement, item: Item) -> str:
    return reverse("people:item", args=(judgement.run.project.slug, item.evaluation.run_id, item.number))
