"""How a version opens: which ways of rating it offers, the one proposed first, and a look at what a rater will see.

Spec: a legacy version opens side by side, every other one answer at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from datasets.models import Candidate, Response, Row, Version
from datasets.references import reference_of
from datasets.selectors import usable_versions
from judging.people.gathering import prompt_of
from judging.people.models import Item, Scheme
from judging.people.showing import Shown, conversation_of, shown

LEGACY = ("legacy_jsonl", "legacy_csv")
SINGLE, AS_IT_STANDS = "single", "as_it_stands"
_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Offer:
    """A way of rating: its code (a Scheme, or one of the two above), its name, and what it means."""

    code: str
    name: str | Promise
    help: str | Promise

    @property
    def compares(self) -> bool:
        return self.code not in (SINGLE, AS_IT_STANDS)


_OFFERS = {
    offer.code: offer
    for offer in (
        Offer(SINGLE, _("Each answer by itself"), _("One answer at a time gets a score.")),
        Offer(AS_IT_STANDS, _("The reference as it stands"), _("The expected answer is what is scored.")),
        Offer(
            Scheme.REFERENCE,
            _("Reference beside answer"),
            _("The expected answer is compared with each candidate's."),
        ),
        Offer(
            Scheme.VERSIONS,
            _("Two references"),
            _("The expected answers are compared with another version's, where the prompts are the same."),
        ),
        Offer(
            Scheme.EVERY_PAIR, _("Two candidates, every pair"), _("Each two candidates meet on every row.")
        ),
        Offer(
            Scheme.BALANCED,
            _("Two candidates, some pairs"),
            _("A few pairs on each row, dealt so that every candidate comes equally often."),
        ),
        Offer(
            Scheme.BASELINE,
            _("Candidates beside a baseline"),
            _("Each candidate is compared with one of them."),
        ),
    )
}


def offers(version: Version) -> list[Offer]:
    """The ways that this version can be rated, the proposed one first."""
    candidates = candidates_of(version).count()
    legacy = version.format in LEGACY
    codes: list[str] = []
    if legacy:
        codes += [Scheme.REFERENCE] if candidates else [AS_IT_STANDS]
    if candidates:
        codes.append(SINGLE)
    if candidates >= 2:
        codes += [Scheme.EVERY_PAIR, *([Scheme.BALANCED] if candidates > 2 else []), Scheme.BASELINE]
    if legacy:
        codes += [*([AS_IT_STANDS] if candidates else []), *([Scheme.VERSIONS] if others(version) else [])]
    return [_OFFERS[code] for code in codes]


def candidates_of(version: Version) -> QuerySet[Candidate]:
    """The models whose answers the version holds, by name."""
    return Candidate.uploaded.filter(version=version, responses__gt=0).order_by("name")


def others(version: Version) -> QuerySet[Version]:
    """Legacy versions whose references may be compared with this one's."""
    return usable_versions(version.dataset.project).filter(format__in=LEGACY).exclude(pk=version.pk)


def look(
    version: Version,
    code: str,
    candidates: Sequence[Candidate],
    *,
    baseline: Candidate | None = None,
    other: Version | None = None,
    with_reference: bool = False,
) -> Shown | None:
    """The first item as a rater would see it; None where none of the first rows has what it takes. Stores nothing."""
    for row in Row.objects.filter(version=version, valid=True).order_by("line")[:_LOOKED_AT]:
        beside = _same_prompt(row, version, other) if other and code == Scheme.VERSIONS else None
        sides = _sides(version, row, code, candidates, baseline, beside)
        if sides:
            messages, reference = conversation_of(row, version.format)
            item = Item(row=row, response=sides[0], other_response=sides[1] if len(sides) > 1 else None)
            return shown(item, messages, 1, reference if with_reference else None)
    return None


def _sides(
    version: Version,
    row: Row,
    code: str,
    candidates: Sequence[Candidate],
    baseline: Candidate | None,
    beside: Row | None,
) -> list[Response]:
    """The answers that would be shown at a row; none where it lacks one."""
    reference = reference_of(row, version.format)
    if code == AS_IT_STANDS:
        return [_as_response(reference)] if reference else []
    if code == Scheme.VERSIONS:
        theirs = reference_of(beside, beside.version.format) if beside else None
        return [_as_response(reference), _as_response(theirs)] if reference and theirs else []
    wanted = [one for one in candidates if one != baseline]
    answers = _first_answers(row, wanted)
    if code == Scheme.REFERENCE:
        return [answers[0], _as_response(reference)] if answers and reference else []
    if code == Scheme.BASELINE:
        answers = answers[:1] + (_first_answers(row, [baseline]) if baseline else [])
    return answers[:1] if code == SINGLE else answers[:2] if len(answers) > 1 else []


def _first_answers(row: Row, candidates: Sequence[Candidate]) -> list[Response]:
    found = Response.objects.filter(row=row, candidate__in=candidates, number=1)
    return list(found.order_by("candidate__name"))


def _as_response(reference: dict[str, Any]) -> Response:
    return Response(raw=json.dumps(reference))


def _same_prompt(row: Row, version: Version, other: Version) -> Row | None:
    """The other version's row that asks the same."""
    wanted = prompt_of(row, version.format)
    found = Row.objects.filter(version=other, valid=True).select_related("version").order_by("line")
    return next((one for one in found[:_LOOKED_AT] if prompt_of(one, other.format) == wanted), None)
