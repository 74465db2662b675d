"""Detection of what may reveal the rated model, and the turns that can be hidden from raters.

Raters see only roles and texts of a conversation's turns, so only those can reveal a model: custom fields and message
names are never shown to them. Turns that all candidates of a row share tell none of them from another, even if they
contain a name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, F
from django.utils.functional import Promise
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets import uploads
from datasets.core.variables import EARLIER, conversation_for, response_data
from datasets.models import Candidate, Response, Row, Version
from datasets.versions.references import reference_response
from evalsite.accounts.models import User
from evalsite.audit import Action
from judging.filters.row_filters import id_subquery
from judging.people.assignments import audit, locked
from judging.people.item_view import conversation_of
from judging.people.models import Evaluation, Scheme
from judging.people.sampling import prompt_of
from judging.records.models import Run

LOOKED_AT = 1000
_VALUES_SHOWN, _CHARACTERS_SHOWN = 5, 40

HIDEABLE: dict[str, str | Promise] = {
    "system": gettext_lazy("System message"),
    "assistant": gettext_lazy("Earlier answers"),
    "tool": gettext_lazy("Tool turns"),
}
"""Roles whose turns can be hidden; user turns can't, because items could not be rated without them."""


@dataclass(frozen=True, slots=True)
class Blindness:
    """The roles that can be hidden, warnings about texts that may reveal a model, and the number of rows checked per
    version (None: all)."""

    roles: list[str]
    warnings: list[str]
    only_first: int | None


def blindness(versions: Iterable[Version], names: Sequence[str], hidden: Sequence[str]) -> Blindness:
    """Check the first rows of these versions. `names`: of the models or sides; `hidden`: roles that are hidden
    already."""
    versions = list(versions)
    rows = list(_turns_shown(versions))
    more = any(version.valid_rows > LOOKED_AT for version in versions)
    seen = {role for row in rows for turns in row for role in turns}
    fields = [entry for entry in revealing_fields(rows, names) if entry.field not in hidden]
    roles = [role for role in HIDEABLE if role in seen]
    return Blindness(roles, [_sentence(entry) for entry in fields], LOOKED_AT if more else None)


Turns: TypeAlias = Mapping[str, str]  # role → text


def _turns_shown(versions: Sequence[Version]) -> Iterator[list[Turns]]:
    """The turns of each of the first rows, as shown with each of its answers. Rows of a second file are looked at with
    those that have the same prompt."""
    version, *others = versions
    theirs = {prompt_of(row, other.format): row for other in others for row in _first_rows(other)}
    rows = _first_rows(version)
    own = {} if theirs else _answers_with_own_turns(version, rows)
    for row in rows:
        messages = conversation_of(row, version.format)[0]
        other = theirs.pop(prompt_of(row, version.format), None) if theirs else None
        answers = [
            reference_response(compared, compared.version.format) or {}
            for compared in (row, other)
            if compared and other
        ]
        answers += own.get(row.pk, ())
        yield [_by_role(conversation_for(messages, answer)) for answer in answers] or [_by_role(messages)]
    for row in theirs.values():
        yield [_by_role(conversation_of(row, row.version.format)[0])]


def _first_rows(version: Version) -> list[Row]:
    rows = Row.objects.filter(version=version, valid=True).select_related("version")
    return list(rows.order_by("line")[:LOOKED_AT])


def _answers_with_own_turns(version: Version, rows: Sequence[Row]) -> dict[int, list[dict[str, Any]]]:
    """{row: its answers} of the rows with answers that have earlier turns of their own; {} stands for the others."""
    answers = Response.objects.filter(
        row__in=id_subquery([row.pk for row in rows]),
        candidate__in=Candidate.uploaded.filter(version=version),
    )
    by_row: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for pk, raw in answers.filter(raw__contains=f'"{EARLIER}"').values_list("row", "raw"):
        by_row[pk].append(response_data(raw))
    counts = (
        answers.filter(row__in=id_subquery(list(by_row))).order_by().values_list("row").annotate(Count("pk"))
    )
    for pk, count in counts:
        by_row[pk] += [{}] * (count > len(by_row[pk]))
    return by_row


def _by_role(messages: Sequence[Mapping[str, Any]]) -> Turns:
    texts: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        if message["role"] in HIDEABLE:
            texts[message["role"]].append(str(message["content"] or ""))
    return {role: "\n".join(parts) for role, parts in texts.items()}


def _sentence(revealing: RevealingField) -> str:
    field = HIDEABLE[revealing.field]
    if revealing.name:
        return _("%(field)s: contains the name “%(name)s”.") % {"field": field, "name": revealing.name}
    shown = [f"“{Truncator(value).chars(_CHARACTERS_SHOWN)}”" for value in revealing.values[:_VALUES_SHOWN]]
    listed = " / ".join(shown + ["…"] * (len(revealing.values) > _VALUES_SHOWN))
    return _("%(field)s: only a few short values (%(values)s), which may tell models apart.") % {
        "field": field,
        "values": listed,
    }


LONGEST_NAME = 200


def proposed_names(version: Version, other: Version) -> tuple[str, str]:
    """Default names of the two sides, from file names, data sets or versions; never equal."""
    by_file = uploads.name_from(version.file_name), uploads.name_from(other.file_name)
    by_dataset = version.dataset.name, other.dataset.name
    by_version = f"{version.dataset.name} v{version.number}", f"{other.dataset.name} v{other.number}"
    return next((pair for pair in (by_file, by_dataset) if not _alike(*pair)), by_version)


