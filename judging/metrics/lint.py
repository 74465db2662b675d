"""Linting of templates and rule programs over all rows of a version: immediately for few rows, else by a worker.

Results are stored by hash of the texts, so that returning to an earlier wording shows them again.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from django.db.models import Sum
from django_tasks import task

from datasets.core.formats import Format
from datasets.core.variables import reference_data, reference_in, row_and_response, row_data
from datasets.models import Candidate, Response, Row, Version
from datasets.selectors import format_of
from evalsite.tasks import workers
from judging.core.lint import Answer, Lint, lint, subjects
from judging.core.rules.check import read_program
from judging.core.rules.lint import ReferenceLint, References
from judging.core.rules.python_blocks import run_code
from judging.core.rules.values import exact_json
from judging.core.sandbox.job import SandboxError
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import run_preprocess
from judging.metrics.models import TemplateLint
from judging.sandboxes import preview_sandbox, shared_sandbox

MAX_RESPONSES_AT_ONCE = 2_000  # linted within a request
MAX_REFERENCES_AT_ONCE = 5_000
_BATCH = 500  # rows read at a time
_KEPT = 500  # stored results; older ones are deleted
_REVISION = 2  # increased when stored results would lack a new kind of finding
Progress = Callable[[int], None]
Kind = TemplateLint.Kind

template_result = msgspec.json.Decoder(Lint).decode
rules_result = msgspec.json.Decoder(ReferenceLint).decode


def result_of(found: TemplateLint) -> Lint | None:
    """The result of a template lint; None while unfinished."""
    return template_result(found.result) if found.result else None


def size_of(version: Version) -> int:
    """The number of renders for a lint of this version: its responses, or its rows if there are more."""
    answers = Candidate.uploaded.filter(version=version).aggregate(Sum("responses"))["responses__sum"]
    return max(version.valid_rows, answers or 0)


def is_quick(version: Version, kind: Kind = Kind.TEMPLATE) -> bool:
    """Whether the lint is fast enough to run within a request."""
    if kind == Kind.RULES:
        return version.valid_rows <= MAX_REFERENCES_AT_ONCE
    return size_of(version) <= MAX_RESPONSES_AT_ONCE


def known(
    version: Version, template: str, preprocess: str, kind: Kind = Kind.TEMPLATE
) -> TemplateLint | None:
    """The stored or unfinished lint of these texts; None if there is none."""
    return TemplateLint.objects.filter(version=version, **_hashes(template, preprocess, kind)).first()


def begin(version: Version, template: str, preprocess: str, kind: Kind = Kind.TEMPLATE) -> TemplateLint:
    """Return the lint of these texts: the stored one, else run here if it is quick, else by a worker."""
    found, new = TemplateLint.objects.get_or_create(
        version=version,
        **_hashes(template, preprocess, kind),
        defaults={"template": template, "preprocess": preprocess, "kind": kind},
    )
    if found.problem:  # failed before: retry, since the cause may be gone
        TemplateLint.objects.filter(pk=found.pk).update(problem="", owner="")
    if new:
        _delete_oldest()
    if found.result:
        return found
    if is_quick(version, kind):
        work(found.pk, workers.owner(), sandbox=preview_sandbox())
    else:
        workers.wake(lint_template, lint_id=found.pk)
    found.refresh_from_db()
    return found


def _hashes(template: str, preprocess: str, kind: Kind) -> dict[str, str]:
    salted = f"{_REVISION}\0{kind}\0{template}"
    return {
        "template_hash": hashlib.sha256(salted.encode("utf-8", "surrogatepass")).hexdigest(),
        "preprocess_hash": hashlib.sha256(preprocess.encode("utf-8", "surrogatepass")).hexdigest(),
    }


def _delete_oldest() -> None:
    for pk in TemplateLint.objects.order_by("-pk").values_list("pk", flat=True)[_KEPT : _KEPT + 1]:
        TemplateLint.objects.filter(pk__lte=pk).delete()


# --- the work --------------------------------------------------------------------------------------------------


@task(queue_name=workers.DATA)
def lint_template(lint_id: int) -> None:
    """Lint over a large version, unless another worker already does."""
    work(lint_id, workers.owner(), stop=workers.stopping)


@workers.works_on(TemplateLint)
def work(
    lint_id: int,
    owner: str,
    *,
    stop: threading.Event | None = None,
    sandbox: Sandbox | None = None,
) -> None:
    """Run a lint, unless another process already does. `stop` releases it."""
    mine = TemplateLint.objects.filter(pk=lint_id, result="", problem="")
    if not mine.filter(owner="").update(owner=owner, subjects_done=0):
        return
    found = TemplateLint.objects.select_related("version").get(pk=lint_id)
    mine = mine.filter(owner=owner)
    run = _lint_rules if found.kind == Kind.RULES else _lint_template
    try:
        result = run(found, sandbox or shared_sandbox(), partial(_note_progress, found, stop))
    except SandboxError:
        mine.update(owner="", problem="prompt_refused")
    except Exception as error:  # no error may leave it owned, as it would never end
        retry = workers.may_retry(error, f"Lint {lint_id}")
        mine.update(owner="", problem="" if retry else workers.UNEXPECTED)
    else:
        mine.update(owner="", result=result, template="", preprocess="")


def _note_progress(found: TemplateLint, stop: threading.Event | None, done: int) -> None:
    if stop is not None and stop.is_set():
        raise workers.WorkStopped
    TemplateLint.objects.filter(pk=found.pk).update(subjects_done=done)


def reconcile() -> None:
    """Resume lints held by dead workers."""
    waiting = TemplateLint.objects.filter(result="", problem="")
    workers.reconcile_owned(waiting, lambda pk: workers.wake(lint_template, lint_id=pk))


# --- a template: every answer of every row ---------------------------------------------------------------------


def _lint_template(found: TemplateLint, sandbox: Sandbox, progress: Progress) -> str:
    answers = _counted(answers_of(found.version), progress)
    result = lint(sandbox, found.template, subjects(sandbox, answers, found.preprocess))
    return msgspec.json.encode(result).decode()


def _counted(answers: Iterator[Answer], progress: Progress) -> Iterator[Answer]:
    """The answers, with progress stored every 2000."""
    for count, answer in enumerate(answers):
        if count % 2_000 == 0 and count:
            progress(count)
        yield answer


def answers_of(version: Version) -> Iterator[Answer]:
    """Yield all answers of all valid rows, in line order. The answer is None for rows without any."""
    form = format_of(version)
    for batch in _batches(version):
        answers = _stored_answers(batch)
        for pk, line, raw in batch:
            data = row_data(raw, form)
            for answer in answers.get(pk, [""]):
                yield line, *(row_and_response(data, answer) if answer else (data, None))


def _batches(version: Version) -> Iterator[list[tuple[int, int, str]]]:
    """Yield (id, line, text) of the valid rows in line order, in batches."""
    last = 0
    rows = Row.objects.filter(version=version, valid=True).order_by("line")
    while batch := list(rows.filter(line__gt=last).values_list("pk", "line", "raw")[:_BATCH]):
        last = batch[-1][1]
        yield batch


def _stored_answers(batch: list[tuple[int, int, str]]) -> dict[int, list[str]]:
    """The uploaded answers of these rows, by row id."""
    found = Response.uploaded.filter(row__in=[pk for pk, _line, _raw in batch])
    answers: dict[int, list[str]] = defaultdict(list)
    for row_id, raw in found.order_by("row", "candidate", "number").values_list("row_id", "raw"):
        answers[row_id].append(raw)
    return answers


# --- a rule program: the reference of every row -----------------------------------------------------------------


def _lint_rules(found: TemplateLint, sandbox: Sandbox, progress: Progress) -> str:
    result = lint_references(found.version, found.template, found.preprocess, sandbox, progress)
    # Lone surrogates, which references may contain as escapes, become question marks.
    text = json.dumps(msgspec.to_builtins(result), ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()


def lint_references(
    version: Version,
    source: str,
    preprocess: str = "",
    sandbox: Sandbox | None = None,
    progress: Progress | None = None,
) -> ReferenceLint:
    """Check every reference of the version, after preprocess. `progress` gets the number checked so far."""
    program = read_program(source).program
    if program is None:  # only programs without errors are checked
        return ReferenceLint(0, 0, [])
    references = References(program, partial(run_code, sandbox) if sandbox else None)
    rest, done = references_of(version, preprocess, sandbox), 0
    while batch := list(islice(rest, _BATCH)):
        references.add(batch)
        done += len(batch)
        if progress:
            progress(done)
    return references.found()


def references_of(version: Version, preprocess: str, sandbox: Sandbox | None) -> Iterator[tuple[int, Any]]:
    """Yield (line, reference) of every valid row, in order."""
    form = format_of(version)
    for batch in _batches(version):
        found = [reference_data(raw, form, exact_json) for _pk, _line, raw in batch]
        if preprocess.strip() and sandbox:
            changes = _changed_by(sandbox, preprocess, batch, form)
            found = [data | fields for data, fields in zip(found, changes, strict=True)]
        for (_pk, line, _raw), data in zip(batch, found, strict=True):
            yield line, reference_in(data)


def _changed_by(
    sandbox: Sandbox, preprocess: str, batch: list[tuple[int, int, str]], form: Format
) -> list[dict[str, Any]]:
    """The fields that preprocess changes in each row's data, called with its first answer; empty if it fails."""
    answers = _stored_answers(batch)
    items = [row_and_response(row_data(raw, form), answers.get(pk, [""])[0]) for pk, _line, raw in batch]
    return [outcome.changed.get("data", {}) for outcome in run_preprocess(sandbox, preprocess, items)]
