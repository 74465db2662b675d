"""Evidence files as pages write them, and a project's rules for them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from evalsite.accounts.models import Project, User
from evalsite.audit import Action, record
from judging.evidence.container import BadKey, fingerprint, private_key, raw_key
from judging.evidence.models import EvidenceRules
from judging.evidence.writing import StillOpen, write_evidence
from judging.people.selectors import evaluations_of
from judging.records.models import Run
from judging.reports.figures import FEW


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The site's key for signing. `problem`: its setting names no usable key."""

    key: Ed25519PrivateKey | None = None
    problem: bool = False

    @property
    def fingerprint(self) -> str:
        return fingerprint(raw_key(self.key.public_key())) if self.key else ""


def signing_key() -> SigningKey:
    """The key that EVIDENCE_KEY_FILE names."""
    path = settings.CONFIG.evidence_key_file
    if not path:
        return SigningKey()
    try:
        return SigningKey(private_key(Path(path)))
    except BadKey:
        return SigningKey(problem=True)


def rules_of(project: Project) -> EvidenceRules:
    """The project's rules; not stored where nobody changed them."""
    return EvidenceRules.objects.filter(project=project).first() or EvidenceRules(project=project)


@transaction.atomic
def rules_change(*, project: Project, hashes_only: bool, host_names: bool, user: User) -> None:
    """Change what later files of the project hold."""
    Project.objects.select_for_update().get(pk=project.pk)
    rules = rules_of(project)
    changed = {"hashes_only": hashes_only, "host_names": host_names}
    before = {name: getattr(rules, name) for name in changed}
    if changed != before:
        EvidenceRules.objects.update_or_create(project=project, defaults=changed)
        record(
            Action.EVIDENCE_RULES, project=project, by=user, name=project.name, before=before, after=changed
        )


def why_not(run: Run) -> str:
    """Why no file can be written of a run on a page; '' if one can."""
    for evaluation in evaluations_of(run):
        if not evaluation.run.complete:
            text = _("The evaluation “%(name)s” is still open. Evidence can be written once it is closed.")
            return text % {"name": evaluation.run.name}
    if not run.complete:
        return _("The run has not ended yet. Evidence can be written once it has.")
    if run.total > FEW:
        text = _(
            "The run has more than %(most)s judgements. Write its evidence with “manage.py evidence %(run)s”."
        )
        return text % {"most": FEW, "run": run.pk}
    return ""


def evidence_write(
    *, run: Run, path: Path, hashes_only: bool, key: Ed25519PrivateKey | None, user: User | None
) -> None:
    """Write the evidence of a run by the project's rules. Raises StillOpen, or OSError."""
    rules = rules_of(run.project)
    hashes_only = hashes_only or rules.hashes_only
    write_evidence(run, path, hashes_only=hashes_only, key=key, host_names=rules.host_names)
    record(
        Action.EVIDENCE_WRITTEN,
        project=run.project,
        thing=run,
        by=user,
        hashes_only=hashes_only,
        signed_by=SigningKey(key).fingerprint,
    )


def evidence_file(*, run: Run, hashes_only: bool, user: User) -> IO[bytes]:
    """The evidence of a run as an open file that has no name any more. Raises ValidationError."""
    if problem := why_not(run):
        raise ValidationError(problem)
    signing = signing_key()
    if signing.problem:
        raise ValidationError(
            _("The site's key for signing can't be used. Tell the administrator of the site.")
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evidence.zip"
        try:
            evidence_write(run=run, path=path, hashes_only=hashes_only, key=signing.key, user=user)
        except StillOpen:  # opened again meanwhile
            raise ValidationError(why_not(run)) from None
        return path.open("rb")