def checked_names(here: str, there: str) -> tuple[str, str]:
    """Return both names stripped. Raises ValidationError if one is missing or too long, or if they are equal."""
    here, there = here.strip(), there.strip()
    if not here or not there:
        raise ValidationError(_("Enter a name for both sides."))
    if max(len(here), len(there)) > LONGEST_NAME:
        raise ValidationError(_("A name has at most %(n)s characters.") % {"n": LONGEST_NAME})
    if _alike(here, there):
        raise ValidationError(_("The two sides need different names."))
    return here, there


def _alike(name: str, other: str) -> bool:
    return name.strip().casefold() == other.strip().casefold()


@dataclass(frozen=True, slots=True)
class FileSide:
    """One of two compared files: the candidate of its answers, and its version."""

    candidate: Candidate
    version: Version

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def file(self) -> str:
        """Its data set, version and file, as text."""
        title = f"{self.version.dataset.name} v{self.version.number}"
        return f"{title} ({self.version.file_name})" if self.version.file_name else title


def sides_of(evaluation: Evaluation) -> list[FileSide]:
    """The two compared files, the evaluation's own first; empty for other schemes."""
    if evaluation.scheme != Scheme.VERSIONS or evaluation.other_version is None:
        return []
    taking_part = evaluation.run.run_candidates.values("candidate")
    candidates = Candidate.objects.filter(pk__in=taking_part).order_by("pk")
    versions = (evaluation.run.version, evaluation.other_version)
    return [FileSide(candidate, version) for candidate, version in zip(candidates, versions, strict=True)]


@transaction.atomic
def sides_rename(*, evaluation: Evaluation, here: str, there: str, by: User) -> None:
    """Rename the two sides everywhere. Raises ValidationError."""
    evaluation = locked(evaluation)
    names = checked_names(here, there)
    sides = sides_of(evaluation)
    if not sides:
        raise ValidationError(_("Only comparisons of two files have side names."))
    texts = [evaluation.run.name, evaluation.guideline]
    texts += [
        text for criterion in evaluation.criteria.values() for text in (criterion.name, criterion.guideline)
    ]
    for name in names:
        if any(is_named(name, text) for text in texts):
            raise ValidationError(
                _(
                    "Raters can read %(name)s in the evaluation's name, guideline or criteria. Choose another name."
                )
                % {"name": name}
            )
    for side, name in zip(sides, names, strict=True):
        Candidate.objects.filter(pk=side.candidate.pk).update(name=name)
    Run.objects.filter(pk=evaluation.run_id).update(revision=F("revision") + 1)
    audit(Action.EVALUATION_SIDES_NAMED, evaluation, by, sides=" · ".join(names))


MOST_VALUES = 20
LONGEST_VALUE = 80  # characters
_SEPARATORS = r"[\s\-_.]"


@dataclass(frozen=True, slots=True)
class RevealingField:
    """A field that differs between candidates of a row and contains a candidate's `name`, or ('') has few values there,
    most frequent first."""

    field: str
    name: str = ""
    values: tuple[str, ...] = ()


def revealing_fields(rows: Sequence[Sequence[Turns]], names: Sequence[str]) -> list[RevealingField]:
    """The fields that may reveal a model. `rows`: of each row, {field: text as shown to raters} with each of its
    answers, or once if they share all turns."""
    revealing = []
    for field in dict.fromkeys(field for row in rows for shown in row for field in shown):
        by_row = [[shown.get(field, "").strip() for shown in row] for row in rows]
        telling = Counter(text for row in by_row if len(set(row)) > 1 for text in row)
        revealing += [
            RevealingField(field, name=name)
            for name in names
            if any(is_named(name, text) for text in telling)
        ]
        if _are_few(telling):
            values = tuple(text for text, _ in telling.most_common() if text)
            revealing.append(RevealingField(field, values=values))
    return revealing


def _are_few(texts: Counter[str]) -> bool:
    """Whether the values are few, short and repeated: values that never repeat are ordinary texts."""
    short = all(len(text) <= LONGEST_VALUE for text in texts)
    return short and 1 < len(texts) <= MOST_VALUES and len(texts) < texts.total()


def refuse_names(evaluation: Evaluation, texts: list[str]) -> None:
    """Raise ValidationError if a text for raters contains the name of a candidate, which would unblind them."""
    for name in evaluation.run.run_candidates.values_list("candidate__name", flat=True):
        if any(is_named(name, text) for text in texts):
            raise ValidationError(
                _("Raters can read this text, and it contains the model name %(name)s. Remove the name.")
                % {"name": name}
            )


def is_named(name: str, text: str) -> bool:
    """Whether a text contains a model's name as a separate word, ignoring case and separators. Single letters don't
    count."""
    parts = [re.escape(part) for part in re.split(f"{_SEPARATORS}+", name) if part]
    if len(name.strip()) < 2 or not parts:
        return False
    pattern = f"(?<![A-Za-z0-9]){f'{_SEPARATORS}*'.join(parts)}(?![A-Za-z0-9])"
    return re.search(pattern, text, re.IGNORECASE) is not None
