"""A system check of the sandbox. It starts processes, so it only runs in `manage.py serve` and `check --deploy`."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.utils.translation import gettext as _

from judging.core.sandbox.job import Layer
from judging.sandboxes import SandboxStatus, status

FULL_ISOLATION = 3
TAG = "sandbox"
CONTAINER_OPTIONS = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined"
"""The profiles of container engines forbid making namespaces; the sandbox's own filters replace them for scripts."""


@register(TAG, deploy=True)
def sandbox_holds(app_configs: object = None, **options: Any) -> list[CheckMessage]:
    """Report which isolation layers work on this machine, by starting a sandbox."""
    return of_status(status(again=True))


def of_status(status: SandboxStatus) -> list[CheckMessage]:
    """Convert a sandbox status to messages for a check or a page."""
    if status.level is None:
        text = _("Templates and scripts can't run: %(error)s") % {"error": status.problem}
        return [
            Error(text, hint=_("It requires Linux and permission to start processes."), id="judging.E002")
        ]
    return level_messages(status.level, status.missing, status.minimum)


def level_messages(level: int, missing: tuple[Layer, ...], minimum: int) -> list[CheckMessage]:
    """Empty if all layers work; otherwise what is missing, with its severity."""
    if level == FULL_ISOLATION:
        return []
    what = {"level": level, "minimum": minimum, "missing": ", ".join(missing)}
    hint = " ".join(_remedy(layer) for layer in missing)
    if level < minimum:
        text = _("Scripts and templates can't run: isolation level %(level)s, at least %(minimum)s required.")
        return [Error(f"{text % what} {_missing(what)}", hint=hint, id="judging.E001")]
    if level == 0:
        text = _("Scripts and templates run without isolation, because SANDBOX_ALLOW_UNSAFE is set.")
        return [
            Warning(text, hint=_("Don't give people you don't trust access to this site."), id="judging.W002")
        ]
    text = _("Isolation of scripts and templates: level %(level)s of 3.") % what
    grade, code = (Info, "judging.I001") if level == FULL_ISOLATION - 1 else (Warning, "judging.W001")
    return [grade(f"{text} {_missing(what)}", hint=hint, id=code)]


def _missing(what: dict[str, Any]) -> str:
    return _("Missing: %(missing)s.") % what


def _remedy(layer: Layer) -> str:
    match layer:
        case "namespaces":
            return _(
                "Namespaces: allow unprivileged user namespaces; in a container, also add %(options)s to the options "
                "it is started with."
            ) % {"options": CONTAINER_OPTIONS}
        case "landlock":
            return _("Landlock: use Linux 5.13 or newer, with landlock among the kernel's security modules.")
        case "seccomp":
            return _("Seccomp: use a kernel with seccomp filters, on x86-64 or ARM64.")
