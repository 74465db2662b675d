"""A template or a rule program linted over all rows of a stored version: at once where they are few, else by a worker.

What was found is kept by the texts' hashes, so that going back to an earlier wording shows it again.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import cast

import msgspec
from django.db.models import Sum

from datasets.core.formats import Format
from datasets.core.variables import row_and_response, row_data
from datasets.models import Candidate, Response, Row, Version
from evalsite.tasks import workers
from judging.core.jail.keeper import JailBroken
from judging.core.jail.pool import Jail, JailRefused
from judging.core.lint.findings import Lint
from judging.core.lint.run import lint
from judging.core.lint.subjects import Answer, subjects
from judging.jails import make_jail
from judging.metrics import tasks
from judging.metrics.models import TemplateLint
from judging.metrics.preview import shared_jail
from judging.metrics.rules import linting as rule_linting

AT_ONCE = 2_000  # responses that a page may wait for
_ROWS = 500  # read at a time
_KEPT = 500  # results; the oldest go
JailOf = Callable[[], AbstractContextManager[Jail]]
Kind = TemplateLint.Kind
_to_json, _from_json = msgspec.json.encode, msgspec.json.Decoder(Lint).decode


class _Stopped(Exception):
    """The worker is to end; another takes the work up again."""


def result_of(found: TemplateLint) -> Lint | None:
    """What was found, or None while it is not done."""
    return read_result(found.result)


def read_result(text: str) -> Lint | None:
    """A kept result of a template's lint; None of ''."""
    return _from_json(text) if text else None


def size_of(version: Version) -> int:
    """How many renders a lint of this version takes: its responses, or its rows where they are more."""
    answers = Candidate.uploaded.filter(version=version).aggregate(Sum("responses"))["responses__sum"]
    return max(version.valid_rows, answers or 0)


def known(
    version: Version, template: str, preprocess: str, kind: Kind = Kind.TEMPLATE
) -> TemplateLint | None:
    """What is known, or being found out, about these texts."""
    return TemplateLint.objects.filter(version=version, **_hashes(template, preprocess, kind)).first()


def is_quick(version: Version, kind: Kind = Kind.TEMPLATE) -> bool:
    """Whether a page may wait for it."""
    return version.valid_rows <= rule_linting.AT_ONCE if kind == Kind.RULES else size_of(version) <= AT_ONCE


def begin(version: Version, template: str, preprocess: str, kind: Kind = Kind.TEMPLATE) -> TemplateLint:
    """The lint of these texts: as it is known, done here if it is quick, else left to a worker."""
    found, new = TemplateLint.objects.get_or_create(
        version=version,
        **_hashes(template, preprocess, kind),
        defaults={"template": template, "preprocess": preprocess, "kind": kind},
    )
    if found.problem:  # tried before: the reason may be gone
        TemplateLint.objects.filter(pk=found.pk).update(problem="", owner="")
    if new:
        _forget_oldest()
    if found.result:
        return found
    if is_quick(version, kind):
        work(found.pk, workers.owner(), jail_of=_shared)
    else:
        workers.wake(tasks.lint_template, lint_id=found.pk)
    found.refresh_from_db()
    return found


def _hashes(template: str, preprocess: str, kind: Kind) -> dict[str, str]:
    salted = template if kind == Kind.TEMPLATE else f"{kind}\0{template}"
    return {
        "template_hash": hashlib.sha256(salted.encode("utf-8", "surrogatepass")).hexdigest(),
        "preprocess_hash": hashlib.sha256(preprocess.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def _forget_oldest() -> None:
    newest = TemplateLint.objects.order_by("-pk").values_list("pk", flat=True)[_KEPT : _KEPT + 1]
    for pk in newest:
        TemplateLint.objects.filter(pk__lte=pk).delete()


@contextmanager
def _shared() -> Iterator[Jail]:
    yield shared_jail()


@contextmanager
def _own() -> Iterator[Jail]:
    jail = make_jail()
    try:
        yield jail
    finally:
        jail.close()


@workers.works_on(TemplateLint)
def work(lint_id: int, owner: str, *, stop: threading.Event | None = None, jail_of: JailOf = _own) -> None:
    """Find it out, unless somebody else does; `stop` gives it back. `jail_of` opens a jail where one is needed."""
    mine = TemplateLint.objects.filter(pk=lint_id, result="", problem="")
    if not mine.filter(owner="").update(owner=owner, subjects_done=0):
        return
    task = TemplateLint.objects.select_related("version").get(pk=lint_id)
    mine = mine.filter(owner=owner)
    look = _look_at_rules if task.kind == Kind.RULES else _look_at_template
    try:
        found = look(task, jail_of, stop)
    except _Stopped:
        mine.update(owner="")
    except (JailRefused, JailBroken):
        mine.update(owner="", problem="prompt_refused")
    else:
        mine.update(owner="", result=found, template="", preprocess="")


def _look_at_template(task: TemplateLint, jail_of: JailOf, stop: threading.Event | None) -> str:
    with jail_of() as jail:
        counted = _counted(task, answers_of(task.version), stop)
        return _to_json(lint(jail, task.template, subjects(jail, counted, task.preprocess))).decode()


def _look_at_rules(task: TemplateLint, jail_of: JailOf, stop: threading.Event | None) -> str:
    def progress(done: int) -> None:
        _note_progress(task, done, stop)

    look = partial(rule_linting.lint_references, task.version, task.template, task.preprocess)
    if not rule_linting.needs_jail(task.template, task.preprocess):
        return rule_linting.to_json(look(progress=progress))
    with jail_of() as jail:
        return rule_linting.to_json(look(jail, progress=progress))


def _counted(task: TemplateLint, answers: Iterator[Answer], stop: threading.Event | None) -> Iterator[Answer]:
    """The answers, with progress written down now and then."""
    for count, answer in enumerate(answers):
        if count % 2_000 == 0 and count:
            _note_progress(task, count, stop)
        yield answer


def _note_progress(task: TemplateLint, done: int, stop: threading.Event | None) -> None:
    if stop is not None and stop.is_set():
        raise _Stopped
    TemplateLint.objects.filter(pk=task.pk).update(subjects_done=done)


def answers_of(version: Version) -> Iterator[Answer]:
    """Every answer of every valid row in the order of lines; None as the answer of a row that has none."""
    form = cast(Format, version.format)
    last = 0
    rows = Row.objects.filter(version=version, valid=True).order_by("line")
    while batch := list(rows.filter(line__gt=last).values_list("pk", "line", "raw")[:_ROWS]):
        last = batch[-1][1]
        of_rows: dict[int, list[str]] = {}
        found = Response.uploaded.filter(row__in=[pk for pk, _, _ in batch]).order_by(
            "row", "candidate", "number"
        )
        for row_id, raw in found.values_list("row_id", "raw"):
            of_rows.setdefault(row_id, []).append(raw)
        for pk, line, raw in batch:
            data = row_data(raw, form)
            for answer in of_rows.get(pk, [""]):
                yield line, *(row_and_response(data, answer) if answer else (data, None))


def reconcile() -> None:
    """Take up again what a dead worker held."""
    waiting = TemplateLint.objects.filter(result="", problem="")
    for pk, owner in waiting.exclude(owner="").values_list("pk", "owner"):
        if not workers.is_held(owner, TemplateLint, pk):
            TemplateLint.objects.filter(pk=pk, owner=owner).update(owner="")
    for pk in waiting.filter(owner="").values_list("pk", flat=True):
        workers.wake(tasks.lint_template, lint_id=pk)
