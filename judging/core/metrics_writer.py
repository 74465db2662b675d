"""Writes metrics as a metrics file that parses to metrics that judge the same.

All texts are inline, without separate files. Keys are never written: a judge model's `api_key_env` is written if it has
one; otherwise a comment at the top tells the reader to add it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from yaml.nodes import Node, ScalarNode

from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.yaml_tree import YAML_1_2_RESOLVERS

_WIDTH = 100_000  # keeps long lines whole, because templates are compared by lines
_NOT_IN_BLOCKS = "\x85\u2028\u2029\ufeff"  # line breaks to some YAML parsers but not to others
_KEY_HINT = "# Keys are never written. Where a judge model needs one, add api_key_env: ITS_VARIABLE\n"


class _Dumper(yaml.SafeDumper):
    """Quotes texts that YAML 1.1 or 1.2 would read as another type."""


_Dumper.yaml_implicit_resolvers = {
    first: [*_Dumper.yaml_implicit_resolvers.get(first, []), *YAML_1_2_RESOLVERS.get(first, [])]
    for first in {*_Dumper.yaml_implicit_resolvers, *YAML_1_2_RESOLVERS}
}


def _text(dumper: yaml.SafeDumper, text: str) -> Node:
    """Multi-line text as a readable block; other text in the plainest possible style."""
    style = '"' if any(character in text for character in _NOT_IN_BLOCKS) else "|" if "\n" in text else None
    return ScalarNode("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write_metrics_file(metrics: Sequence[MetricDefinition]) -> str:
    """The metrics as YAML text. Judge models need a URL, so replace endpoint ids first."""
    document = [{"metrics": [_metric(one) for one in metrics]}]
    text: str = yaml.dump(document, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
    nameless = any(not judge.api_key_env for one in metrics for judge in one.judges)
    return _KEY_HINT + text if nameless else text


def _metric(metric: MetricDefinition) -> dict[str, Any]:
    pipeline: list[dict[str, Any]] = []
    if metric.preprocess:
        pipeline.append({"type": "PREPROCESS", "file_content": metric.preprocess})
    if metric.rules:
        judge = {"judge_model": _asked(metric.judges[0])} if metric.judges else {}
        pipeline.append({"type": "RULES", "file_content": metric.rules, **judge})
    else:
        pipeline += [{"type": "JUDGE_MODEL", "judge_model": _judge(judge)} for judge in metric.judges]
    if metric.postprocess:
        pipeline.append({"type": "POSTPROCESS", "file_content": metric.postprocess})
    # Not in the original format, so written only if they differ from the default.
    jury = {"jury": metric.jury} if metric.jury != "mean" else {}
    quorum = {"quorum": metric.quorum} if metric.quorum != 1 else {}
    return {
        "name": metric.name,
        "min_score": _number(metric.min_score),
        "max_score": _number(metric.max_score),
        "undefined": metric.undefined,
        "sandbox": metric.sandbox,
        **jury,
        **quorum,
        "pipeline": pipeline,
    }


def _asked(judge: JudgeModel) -> dict[str, Any]:
    """The connection and the request settings."""
    always = {"name": judge.name or judge.model, "source": "URL", "url": judge.url, "model": judge.model}
    optional = {
        "api_key_env": judge.api_key_env,
        "system_prompt": judge.system_prompt,
        "generation_params": judge.params,
    }
    return always | {name: value for name, value in optional.items() if value}


def _judge(judge: JudgeModel) -> dict[str, Any]:
    """The judge's non-default settings, and always the parser, because it matters most."""
    written = {**_asked(judge), "judge_template_content": judge.template, "parse": judge.parse}
    if judge.repeats != 1:
        written["repeats"] = judge.repeats
    if judge.both_orders:
        written["both_orders"] = True
    return written


def _number(score: float) -> float:
    return int(score) if score == int(score) else score
