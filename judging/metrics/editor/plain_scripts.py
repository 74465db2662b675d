"""The two scripts at the ends of the metric forms: a preprocess before all other steps, a postprocess after them."""

from __future__ import annotations

import msgspec
from django.http import QueryDict

from judging.core.metric_definition import MetricDefinition, Script
from judging.core.scripts import ScriptKind
from judging.metrics.editor.judge_forms import unified


def end_scripts(definition: MetricDefinition) -> dict[ScriptKind, int]:
    """The numbers of a preprocess before all other steps and of a postprocess after them, as far as there are any."""
    scripts, ends = definition.scripts, dict[ScriptKind, int]()
    if scripts and scripts[0].kind == "preprocess" and not scripts[0].after:
        ends["preprocess"] = 0
    if scripts and scripts[-1].kind == "postprocess" and scripts[-1].after == definition.judging_steps:
        ends["postprocess"] = len(scripts) - 1
    return ends


def is_plain(definition: MetricDefinition) -> bool:
    """Whether it has no other scripts."""
    return len(end_scripts(definition)) == len(definition.scripts)


def source_of(definition: MetricDefinition, kind: ScriptKind) -> str:
    """The source of its script of this kind at an end; '' without one."""
    number = end_scripts(definition).get(kind)
    return "" if number is None else definition.scripts[number].source


def with_sources(
    definition: MetricDefinition, before: MetricDefinition, preprocess: str, postprocess: str
) -> MetricDefinition:
    """The definition with these scripts; with those of `before` if they are not plain."""
    steps = definition.judging_steps
    if is_plain(before):
        both = (
            Script(kind="preprocess", source=preprocess),
            Script(kind="postprocess", source=postprocess, after=steps),
        )
        scripts = tuple(script for script in both if script.source.strip())
    else:
        scripts = tuple(
            msgspec.structs.replace(script, after=min(script.after, steps)) for script in before.scripts
        )
    return msgspec.structs.replace(definition, scripts=scripts)


def typed_scripts(before: MetricDefinition, typed: QueryDict) -> tuple[Script, ...]:
    """The scripts before the rules, as submitted."""
    source = unified(typed.get("preprocess", source_of(before, "preprocess")))
    return with_sources(before, before, source, "").first_scripts
