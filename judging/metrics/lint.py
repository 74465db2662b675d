"""Linting of templates and rule programs over all rows of a version: immediately for few rows, else by a worker.

Results are stored by hash of the texts, as versions don't change, so that returning to an earlier wording shows them
again.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Sum

from datasets.core.formats import Format
from datasets.core.variables import reference_data, reference_in, row_and_response, row_data
from datasets.models import Candidate, Response, Row, Version
from datasets.selectors import format_of
from evalsite.derived import Part, Results
from evalsite.models import Derived, Job
from evalsite.tasks import jobs
from evalsite.tasks.jobs import Hold
from judging.core.lint import Answer, Lint, lint, subjects
from judging.core.metric_definition import Script
from judging.core.preparation import prepared
from judging.core.results import JudgedItem
from judging.core.rules.check import read_program
from judging.core.rules.lint import ReferenceLint, References
from judging.core.rules.python_blocks import run_code
from judging.core.rules.values import exact_json
from judging.core.sandbox.job import SandboxError
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptKind
from judging.sandboxes import preview_sandbox, shared_sandbox

JOB = "lint_template"
MAX_RESPONSES_AT_ONCE = 2_000  # linted within a request
MAX_REFERENCES_AT_ONCE = 5_000
_BATCH = 500  # rows read at a time
_KEPT = 500  # stored results; older ones are deleted
TEMPLATE = Results("template_lint", 2)  # Lint as JSON; increase the layout for a new kind of finding
RULES = Results("rules_lint", 1)  # ReferenceLint as JSON; likewise
OF_VERSION = (TEMPLATE, RULES)
Progress = Callable[[int], None]
Scripts = Sequence[Script]

template_result = msgspec.json.Decoder(Lint).decode
rules_result = msgspec.json.Decoder(ReferenceLint).decode


@dataclass(frozen=True, slots=True)
class StoredLint:
    """A lint, whose result is stored (as JSON) or has a job that waits, is being done or failed."""

    pk: int
    kind: Results
    result: bytes | None
    job: Job | None

    @property
    def problem(self) -> str:
        """The code of the reason why it failed."""
        return self.job.problem if self.job else ""

    @property
    def waits(self) -> bool:
        return self.result is None and not self.problem


def _stored(kind: Results, row: Derived) -> StoredLint:
    if row.layout:
        return StoredLint(row.pk, kind, bytes(row.value), None)
    return StoredLint(row.pk, kind, None, jobs.of(JOB, row.pk))


def result_of(stored: StoredLint) -> Lint | None:
    """The result of a template lint; None while unfinished."""
    return None if stored.result is None else template_result(stored.result)


def size_of(version: Version) -> int:
    """The number of renders for a lint of this version: its responses, or its rows if there are more."""
    answers = Candidate.uploaded.filter(version=version).aggregate(Sum("responses"))["responses__sum"]
    return max(version.valid_rows, answers or 0)


def is_quick(version: Version, kind: Results = TEMPLATE) -> bool:
    """Whether the lint is fast enough to run within a request."""
    if kind == RULES:
        return version.valid_rows <= MAX_REFERENCES_AT_ONCE
    return size_of(version) <= MAX_RESPONSES_AT_ONCE


def load(
    version: Version,
    template: str,
    scripts: Scripts = (),
    kind: Results = TEMPLATE,
    *,
    of_pairs: bool = False,
) -> StoredLint | None:
    """The stored or unfinished lint of these texts; None if there is none. `scripts`: those before the first judge."""
    row = kind.placed(version.pk, *_part(template, scripts, of_pairs=of_pairs))
    return _stored(kind, row) if row else None


def request(
    version: Version,
    template: str,
    scripts: Scripts = (),
    kind: Results = TEMPLATE,
    *,
    of_pairs: bool = False,
) -> StoredLint:
    """Return the lint of these texts: the stored one, else run here if it is quick, else by a worker. `of_pairs`: the
    template compares candidates."""
    stored = load(version, template, scripts, kind, of_pairs=of_pairs)
    if stored is None:
        inputs = json.dumps([template, _by_kind(scripts), of_pairs]).encode()
        part = _part(template, scripts, of_pairs=of_pairs)
        stored = _stored(kind, kind.place(version.pk, *part, inputs=inputs))
        _delete_oldest()
    if stored.result is not None:
        return stored
    quick = is_quick(version, kind)
    jobs.request(JOB, stored.pk, here=quick)
    if quick:
        jobs.run(JOB, stored.pk, sandbox=preview_sandbox())
    return load(version, template, scripts, kind, of_pairs=of_pairs) or stored


def _part(template: str, scripts: Scripts, *, of_pairs: bool) -> Part:
    texts = (template, json.dumps([_by_kind(scripts), of_pairs]))
    return tuple(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts)


def _by_kind(scripts: Scripts) -> list[tuple[ScriptKind, str]]:
    return [(script.kind, script.source) for script in scripts]


def _delete_oldest() -> None:
    rows = Derived.objects.filter(kind__in=[kind.kind for kind in OF_VERSION])
    for pk in rows.order_by("-pk").values_list("pk", flat=True)[_KEPT : _KEPT + 1]:
        rows.filter(pk__lte=pk).delete()


# --- the work --------------------------------------------------------------------------------------------------


def _failed(hold: Hold, _row: Derived, error: Exception) -> None:
    if isinstance(error, SandboxError):
        hold.fail("prompt_refused")
    else:
        hold.problem(error)
        hold.fail(jobs.UNEXPECTED)


@jobs.job(JOB, Derived, failed=_failed)
def lint_template(hold: Hold, row: Derived, sandbox: Sandbox | None = None) -> None:
    """Run a lint; `done` counts the answers or references."""
    version = Version.objects.filter(pk=row.subject).first()
    if row.layout or version is None:  # done, or deleted
        return
    text, by_kind, *of_pairs = json.loads(bytes(row.value))
    if isinstance(by_kind, str):  # requested before an upgrade
        by_kind = [("preprocess", by_kind)] if by_kind else []
    kind, run = TEMPLATE, partial(_lint_template, of_pairs=of_pairs == [True])
    if row.kind == RULES.kind:
        kind, run = RULES, partial(_lint_rules)
    scripts = [Script(kind=script, source=source) for script, source in by_kind]
    result = run(version, text, scripts, sandbox or shared_sandbox(), partial(_progress, hold))
    with transaction.atomic():
        hold.finish()
        kind.fill(row, result)


def _progress(hold: Hold, done: int) -> None:
    hold.check()
    hold.renew(done=done)


# --- a template: every answer of every row ---------------------------------------------------------------------


def _lint_template(
    version: Version, template: str, scripts: Scripts, sandbox: Sandbox, progress: Progress, *, of_pairs: bool
) -> bytes:
    linted = subjects(sandbox, _counted(answers_of(version), progress), scripts, of_pairs=of_pairs)
    return msgspec.json.encode(lint(sandbox, template, linted, of_pairs=of_pairs))


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
    responses = Response.uploaded.filter(row__in=[pk for pk, _line, _raw in batch])
    answers: dict[int, list[str]] = defaultdict(list)
    for row_id, raw in responses.order_by("row", "candidate", "number").values_list("row_id", "raw"):
        answers[row_id].append(raw)
    return answers


# --- a rule program: the reference of every row -----------------------------------------------------------------


def _lint_rules(
    version: Version, source: str, scripts: Scripts, sandbox: Sandbox, progress: Progress
) -> bytes:
    result = lint_references(version, source, scripts, sandbox, progress)
    # Lone surrogates, which references may contain as escapes, become question marks.
    text = json.dumps(msgspec.to_builtins(result), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def lint_references(
    version: Version,
    source: str,
    scripts: Scripts = (),
    sandbox: Sandbox | None = None,
    progress: Progress | None = None,
) -> ReferenceLint:
    """Check every reference of the version, after the scripts. `progress` gets the number checked so far."""
    program = read_program(source).program
    if program is None:  # only programs without errors are checked
        return ReferenceLint(0, 0, [])
    references = References(program, partial(run_code, sandbox) if sandbox else None)
    rest, done = references_of(version, scripts, sandbox), 0
    while batch := list(islice(rest, _BATCH)):
        references.add(batch)
        done += len(batch)
        if progress:
            progress(done)
    return references.result()


def references_of(version: Version, scripts: Scripts, sandbox: Sandbox | None) -> Iterator[tuple[int, Any]]:
    """Yield (line, reference) of every valid row, in order."""
    form = format_of(version)
    for batch in _batches(version):
        decoded = [reference_data(raw, form, exact_json) for _pk, _line, raw in batch]
        if scripts and sandbox:
            changes = _changed_by(sandbox, scripts, batch, form)
            decoded = [data | fields for data, fields in zip(decoded, changes, strict=True)]
        for (_pk, line, _raw), data in zip(batch, decoded, strict=True):
            yield line, reference_in(data)


def _changed_by(
    sandbox: Sandbox, scripts: Scripts, batch: list[tuple[int, int, str]], form: Format
) -> list[dict[str, Any]]:
    """The fields that the scripts change in each row's data, called with its first answer, until one fails."""
    answers = _stored_answers(batch)
    pairs = [row_and_response(row_data(raw, form), answers.get(pk, [""])[0]) for pk, _line, raw in batch]
    ran = prepared(sandbox, scripts, [JudgedItem(*pair) for pair in pairs])
    return [
        {
            name: value
            for outcome in result.outcomes
            for name, value in outcome.changed.get("data", {}).items()
        }
        for result in ran
    ]
