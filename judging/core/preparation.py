"""Runs the scripts of a metric that come before its first judge, for previews and lints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judging.core.metric_definition import Script
from judging.core.pipeline import with_result
from judging.core.prompts import script_arguments
from judging.core.results import Context, JudgedItem
from judging.core.sandbox.job import SandboxFailure
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_script, script_result


@dataclass(slots=True)
class Prepared:
    """An item as the first judge sees it, and the outcomes of the scripts that ran; after a failure none runs."""

    context: Context
    outcomes: list[ScriptOutcome]

    @property
    def failure(self) -> SandboxFailure | None:
        return self.outcomes[-1].failure if self.outcomes else None


def prepared(sandbox: Sandbox, scripts: Sequence[Script], items: Sequence[JudgedItem]) -> list[Prepared]:
    """Run the scripts one after the other on all items. Raises SandboxError."""
    results = [Prepared(Context(item), []) for item in items]
    for script in scripts:
        running = [result for result in results if result.failure is None]
        arguments = [script_arguments((), result.context) for result in running]
        outcomes = run_script(sandbox, script.kind, script.source, arguments)
        for result, outcome in zip(running, outcomes, strict=True):
            result.outcomes.append(outcome)
            result.context = with_result(result.context, script, script_result(script.kind, outcome))
    return results
