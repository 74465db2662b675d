"""The names of the two sides where two files are compared. Organisers and reviewers see them, raters never do."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from datasets import uploads
from datasets.models import Candidate, Version
from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.core.people.telltales import is_named
from judging.people.leasing import locked
from judging.people.looking import criteria_of
from judging.people.models import Evaluation, Scheme
from judging.runs.models import Run

LONGEST_NAME = 200


def proposed_names(version: Version, other: Version) -> tuple[str, str]:
    """What the sides are called unless the organiser calls them otherwise: after the files, never both alike."""
    by_file = uploads.name_from(version.file_name), uploads.name_from(other.file_name)
    by_dataset = version.dataset.name, other.dataset.name
    by_version = f"{version.dataset.name} v{version.number}", f"{other.dataset.name} v{other.number}"
    return next((pair for pair in (by_file, by_dataset) if not _alike(*pair)), by_version)


def checked_names(here: str, there: str) -> tuple[str, str]:
    """Both names without blanks around them. Raises ValidationError unless each side has one of its own."""
    here, there = here.strip(), there.strip()
    if not here or not there:
        raise ValidationError(_("Give both sides a name."))
    if max(len(here), len(there)) > LONGEST_NAME:
        raise ValidationError(_("A name has at most %(n)s characters.") % {"n": LONGEST_NAME})
    if _alike(here, there):
        raise ValidationError(_("Give the two sides different names."))
    return here, there


def _alike(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


@dataclass(frozen=True, slots=True)
class Side:
    """One of two files that are compared: the candidate that stands for its answers, and where they come from."""

    candidate: Candidate
    version: Version

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def file(self) -> str:
        """Its data set, version and file."""
        told = f"{self.version.dataset.name} v{self.version.number}"
        return f"{told} ({self.version.file_name})" if self.version.file_name else told


def sides_of(evaluation: Evaluation) -> list[Side]:
    """The two files, the evaluation's own first; none where something else is compared."""
    if evaluation.scheme != Scheme.VERSIONS or evaluation.other_version is None:
        return []
    taking_part = evaluation.run.run_candidates.values("candidate")
    found = Candidate.objects.filter(pk__in=taking_part).order_by("pk")
    versions = (evaluation.run.version, evaluation.other_version)
    return [Side(candidate, version) for candidate, version in zip(found, versions, strict=True)]


def _read_by_raters(evaluation: Evaluation) -> list[str]:
    criteria = criteria_of(evaluation).values()
    texts = [text for one in criteria for text in (one.name, one.guideline)]
    return [evaluation.run.name, evaluation.guideline, *texts]


@transaction.atomic
def sides_rename(*, evaluation: Evaluation, here: str, there: str, by: User) -> None:
    """Call the two sides by other names, everywhere. Raises ValidationError."""
    evaluation = locked(evaluation)
    names = checked_names(here, there)
    sides = sides_of(evaluation)
    if not sides:
        raise ValidationError(_("Only an evaluation of two files has sides to name."))
    for name in names:
        if any(is_named(name, text) for text in _read_by_raters(evaluation)):
            raise ValidationError(
                _(
                    "Raters can read %(name)s in the evaluation's name, guideline or criteria. Choose another name."
                )
                % {"name": name}
            )
    for side, name in zip(sides, names, strict=True):
        Candidate.objects.filter(pk=side.candidate.pk).update(name=name)
    Run.objects.filter(pk=evaluation.run_id).update(revision=F("revision") + 1)
    project = Project.objects.get(pk=evaluation.run.project_id)
    record(
        Action.EVALUATION_SIDES_NAMED, project=project, thing=evaluation.run, by=by, sides=" · ".join(names)
    )
