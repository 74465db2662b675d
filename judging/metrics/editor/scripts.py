"""Scripts in the metric editor: checking, repairing, inserting recommended ones, and running them on the sample row.

postprocess needs judge replies: the one entered in the form, else the last reply on the sample's answer in a run of
this metric, else an example of what the template asks for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from django.http import QueryDict
from django.utils.translation import gettext_lazy

from datasets.core.kinds import COMPARISON
from datasets.models import Response
from evalsite.hooks import Hook
from evalsite.rounding import significant
from evalsite.truncation import truncate
from judging.core.judges.settings import JudgeSettings, build_request
from judging.core.metric_definition import MetricDefinition, Script
from judging.core.paste_repair import PasteRepair, repaired, repaired_pattern, repaired_program
from judging.core.pipeline import swapped_context, with_result
from judging.core.preparation import Prepared
from judging.core.prompts import render, render_item, script_arguments
from judging.core.replies import Parser
from judging.core.results import Context, JudgeCall
from judging.core.sandbox.job import SandboxError, SandboxFailure
from judging.core.scripts import (
    KINDS,
    RECOMMENDED,
    Recommended,
    ScriptKind,
    ScriptOutcome,
    failure_detail,
    load_failure,
    run_script,
    script_result,
)
from judging.messages import reason_sentence, repair_sentences
from judging.metrics.editor.samples import Sample, dotted
from judging.metrics.models import Metric
from judging.sandboxes import preview_sandbox

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

MAX_SHOWN = 2_000  # characters of a value


class ReplyHistory(Protocol):
    """Earlier judge replies in runs."""

    def newest_reply(self, metric_id: int, response: Response | None) -> str | None:
        """The newest reply about this response in a run of this metric."""
        ...

    def try_on_newest_runs(self, metric: Metric, judge: int, parser: Parser) -> Sequence[Any]:
        """Replies in the metric's newest runs, with the stored values and those that `parser` returns."""
        ...


reply_history: Hook[ReplyHistory] = Hook("judging.metrics.editor.scripts.reply_history")
"""The implementation, of runs, which import metrics."""

LABELS: dict[str, StrPromise] = {
    "strip_think": gettext_lazy("Strip <think>"),
    "json_field": gettext_lazy("Extract a JSON field"),
    "length": gettext_lazy("Answer length"),
    "comparison": gettext_lazy("Extract the comparison"),
    "mean": gettext_lazy("Mean of judges"),
    "majority": gettext_lazy("Majority of judges"),
}


RecommendedScripts = dict[ScriptKind, list[tuple[Recommended, "StrPromise"]]]


def recommended_scripts() -> RecommendedScripts:
    """Scripts to insert with one click, with their labels, by kind."""
    return {
        kind: [(script, LABELS[script.name]) for script in RECOMMENDED.values() if script.kind == kind]
        for kind in KINDS
    }


def with_script_change(typed: QueryDict) -> QueryDict:
    """The form data after its `change` button: `script:NAME` inserts a script, `repair:KIND` repairs one (both with
    `:FIELD` for one among the judge models), `repair:FIELD` repairs a judge model's regular expression, `repair:rules`
    a rule program."""
    action, _colon, name = typed.get("change", "").partition(":")
    name, _colon, field = name.partition(":")
    changed = typed.copy()
    if action == "script" and name in RECOMMENDED:
        changed[field or RECOMMENDED[name].kind] = RECOMMENDED[name].source
    elif action == "repair" and name in KINDS:
        field = field or name
        repair = repaired(typed.get(field, "").replace("\r\n", "\n"), name)
        changed[field] = repair.source if repair else typed.get(field, "")
    elif action == "repair" and name == "rules":
        program = repaired_program(typed.get(name, "").replace("\r\n", "\n"))
        changed[name] = program.source if program else typed.get(name, "")
    elif action == "repair" and name.endswith("-pattern"):
        changed[name] = repaired_pattern(typed.get(name, "")) or typed.get(name, "")
    return changed


def script_failure(kind: ScriptKind, source: str) -> SandboxFailure | None:
    """Why a script cannot be loaded; None if it can. Its function is not called."""
    try:
        return load_failure(preview_sandbox(), kind, source)
    except SandboxError as error:
        return SandboxFailure("refused", str(error))


def script_sentence(kind: ScriptKind, failure: SandboxFailure) -> str:
    """A message on why a script failed, with its line, as reported by runs."""
    return reason_sentence(f"script_{failure.code}", failure_detail(kind, failure))


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """The result of a script. `outcome` is None if it was only loaded, without a sample row."""

    kind: ScriptKind
    error: str = ""
    line: int | None = None
    outcome: ScriptOutcome | None = None
    reply: str = ""
    reply_from: str = ""  # typed, stored, example
    field: str = ""  # of the form
    repair: PasteRepair | None = None

    @property
    def repair_sentences(self) -> list[str]:
        return repair_sentences(self.repair) if self.repair else []

    @property
    def result_json(self) -> str:
        return json.dumps(self.outcome.result, ensure_ascii=False) if self.outcome else ""

    @property
    def changed(self) -> list[tuple[str, str]]:
        """Added or changed fields: (dotted name, JSON value)."""
        return [
            (dotted(root, name), truncate(json.dumps(value, ensure_ascii=False), MAX_SHOWN))
            for root, fields in (self.outcome.changed if self.outcome else {}).items()
            for name, value in fields.items()
        ]

    @property
    def milliseconds(self) -> float:
        return self.outcome.seconds * 1000 if self.outcome else 0.0


