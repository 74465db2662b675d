"""The two scripts at the ends of the metric forms: a preprocess before all other steps, a postprocess after them."""

from __future__ import annotations

from judging.core.metric_definition import MetricDefinition
from judging.core.scripts import ScriptKind


def end_scripts(definition: MetricDefinition) -> dict[ScriptKind, int]:
    """The numbers of a preprocess before all other steps and of a postprocess after them, as far as there are any."""
    scripts, ends = definition.scripts, dict[ScriptKind, int]()
    if scripts and scripts[0].kind == "preprocess" and not scripts[0].after:
        ends["preprocess"] = 0
    if scripts and scripts[-1].kind == "postprocess" and scripts[-1].after == definition.judging_steps:
        ends["postprocess"] = len(scripts) - 1
    return ends


def source_of(definition: MetricDefinition, kind: ScriptKind) -> str:
    """The source of its script of this kind at an end; '' without one."""
    number = end_scripts(definition).get(kind)
    return "" if number is None else definition.scripts[number].source
