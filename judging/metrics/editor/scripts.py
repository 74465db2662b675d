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
from evalsite.rounding import significant
from evalsite.truncation import truncate
from judging.core.judges.settings import JudgeSettings, build_request
from judging.core.metric_definition import MetricDefinition
from judging.core.paste_repair import PasteRepair, repaired, repaired_pattern, repaired_program
from judging.core.pipeline import swapped_context, with_changes
from judging.core.prompts import postprocess_arguments, render, render_item
from judging.core.replies import Parser
from judging.core.results import Context, JudgeCall, JudgedItem
from judging.core.sandbox.job import SandboxError, SandboxFailure
from judging.core.scripts import (
    KINDS,
    RECOMMENDED,
    Recommended,
    ScriptKind,
    ScriptOutcome,
    failure_detail,
    load_failure,
    run_postprocess,
    run_preprocess,
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


reply_history: list[ReplyHistory] = []
"""The implementation. Runs import metrics, so they register it at startup (apps.py)."""

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
    """The form data after its `change` button: `script:NAME` inserts a script, `repair:KIND` repairs one,
    `repair:FIELD` repairs a judge model's regular expression, `repair:rules` a rule program."""
    action, _colon, name = typed.get("change", "").partition(":")
    changed = typed.copy()
    if action == "script" and name in RECOMMENDED:
        changed[RECOMMENDED[name].kind] = RECOMMENDED[name].source
    elif action == "repair" and name in KINDS:
        repair = repaired(typed.get(name, "").replace("\r\n", "\n"), name)
        changed[name] = repair.source if repair else typed.get(name, "")
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
) -> dict[str, ScriptRun]:
    """Run each of the metric's scripts on the sample row. Returns results by kind."""
    sources = {kind: source for kind in KINDS if (source := getattr(definition, kind)).strip()}
    try:
        if sample is None:
            runs = {kind: _loaded(kind, source) for kind, source in sources.items()}
        else:
            runs = _runs_on(sample, definition, metric, typed_reply, swapped_reply)
    except SandboxError:
        return {kind: ScriptRun(kind, reason_sentence("script_refused")) for kind in sources}
    return {kind: replace(run, repair=repaired(sources[run.kind], run.kind)) for kind, run in runs.items()}


def postprocess_run(
    definition: MetricDefinition, sample: Sample | None, reply: str, swapped_reply: str | None = None
) -> ScriptRun | None:
    """The postprocess on the sample row with this reply of every judge model; None without one or without a row.

    `swapped_reply`: the reply in the other order, if it is not the same.
    """
    if sample is None or not definition.postprocess.strip():
        return None
    return script_runs(definition, sample, None, reply, swapped_reply)["postprocess"]


def _loaded(kind: ScriptKind, source: str) -> ScriptRun:
    failure = script_failure(kind, source)
    return ScriptRun(kind, script_sentence(kind, failure), failure.line) if failure else ScriptRun(kind)


def _runs_on(
    sample: Sample,
    definition: MetricDefinition,
    metric: int | None,
    typed_reply: str,
    swapped_reply: str | None,
) -> dict[ScriptKind, ScriptRun]:
    runs: dict[ScriptKind, ScriptRun] = {}
    context, before = prepared_context(definition.preprocess, sample.item_for(definition))
    if before is not None:
        runs["preprocess"] = _run("preprocess", before)
    if definition.postprocess.strip():
        reply, reply_from = _reply(definition, sample, metric, typed_reply)
        context = replace(context, calls=_answered(definition, context, reply, swapped_reply))
        arguments = postprocess_arguments(definition, context)
        (after,) = run_postprocess(preview_sandbox(), definition.postprocess, [arguments])
        runs["postprocess"] = replace(_run("postprocess", after), reply=reply, reply_from=reply_from)
    return runs


def prepared_context(source: str, item: JudgedItem) -> tuple[Context, ScriptOutcome | None]:
    """The item as the template sees it, and the script's outcome, if there is one. Raises SandboxError."""
    if not source.strip():
        return Context(item), None
    (outcome,) = run_preprocess(preview_sandbox(), source, [(item.data, item.response)], others=[item.other])
    if outcome.failure is not None:
        return Context(item), outcome
    return Context(with_changes(item, outcome.changed), outcome.result), outcome


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
    definition: MetricDefinition, context: Context, reply: str, swapped_reply: str | None
) -> tuple[JudgeCall, ...]:
    """All the metric's judge calls, answered with the same reply, or one for each order."""
    calls: tuple[JudgeCall, ...] = ()
    for number, judge in enumerate(definition.judges):
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
