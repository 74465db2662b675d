"""The keys of the metrics file that say what a metric gives: read, checked together and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from yaml.nodes import MappingNode, ScalarNode

from datasets.core.kinds import CATEGORY, CHECKLIST, COMPARISON, PASS_FAIL, READABLE_KINDS, SCORE
from datasets.core.texts import Text, gettext_noop
from judging.core.metric_definition import STRUCTURED, JudgeModel, Label, MetricDefinition, ParserSpec
from judging.core.reading.labels import fold
from judging.core.yaml_tree import Fields

MAX_LABELS = 50
MAX_LABEL = 200  # characters
MAX_DESCRIPTION = 2000
MAX_ASK_AGAIN = 2
MAX_NAME = 200

KIND_KEYS = ("gives", "whole", "step", "both_bad", "three_steps", "answers", "pairs", "at_once")
ASKING_KEYS = ("structured", "ask_again")
LABEL_KEYS = ("label", "description", "value")

_NO_SCALE = (MetricDefinition(name="").min_score, MetricDefinition(name="").max_score)

_GIVES = (PASS_FAIL, SCORE, CHECKLIST, "{category: …}", "{comparison: …}")
_COMPARES = ("reference", "all", "{baseline: NAME}")
_CANDIDATES = "comparison of candidates"
_ONLY_OF = {
    "whole": (SCORE,),
    "step": (SCORE,),
    "both_bad": (_CANDIDATES,),
    "three_steps": (_CANDIDATES,),
    "answers": (_CANDIDATES,),
    "pairs": (_CANDIDATES,),
    "at_once": (CHECKLIST,),
}
"""The kinds of metrics that a key is for."""

KIND_PROBLEMS: dict[str, Text] = {
    "no_labels": gettext_noop(
        "A category needs at least two labels: gives: {category: [{label: …}, {label: …}]}."
    ),
    "too_many_labels": gettext_noop("A category has at most %(most)s labels."),
    "duplicate_label": gettext_noop(
        "A label named “%(name)s” already exists. Upper and lower case, blanks, _ and - make no difference."
    ),
    "key_of_other_kind": gettext_noop("“%(key)s” is only for metrics that give: %(kinds)s."),
    "bad_step": gettext_noop("“step” must be above 0 and at most the width of the scale, %(width)s."),
    "step_not_whole": gettext_noop("With “whole: true” the step must be a whole number."),
    "pairs_without_all": gettext_noop("“pairs” only works with {comparison: all}."),
    "jury_of_scores": gettext_noop(
        "Votes of this kind are combined by majority. Remove “jury”, or set it to majority."
    ),
    "parse_of_other_kind": gettext_noop("“%(key)s” reads a %(kind)s, but the metric gives: %(gives)s."),
    "pattern_of_comparison": gettext_noop(
        "Verdicts on two candidates can't be read with a pattern or a JSON path. Remove “%(key)s”."
    ),
    "rules_give_scores": gettext_noop(
        "A rule program gives scores. Remove “gives”, or add a postprocess step."
    ),
    "settings_differ": gettext_noop("“%(key)s” must be the same for all judge models of a metric."),
    "both_orders_without_comparison": gettext_noop(
        "“both_orders” only works with comparisons. Add “gives: {comparison: reference}”, or remove it."
    ),
}


class JudgeKeys(NamedTuple):
    """A judge model's fields in the file, and the kind of the built-in template that it uses ('' for its own)."""

    fields: Fields
    builtin: str


def read_kind(fields: Fields) -> dict[str, Any]:
    """The fields of a `MetricDefinition` that its kind needs; empty without “gives”."""
    read = {**_read_gives(fields)}
    for name in ("whole", "both_bad", "three_steps", "at_once"):
        read[name] = fields.flag(name)
    read["step"] = fields.number("step", 0)
    read["any_pairs"] = "pairs" in fields and bool(fields.choice("pairs", ("all",), "all"))
    read["all_answers"] = fields.choice("answers", ("first", "all"), "first") == "all"
    return read


