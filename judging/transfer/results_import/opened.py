"""What is told of a run that was opened from an evidence file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from judging.records.models import Run
from judging.transfer.results_import.models import OpenedEvidence


def opened_evidence(run: Run) -> OpenedEvidence | None:
    """The evidence file that an imported run was opened from, if it was."""
    if not run.imported:
        return None
    return OpenedEvidence.objects.filter(results_import__run=run).order_by("pk").first()


def evidence_of(run: Run) -> dict[str, Any] | None:
    """For `report --json`: what the file says of itself and what was verified; None if the run comes from none."""
    opened = opened_evidence(run)
    return None if opened is None else {"file": opened.results_import.file_name, **opened.document}


def evidence_sentences(evidence: Mapping[str, Any]) -> list[str]:
    """Where the run comes from and what was found when its file was verified. `evidence`: of `evidence_of`."""
    if "verified" not in evidence:
        return [_("Opened from an evidence file, which is still being verified.")]
    origin = _(
        "Opened from an evidence file: run “%(run)s” over “%(dataset)s” v%(version)s, written by version "
        "%(program)s."
    )
    return [
        origin % evidence["origin"],
        _recomputed(evidence),
        _same(evidence),
        _signed(evidence["verified"]),
    ]


def is_doubtful(evidence: Mapping[str, Any]) -> bool:
    """Whether the file was changed, or does not prove the means shown. `evidence`: of `evidence_of`."""
    verified = evidence.get("verified")
    if verified is None:
        return False
    sound = verified["intact"] and verified["recomputed"] and evidence["same_figures"]
    return not sound or bool(verified["key"] and not verified["signed"])


def _recomputed(evidence: Mapping[str, Any]) -> str:
    if not evidence["verified"]["intact"]:
        return _("Parts of the file were changed after it was written.")
    if evidence["verified"]["recomputed"]:
        return _("The report computed again from the file equals the one inside.")
    return _("The report computed again from the file does not equal the one inside.")


def _same(evidence: Mapping[str, Any]) -> str:
    if evidence["same_figures"]:
        return _("The means shown here equal those in it.")
    return _("Some means shown here differ from those in it.")


def _signed(verified: Mapping[str, Any]) -> str:
    if verified["signed"]:
        text = _("It is signed with the key %(key)s, which counts only if you know whose key that is.")
        return text % {"key": verified["key"]}
    if verified["key"]:
        return _("Its signature does not fit.")
    return _("It is not signed.")
