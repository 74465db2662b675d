"""What lint says about the metrics that a new run would use, before anything is paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datasets.models import Version
from evalsite.tasks import workers
from judging.core.lint.findings import Lint
from judging.lint_messages import sentence
from judging.metrics import lint
from judging.runs.selectors import MetricChoice

_SENTENCES = 3


@dataclass(frozen=True, slots=True)
class LintNote:
    """A metric whose prompts have findings over the rows, or are still being looked at (`waits`)."""

    choice: MetricChoice
    errors: int = 0
    warnings: int = 0
    sentences: tuple[str, ...] = ()
    waits: bool = False
    worker_missing: str = ""  # what keeps a worker from looking, see engine.obstacle


def lint_notes(version: Version, choices: Sequence[MetricChoice]) -> list[LintNote]:
    """A note for each metric that has something to say. Small versions are looked through here, large ones by a
    worker; what is known from the editor is not found out again."""
    notes = (_note(version, choice) for choice in choices if not choice.definition.rules)
    return [note for note in notes if note.waits or note.errors or note.warnings]


def _note(version: Version, choice: MetricChoice) -> LintNote:
    preprocess = choice.definition.preprocess
    asked = dict.fromkeys(judge.template for judge in choice.definition.judges)
    found = [lint.begin(version, template, preprocess if preprocess.strip() else "") for template in asked]
    done: list[Lint] = [result for one in found if (result := lint.result_of(one)) is not None]
    errors = [finding for one in done for finding in one.errors]
    warnings = [finding for one in done for finding in one.warnings]
    waits = any(not one.result and not one.problem for one in found)
    return LintNote(
        choice,
        len(errors),
        len(warnings),
        tuple(sentence(one) for one in (*errors, *warnings)[:_SENTENCES]),
        waits=waits,
        worker_missing=workers.obstacle(workers.DATA) if waits else "",
    )
