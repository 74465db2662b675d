"""Whether a metric asks its judges for structured output, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from judging.core.builtin import BUILTINS
from judging.core.judges.protocols.protocol import JSON_SCHEMA, STRUCTURED
from judging.core.judges.structured import described, parameters, schema_of
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.reading.gives import Gives

ANSWER_FORMAT = "answer_format"
"""The variable with which a template says how to answer; it leaves the form to us."""


@dataclass(frozen=True)
class Structure:
    """The structured output that a judge is asked for."""

    mode: str
    gives: Gives

    @cached_property
    def schema(self) -> dict[str, Any]:
        return schema_of(self.gives)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        return parameters(self.mode, self.schema)

    def described(self, prompt: str) -> str:
        return described(prompt, self.mode, self.schema)


def structure_for(metric: MetricDefinition, judge: JudgeModel, honoured: str) -> Structure | None:
    """The structured output to ask a judge for; None without any. `honoured`: the form that its server is known to
    honour, '' if that was not tested.

    `auto`: only where it was tested and nothing but our own reader needs the reply. `on`: where it was not tested, the
    first request finds out.
    """
    if metric.structured == "off" or metric.rules or metric.at_once:
        return None
    if metric.structured == "auto" and not _read_by_us_alone(metric, judge):
        return None
    mode = JSON_SCHEMA if metric.structured == "on" and not honoured else honoured
    return Structure(mode, metric.reading_of(judge)) if mode in STRUCTURED else None


def _read_by_us_alone(metric: MetricDefinition, judge: JudgeModel) -> bool:
    ours = ANSWER_FORMAT in judge.template or any(
        judge.template == known.source for known in BUILTINS.values()
    )
    return ours and isinstance(judge.parse, str) and not metric.value_scripts