def script_runs(
    definition: MetricDefinition,
    sample: Sample | None,
    metric: int | None,
    typed_reply: str,
    swapped_reply: str | None = None,
) -> list[ScriptRun]:
    """Run the metric's scripts on the sample row, in order; each is run although another failed."""
    scripts = definition.scripts
    try:
        if sample is None:
            runs = [_loaded(script) for script in scripts]
        else:
            runs = _runs_on(sample, definition, metric, typed_reply, swapped_reply)
    except SandboxError:
        return [ScriptRun(script.kind, reason_sentence("script_refused")) for script in scripts]
    return [
        replace(run, repair=repaired(script.source, script.kind))
        for run, script in zip(runs, scripts, strict=True)
    ]


def value_run(
    definition: MetricDefinition, sample: Sample | None, reply: str, swapped_reply: str | None = None
) -> ScriptRun | None:
    """The last script that gives the value, on the sample row with this reply of every judge model; None without one or
    without a row.

    `swapped_reply`: the reply in the other order, if it is not the same.
    """
    if sample is None or not definition.value_scripts:
        return None
    return script_runs(definition, sample, None, reply, swapped_reply)[definition.value_scripts[-1]]


def _loaded(script: Script) -> ScriptRun:
    kind, failure = script.kind, script_failure(script.kind, script.source)
    return ScriptRun(kind, script_sentence(kind, failure), failure.line) if failure else ScriptRun(kind)


def _runs_on(
    sample: Sample,
    definition: MetricDefinition,
    metric: int | None,
    typed_reply: str,
    swapped_reply: str | None,
) -> list[ScriptRun]:
    runs: list[ScriptRun] = []
    context, reply, reply_from = Context(sample.item_for(definition)), "", ""
    stages = definition.stages
    while stages and isinstance(stages[-1], range):
        stages.pop()  # no script sees its replies
    for stage in stages:
        if isinstance(stage, range):
            reply, reply_from = _reply(definition, sample, metric, typed_reply)
            context = replace(context, calls=_answered(definition, stage, context, reply, swapped_reply))
            continue
        script = definition.scripts[stage]
        arguments = script_arguments(definition.judges, context)
        (outcome,) = run_script(preview_sandbox(), script.kind, script.source, [arguments])
        context = with_result(context, script, script_result(script.kind, outcome))
        runs.append(replace(_run(script.kind, outcome), reply=reply, reply_from=reply_from))
    return runs


def failed_sentence(scripts: Sequence[Script], result: Prepared) -> str:
    """A message on why the last script that ran failed."""
    assert result.failure is not None
    return script_sentence(scripts[len(result.outcomes) - 1].kind, result.failure)


def _run(kind: ScriptKind, outcome: ScriptOutcome) -> ScriptRun:
    failure = outcome.failure
    if failure is None:
        return ScriptRun(kind, outcome=outcome)
    return ScriptRun(kind, script_sentence(kind, failure), failure.line, outcome)


def _reply(definition: MetricDefinition, sample: Sample, metric: int | None, typed: str) -> tuple[str, str]:
    """The sample reply used for every judge model, and its origin."""
    if typed.strip():
        return typed, "typed"
    stored = reply_history[0].newest_reply(metric, sample.response) if metric is not None else None
    if stored is not None:
        return stored, "stored"
    compares = definition.asks_for == COMPARISON
    return ("[[B>A]]" if compares else f"Score: [[{significant(definition.max_score, 6)}]]"), "example"


def _answered(
    definition: MetricDefinition, row: range, context: Context, reply: str, swapped_reply: str | None
) -> tuple[JudgeCall, ...]:
    """The calls so far and those of the judges in a row, answered with the same reply, or one for each order."""
    calls = context.calls
    for number in row if definition.judges else ():
        judge = definition.judges[number]
        earlier = replace(context, calls=calls)
        orders = {False: earlier, True: swapped_context(earlier) if judge.both_orders else None}
        for swapped, seen in orders.items():
            if seen is None:
                continue
            request = build_request(
                JudgeSettings(judge.url, judge.model, params=judge.params, system_prompt=judge.system_prompt),
                _prompt(definition, number, seen),
            )
            content = swapped_reply if swapped and swapped_reply is not None else reply
            answer: dict[str, Any] = {"content": content, "reasoning_content": None, "tool_calls": None}
            calls += tuple(
                JudgeCall(number, repeat, request, answer, None, [], swapped=swapped)
                for repeat in range(judge.repeats)
            )
    return tuple(sorted(calls, key=lambda call: call.place))


def _prompt(definition: MetricDefinition, number: int, context: Context) -> str:
    item = render_item(context, definition)
    (rendered,) = render(preview_sandbox(), definition.judges[number].template, [item], "lenient")
    return rendered.text or ""
