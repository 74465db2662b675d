"""manage.py delete: remove a run, version, data set, evaluation or project with all that belongs to it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.storage import data_dir
from evalsite.tasks import jobs
from judging.deletion.kinds import KINDS, Kind, contents
from judging.deletion.labels import content_texts
from judging.deletion.models import Deletion
from judging.deletion.services import JOB, delete_begin, obstacle
from judging.management.command_line import HAS_ERRORS, WRONG_USAGE, add_json_option, json_line, refusals


class Command(BaseCommand):
    help = (
        "Delete a run, version, data set, human evaluation or project with all that belongs to it. Prints what goes "
        "with it; nothing changes without --yes. To hide something and keep it, archive it."
    )

    requires_system_checks = ()  # checks import every view, which takes a third of a second

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=KINDS)
        parser.add_argument(
            "name", metavar="NAME", help="name or number; of a version DATASET:NUMBER; of a project its slug"
        )
        parser.add_argument(
            "--with-runs",
            action="store_true",
            help="also the runs and evaluations that use the version or data set",
        )
        parser.add_argument("--yes", action="store_true", help="delete; without it, nothing changes")
        add_json_option(parser)

    def handle(self, *, kind: str, name: str, with_runs: bool, yes: bool, **options: Any) -> None:
        data_dir.prepare()
        meant = KINDS[kind]
        thing = thing_called(kind, meant, name)
        own_name, counts = meant.name(thing), contents(kind, thing.pk)
        why = refusal(kind, thing.pk, with_runs=with_runs, yes=yes)
        if not options["json"]:
            self.stdout.write("\n  ".join([f"{kind} {own_name}", *content_texts(counts)]))
        if not why:
            with refusals():
                deletion = delete_begin(kind=kind, thing=thing, with_runs=with_runs, wait=True)
            jobs.run(JOB, deletion.pk)
            if Deletion.objects.filter(pk=deletion.pk).exists():
                why = "It is deleted, but could not be removed completely. A worker will go on."
        if options["json"]:
            self.stdout.write(json_line({"deleted": None if why else own_name, "with": counts}))
        if why:
            raise CommandError(why, returncode=HAS_ERRORS)
        if not options["json"]:
            self.stdout.write("Deleted.")


def thing_called(kind: str, meant: Kind, name: str) -> Any:
    """The only object of this kind with this name. Raises CommandError if there is none, or several."""
    matches = list(meant.called(name).order_by("pk")[:10])
    if not matches:
        raise CommandError(f"There is no {kind} called {name} in this DATA_DIR.", returncode=WRONG_USAGE)
    if len(matches) > 1:
        numbers = ", ".join(str(getattr(match, "slug", match.pk)) for match in matches)
        raise CommandError(
            f"Several are called {name}. Name one by its number: {numbers}.", returncode=WRONG_USAGE
        )
    return matches[0]


def refusal(kind: str, pk: int, *, with_runs: bool, yes: bool) -> str:
    """Why nothing is deleted; '' if it can be."""
    why = obstacle(kind, pk, with_runs=with_runs)
    if why and not with_runs and not obstacle(kind, pk, with_runs=True):
        return f"{why} (--with-runs deletes them as well.)"
    return why or ("" if yes else "Nothing was deleted. Add --yes to delete it.")
