"""What templates and postprocess scripts see of a judgement in progress."""

from __future__ import annotations

from typing import Any

from judging.core.metric_definition import MetricDefinition
from judging.core.prompts import RenderItem
from judging.core.results import Context


def render_item(context: Context, metric: MetricDefinition) -> RenderItem:
    """What a template sees."""
    return RenderItem(
        data=context.item.data,
        response=context.item.response,
        preprocess_result=context.preprocess_result,
        judge_resps=tuple(asked.as_seen() for asked in context.asked),
        judge_reqs=tuple(asked.request for asked in context.asked),
        min_score=metric.min_score,
        max_score=metric.max_score,
    )


def postprocess_arguments(metric: MetricDefinition, context: Context) -> dict[str, Any]:
    """The five parameters of `postprocess` (docs/prompts.md)."""
    return {
        "judge_reqs": [asked.request for asked in context.asked],
        "judge_resps": [asked.as_seen() for asked in context.asked],
        "judge_models": [_judge_model(metric, asked.judge) for asked in context.asked],
        "data": context.item.data,
        "resp": context.item.response,
    }


def _judge_model(metric: MetricDefinition, number: int) -> dict[str, Any]:
    judge = metric.judges[number]
    seen: dict[str, Any] = {"name": judge.name, "judge_template_content": judge.template}
    if judge.params:
        seen["generation_params"] = judge.params
    if judge.system_prompt:
        seen["system_prompt"] = judge.system_prompt
    return seen
