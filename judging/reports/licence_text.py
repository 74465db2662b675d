"""What a report says of the licences of its judges, in a sentence for each metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.names import join_sentences, with_names
from evalsite.templatetags.show import number, percent
from judging.transfer.results_import.opened import evidence_sentences


def licence_sentence(entry: Mapping[str, Any]) -> str:
    """What a judge may be used for, with the data set and the share of failures that it was measured on. `entry`: of
    the document's `licences`."""
    said = _standing(entry)
    if entry["state"] == "none":
        return said
    return join_sentences(
        [said, _measured(entry), *([] if entry["here"] else [_("Measured on other data.")])]
    )


def evidence_and_licences(evidence: Mapping[str, Any]) -> list[str]:
    """What is told of a run that was opened from an evidence file, with what the file says of its judges, which is text
    here. `evidence`: of the document."""
    given = [entry for entry in evidence.get("licences", ()) if entry["state"] != "none"]
    licences = [f"{entry['metric']}: {licence_sentence(entry)}" for entry in given]
    said = [
        _("What it says of its judges counts nowhere here: “%(said)s”") % {"said": join_sentences(licences)}
    ]
    return [*evidence_sentences(evidence), *(said if licences else [])]


def _standing(entry: Mapping[str, Any]) -> str:
    names = {"judge": entry["judge"], "reason": entry["reason"]}
    if entry["state"] == "valid":
        return with_names(_ALLOWED[entry["use"]](), names)
    if entry["state"] == "suspended":
        return with_names(_("The licence of the judge %(judge)s is suspended: %(reason)s"), names)
    if entry["state"] == "lapsed":
        return with_names(_("The licence of the judge %(judge)s has lapsed."), names)
    return with_names(_("The judge %(judge)s has no licence: no sealed test was opened for it."), names)


_ALLOWED: dict[str | None, Callable[[], str]] = {
    "gates": lambda: _("The judge %(judge)s may be used for gates."),
    "trends": lambda: _("The judge %(judge)s may be used for trends."),
    "exploring": lambda: _("The judge %(judge)s may be used for exploring only."),
    None: lambda: _("The judge %(judge)s failed its sealed test: it may be used for nothing."),
}


def _measured(entry: Mapping[str, Any]) -> str:
    names = {
        "dataset": entry["dataset"],
        "version": entry["version"],
        "n": number(entry["items"]),
        "failures": percent(entry["failures"]) if entry["failures"] is not None else "",
    }
    if entry["failures"] is None:
        text = ngettext(
            "Measured on %(dataset)s v%(version)s, %(n)s item.",
            "Measured on %(dataset)s v%(version)s, %(n)s items.",
            entry["items"],
        )
    else:
        text = ngettext(
            "Measured on %(dataset)s v%(version)s, %(n)s item, of which people failed %(failures)s.",
            "Measured on %(dataset)s v%(version)s, %(n)s items, of which people failed %(failures)s.",
            entry["items"],
        )
    return with_names(text, names)
