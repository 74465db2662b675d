"""The scripts that are being written: loaded, and run on the sample row within limits fit for typing.

postprocess needs judges' replies. They are those that are typed beside it; else what was last said about the sample's
answer in a run of this metric; else one such as the template asks for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from judging.core.jail.keeper import JailBroken
from judging.core.jail.pool import JailRefused
from judging.core.judges.settings import JudgeSettings, build_request
from judging.core.metric_definition import MetricDefinition
from judging.core.pasted import Repair, repaired
from judging.core.pipeline import with_changes
from judging.core.prompts import render
from judging.core.results import Context, JudgeCall
from judging.core.scripts import KINDS, ScriptKind, ScriptOutcome, run_postprocess, run_preprocess
from judging.core.template_context import postprocess_arguments, render_item
from judging.messages import reason_sentence
from judging.metrics import preview, samples
from judging.metrics.judge_forms import script_sentence
from judging.metrics.samples import Sample
from judging.runs.models import Judgement, JudgeReply

_MOST_SHOWN = 2_000  # characters of a value


@dataclass(frozen=True, slots=True)
class ScriptRun:
    """What a script does: `outcome` None where there is no sample row, and only its loading was tried."""

    kind: ScriptKind
    error: str = ""
    line: int | None = None
    outcome: ScriptOutcome | None = None
    reply: str = ""
    reply_from: str = ""  # typed, stored, example
    repair: Repair | None = None

    @property
    def result_json(self) -> str:
        return json.dumps(self.outcome.result, ensure_ascii=False) if self.outcome else ""

    @property
    def changed(self) -> list[tuple[str, str]]:
        """The fields that it added or changed, by dotted name, as JSON."""
        return [
            (samples.dotted(root, name), json.dumps(value, ensure_ascii=False)[:_MOST_SHOWN])
            for root, fields in (self.outcome.changed if self.outcome else {}).items()
            for name, value in fields.items()
        ]

    @property
    def milliseconds(self) -> float:
        return round(self.outcome.seconds * 1000, 2) if self.outcome else 0.0


def script_runs(
    definition: MetricDefinition, sample: Sample | None, metric: int | None, typed_reply: str
) -> dict[str, ScriptRun]:
    """What each script that there is does to the sample row, by its name."""
    try:
        runs = _runs(definition, sample, metric, typed_reply)
        return {kind: replace(run, repair=repaired(getattr(definition, kind))) for kind, run in runs.items()}
    except (JailRefused, JailBroken):
        sentence = reason_sentence("script_refused")
        kinds = [kind for kind in KINDS if getattr(definition, kind).strip()]
        return {kind: ScriptRun(kind, sentence) for kind in kinds}


def _runs(
    definition: MetricDefinition, sample: Sample | None, metric: int | None, typed_reply: str
) -> dict[str, ScriptRun]:
    if sample is None:
        return {
            kind: _loaded(kind, source) for kind in KINDS if (source := getattr(definition, kind)).strip()
        }
    found: dict[str, ScriptRun] = {}
    context = Context(sample.item)
    if definition.preprocess.strip():
        item = sample.item
        (before,) = run_preprocess(preview.shared_jail(), definition.preprocess, [(item.data, item.response)])
        found["preprocess"] = _shown("preprocess", before)
        if before.failure is None:
            context = Context(with_changes(item, before.changed), before.result)
    if definition.postprocess.strip():
        reply, reply_from = _reply(definition, sample, metric, typed_reply)
        context = replace(context, asked=_asked(definition, context, reply))
        arguments = postprocess_arguments(definition, context)
        (after,) = run_postprocess(preview.shared_jail(), definition.postprocess, [arguments])
        found["postprocess"] = replace(_shown("postprocess", after), reply=reply, reply_from=reply_from)
    return found


def _loaded(kind: ScriptKind, source: str) -> ScriptRun:
    failure = preview.script_failure(kind, source)
    return ScriptRun(
        kind, script_sentence(kind, failure) if failure else "", failure.line if failure else None
    )


def _shown(kind: ScriptKind, outcome: ScriptOutcome) -> ScriptRun:
    failure = outcome.failure
    if failure is None:
        return ScriptRun(kind, outcome=outcome)
    return ScriptRun(kind, script_sentence(kind, failure), failure.line, outcome)


def _reply(definition: MetricDefinition, sample: Sample, metric: int | None, typed: str) -> tuple[str, str]:
    """The reply that every judge model is taken to give, and where it comes from."""
    if typed.strip():
        return typed, "typed"
    stored = _stored_reply(sample, metric) if metric is not None else None
    if stored is not None:
        return stored, "stored"
    compares = any(judge.parse == "comparison" for judge in definition.judges)
    return ("[[B>A]]" if compares else f"Score: [[{definition.max_score:g}]]"), "example"


def _stored_reply(sample: Sample, metric: int) -> str | None:
    judged = Judgement.objects.by_metrics().filter(response=sample.response, other_response=None)
    newest = judged.filter(run_metric__metric_version__metric=metric).order_by("-pk").first()
    if newest is None:
        return None
    replies = JudgeReply.objects.filter(judgement=newest.asked_by_id or newest.pk).exclude(content=None)
    return replies.order_by("judge", "repeat", "swapped").values_list("content", flat=True).first()


def _asked(definition: MetricDefinition, context: Context, reply: str) -> tuple[JudgeCall, ...]:
    """Every question that the metric asks, answered alike."""
    asked: tuple[JudgeCall, ...] = ()
    for number, judge in enumerate(definition.judges):
        request = build_request(
            JudgeSettings(judge.url, judge.model, params=judge.params, system_prompt=judge.system_prompt),
            _prompt(definition, number, replace(context, asked=asked)),
        )
        seen: dict[str, Any] = {"content": reply, "reasoning_content": None, "tool_calls": None}
        asked += tuple(
            JudgeCall(number, repeat, request, seen, None, [], swapped=swapped)
            for repeat in range(judge.repeats)
            for swapped in ((False, True) if judge.both_orders else (False,))
        )
    return asked


def _prompt(definition: MetricDefinition, number: int, context: Context) -> str:
    item = render_item(context, definition)
    (rendered,) = render(preview.shared_jail(), definition.judges[number].template, [item], "lenient")
    return rendered.text or ""
