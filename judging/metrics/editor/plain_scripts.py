"""The two scripts of the metric forms: one preprocess before all judges and one postprocess after them."""

from __future__ import annotations

import msgspec
from django.http import QueryDict

from judging.core.metric_definition import MetricDefinition, Script
from judging.core.scripts import ScriptKind
from judging.metrics.editor.judge_forms import unified


def is_plain(definition: MetricDefinition) -> bool:
    """Whether the forms can show its scripts."""
    kinds = [script.kind for script in definition.scripts]
    placed = all(
        script.after == (0 if script.kind == "preprocess" else definition.judging_steps)
        for script in definition.scripts
    )
    return placed and kinds in ([], ["preprocess"], ["postprocess"], ["preprocess", "postprocess"])


def source_of(definition: MetricDefinition, kind: ScriptKind) -> str:
    """The source of its script of this kind; '' without one, or if it is not plain."""
    scripts = definition.scripts if is_plain(definition) else ()
    return next((script.source for script in scripts if script.kind == kind), "")


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