def _read_gives(fields: Fields) -> dict[str, Any]:
    if "gives" not in fields:
        return {}
    node = fields.node_of("gives")
    if not isinstance(node, MappingNode):
        code = fields.text("gives", required=True)
        if code in (PASS_FAIL, SCORE, CHECKLIST):
            return {"gives": code}
        fields.wrong("gives", "not_an_option", value=code[:80], options=", ".join(_GIVES))
        return {}
    gives = Fields(node, (CATEGORY, COMPARISON), fields.problems)
    named = [kind for kind in (CATEGORY, COMPARISON) if kind in gives]
    if len(named) != 1:
        fields.wrong("gives", "not_an_option", value=", ".join(named), options=", ".join(_GIVES))
        return {}
    if named == [CATEGORY]:
        return {"gives": CATEGORY, "labels": _labels(gives)}
    return {"gives": COMPARISON, **_compares(gives)}


def _labels(gives: Fields) -> tuple[Label, ...]:
    entries = list(gives.items(CATEGORY, LABEL_KEYS, required=True))
    labels = [
        Label(
            label=entry.text("label", required=True, most=MAX_LABEL).strip(),
            description=entry.text("description", most=MAX_DESCRIPTION),
            value=entry.number("value", 0) if "value" in entry else None,
        )
        for entry in entries
    ]
    folded = [fold(label.label) for label in labels]
    for number, entry in enumerate(entries):
        if folded[number] and folded[number] in folded[:number]:
            entry.wrong("label", "duplicate_label", name=labels[number].label)
    if len(labels) < 2:
        gives.wrong(CATEGORY, "no_labels")
    if len(labels) > MAX_LABELS:
        gives.wrong(CATEGORY, "too_many_labels", most=MAX_LABELS)
    return tuple(labels)


def _compares(gives: Fields) -> dict[str, Any]:
    node = gives.node_of(COMPARISON)
    if isinstance(node, ScalarNode):
        compares = gives.text(COMPARISON)
        if compares in ("reference", "all"):
            return {"compares": compares}
    elif isinstance(node, MappingNode):
        baseline = Fields(node, ("baseline",), gives.problems)
        return {"compares": "baseline", "baseline": baseline.text("baseline", required=True, most=MAX_NAME)}
    gives.wrong(COMPARISON, "not_an_option", value=gives.text(COMPARISON)[:80], options=", ".join(_COMPARES))
    return {}


def read_asking(fields: Fields, judges: Sequence[JudgeKeys], *, given: bool) -> dict[str, Any]:
    """`structured` and `ask_again`, from the metric or its judge models. `given`: the metric says what it gives."""
    read: dict[str, Any] = {}
    for place in (fields, *(judge.fields for judge in judges)):
        values: dict[str, Any] = {}
        if "structured" in place:
            values["structured"] = place.choice("structured", STRUCTURED, "auto")
        if "ask_again" in place:
            values["ask_again"] = place.whole("ask_again", 0, 0, MAX_ASK_AGAIN)
        for name, value in values.items():
            if read.setdefault(name, value) != value:
                place.wrong(name, "settings_differ")
    return {"structured": "auto" if given else "off"} | read


def read_as(judge: JudgeModel, gives: str) -> JudgeModel:
    """A judge model of a metric that says itself what is read from replies."""
    parse = COMPARISON if gives == COMPARISON else SCORE
    return judge if isinstance(judge.parse, dict) else msgspec.structs.replace(judge, parse=parse)


def in_both_orders(judge: JudgeModel, keys: JudgeKeys) -> JudgeModel:
    """A judge model that compares candidates: in both orders, unless it says otherwise."""
    return judge if "both_orders" in keys.fields else msgspec.structs.replace(judge, both_orders=True)


def kind_of_builtins(judges: Sequence[JudgeKeys]) -> str:
    """What a metric gives that does not say, by its built-in templates: '' unless they are of a kind that is never
    read from replies otherwise."""
    kinds = {judge.builtin for judge in judges} - {"", SCORE, COMPARISON}
    return kinds.pop() if len(kinds) == 1 else ""


