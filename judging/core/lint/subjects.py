"""From rows with their answers to what a template sees of them: the same for a file and for a stored version."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from judging.core.lint.run import Subject
from judging.core.prompts import RenderItem
from judging.core.sandbox.job import Failure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess

Answer = tuple[
    int, dict[str, Any], dict[str, Any] | None
]  # a row's line, its data, one of its answers or None

_SCRIPT_BATCH = 500


def subjects(sandbox: Sandbox, answers: Iterable[Answer], script: str | None) -> Iterator[Subject]:
    """What the template sees of each answer, after the preprocess script if there is one."""
    rest = iter(answers)
    if not script:
        for line, data, response in rest:
            yield line, RenderItem(data, response)
        return
    while batch := list(islice(rest, _SCRIPT_BATCH)):
        ran = run_preprocess(sandbox, script, [(data, response or {}) for _line, data, response in batch])
        for (line, data, response), outcome in zip(batch, ran, strict=True):
            yield line, _after(outcome, data, response)


def _after(
    outcome: ScriptOutcome, data: dict[str, Any], response: dict[str, Any] | None
) -> RenderItem | Failure:
    if outcome.failure:
        return outcome.failure
    added = outcome.changed["response"]
    seen = response if response is None and not added else (response or {}) | added
    return RenderItem(data | outcome.changed["data"], seen, outcome.result)
