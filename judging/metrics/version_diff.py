"""Differences between two versions of a metric, with localized names."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from judging.core.metric_definition import MetricDefinition
from judging.core.metric_diff import MetricPart, TextChange, as_text, difference
from judging.metrics.selectors import endpoint_names

FIELD_NAMES: dict[str, Promise | str] = {
    "name": gettext_lazy("Name"),
    "min_score": gettext_lazy("Lowest score"),
    "max_score": gettext_lazy("Highest score"),
    "gives": gettext_lazy("What the judge gives"),
    "labels": gettext_lazy("Labels"),
    "compares": gettext_lazy("Compared with"),
    "baseline": gettext_lazy("Baseline"),
    "both_bad": gettext_lazy("“Both bad” offered"),
    "three_steps": gettext_lazy("Three steps only"),
    "any_pairs": gettext_lazy("Every pair of candidates"),
    "all_answers": gettext_lazy("Every answer with every other"),
    "whole": gettext_lazy("Whole numbers only"),
    "step": gettext_lazy("Step"),
    "at_once": gettext_lazy("All criteria in one request"),
    "undefined": gettext_lazy("Undefined variables"),
    "sandbox": gettext_lazy("Scripts run"),
    "jury": gettext_lazy("Combine multiple judgements by"),
    "steps": gettext_lazy("Order of steps"),
    "quorum": gettext_lazy("Minimum valid votes"),
    "ask_again": gettext_lazy("If a reply can't be read"),
    "structured": gettext_lazy("Structured output"),
    "endpoint": gettext_lazy("Endpoint"),
    "url": gettext_lazy("Address"),
    "model": gettext_lazy("Model"),
    "protocol": gettext_lazy("Protocol"),
    "api_key_env": gettext_lazy("API key variable"),
    "params": gettext_lazy("Generation parameters"),
    "parse": gettext_lazy("Read from the reply"),
    "repeats": gettext_lazy("Repeats"),
    "both_orders": gettext_lazy("Judged in both orders"),
    "system_prompt": gettext_lazy("System prompt"),
    "template": gettext_lazy("Prompt template"),
    "preprocess": "preprocess",
    "rules": gettext_lazy("Rule program"),
    "postprocess": "postprocess",
}


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of the difference with localized names."""

    part: MetricPart
    settings: list[tuple[str, str, str]]
    texts: list[tuple[str, TextChange]]


def parts_of_definitions(project: int, before: MetricDefinition, after: MetricDefinition) -> list[PartView]:
    """The differences between two metric definitions of a project."""
    endpoints = endpoint_names(project)
    return [_part_view(part, endpoints) for part in difference(before, after)]


def _part_view(part: MetricPart, endpoints: dict[int, str]) -> PartView:
    def text(name: str, value: object) -> str:
        return endpoints.get(value, "") if name == "endpoint" and isinstance(value, int) else as_text(value)

    settings = [
        (
            str(FIELD_NAMES[setting.name]),
            text(setting.name, setting.before),
            text(setting.name, setting.after),
        )
        for setting in part.settings
    ]
    return PartView(part, settings, [(_text_name(change), change) for change in part.texts])


def _text_name(change: TextChange) -> str:
    name = str(FIELD_NAMES[change.name])
    return name if change.number == 1 else f"{name} {change.number}"