def check_kind(metric: MetricDefinition, fields: Fields, judges: Sequence[JudgeKeys]) -> None:
    """Report what does not fit together."""
    kind = _CANDIDATES if metric.compares_candidates else metric.asks_for
    for name, kinds in _ONLY_OF.items():
        if name in fields and kind not in kinds:
            fields.wrong(name, "key_of_other_kind", kinds=", ".join(kinds))
    if kind == CATEGORY and not metric.labels and "gives" not in fields:
        fields.wrong("", "no_labels")
    if metric.any_pairs and metric.compares == "baseline":
        fields.wrong("pairs", "pairs_without_all")
    if "jury" in fields and metric.votes_by_majority and metric.jury != "majority":
        fields.wrong("jury", "jury_of_scores")
    if metric.rules and metric.gives not in ("", SCORE) and not metric.value_scripts:
        fields.wrong("gives", "rules_give_scores")
    _check_step(metric, fields)
    for judge in judges:
        _check_judge(metric, judge)


def _check_step(metric: MetricDefinition, fields: Fields) -> None:
    width = metric.max_score - metric.min_score
    if "step" in fields and not 0 < metric.step <= width:
        fields.wrong("step", "bad_step", width=width)
    elif metric.whole and not float(metric.step).is_integer():
        fields.wrong("step", "step_not_whole")


def _check_judge(metric: MetricDefinition, judge: JudgeKeys) -> None:
    """A script after the judges may make any kind of what they say."""
    fields = judge.fields
    parse = fields.value("parse")
    if metric.gives and not metric.value_scripts:
        for name, kind in (("parse", parse), ("builtin", judge.builtin)):
            if kind in READABLE_KINDS and kind != metric.gives:
                fields.wrong(name, "parse_of_other_kind", kind=kind, gives=metric.gives)
    if metric.compares_candidates and isinstance(parse, dict):
        fields.wrong("parse", "pattern_of_comparison")
    read_as = metric.gives or parse or judge.builtin or SCORE
    if fields.flag("both_orders") and read_as != COMPARISON:
        fields.wrong("both_orders", "both_orders_without_comparison")


# --- writing ---------------------------------------------------------------------------------------------------


def written_kind(metric: MetricDefinition) -> dict[str, Any]:
    """The scale of scores, and the keys of a metric's kind that differ from their defaults."""
    ends = metric.min_score, metric.max_score
    scale: dict[str, Any] = dict(zip(("min_score", "max_score"), map(plain_number, ends), strict=True))
    optional = {
        "gives": _written_gives(metric),
        "whole": metric.whole,
        "step": plain_number(metric.step),
        "both_bad": metric.both_bad,
        "three_steps": metric.three_steps,
        "answers": "all" if metric.all_answers else "",
        "pairs": "all" if metric.any_pairs else "",
        "at_once": metric.at_once,
        "ask_again": metric.ask_again,
    }
    has_scale = metric.asks_for in (SCORE, COMPARISON) or ends != _NO_SCALE
    written: dict[str, Any] = scale if has_scale and metric.asks_for != CHECKLIST else {}
    written |= {name: value for name, value in optional.items() if value}
    if metric.structured != ("auto" if metric.gives else "off"):
        written["structured"] = metric.structured
    return written


def _written_gives(metric: MetricDefinition) -> str | dict[str, Any]:
    if metric.gives == CATEGORY:
        labels: list[dict[str, Any]] = msgspec.to_builtins(metric.labels)
        return {CATEGORY: [{**label, **_value(label)} for label in labels]}
    if metric.gives == COMPARISON:
        return {
            COMPARISON: {"baseline": metric.baseline} if metric.compares == "baseline" else metric.compares
        }
    return metric.gives


def _value(label: dict[str, Any]) -> dict[str, int | float]:
    return {"value": plain_number(label["value"])} if "value" in label else {}


def written_parse(metric: MetricDefinition, parse: ParserSpec) -> dict[str, Any]:
    """A judge's parser; a metric that says what it gives needs none but a pattern or path."""
    return {} if metric.gives and isinstance(parse, str) else {"parse": parse}


def plain_number(value: float) -> int | float:
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value
