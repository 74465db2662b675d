"""The metrics file: YAML that defines metrics and, for inference, candidates (docs/metrics-file.md).

Texts may be in separate files, in its folder or below. API keys are referenced by environment variable only. A file
is written with all texts inline and without keys: a comment at its top says where to add `api_key_env`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from yaml.nodes import MappingNode, Node, SequenceNode

from datasets.core.kinds import CHECKLIST, COMPARISON, SCORE
from datasets.core.texts import Text, gettext_noop
from judging.core.builtin import BUILTINS
from judging.core.candidates import MOST_ANSWERS, CandidateModel
from judging.core.judges.addresses import chat_url
from judging.core.judges.errors import JudgeError
from judging.core.judges.protocols import CHAT, PROTOCOLS
from judging.core.metric_definition import (
    JURIES,
    SANDBOX,
    SCRIPT_KINDS,
    STEP_TYPES,
    UNDEFINED,
    JudgeModel,
    MetricDefinition,
    ParserSpec,
    Script,
    Step,
)
from judging.core.metrics_file_kind import (
    ASKING_KEYS,
    KIND_KEYS,
    KIND_PROBLEMS,
    LABEL_KEYS,
    JudgeKeys,
    check_kind,
    in_both_orders,
    kind_of_builtins,
    read_as,
    read_asking,
    read_kind,
    written_kind,
    written_parse,
)
from judging.core.reading.gives import Gives
from judging.core.replies import PARSER_PROBLEMS, ParserError, make_parser
from judging.core.rules.check import read_program
from judging.core.yaml_tree import YAML_PROBLEMS, Fields, Problems, YamlProblem, compose, mappings, write_yaml

MAX_FILE_BYTES = 2**20
MAX_NAME = 200
MAX_REPEATS = 100
RULES_TOP = 5  # a rule program scores from 1 to 5
COMPARISON_TOP = 5.0  # of the scores that comparisons with the reference become

_TEMPLATE = ("judge_template_content", "judge_template_file", "builtin")
KEYS = {
    "file": ("data_name", "candidates", "metrics"),
    "candidates": (
        "name",
        "url",
        "model",
        "protocol",
        "api_key_env",
        "n",
        "system_prompt",
        "generation_params",
    ),
    "metrics": (
        *("name", "min_score", "max_score", *KIND_KEYS, *ASKING_KEYS),
        *("undefined", "sandbox", "jury", "quorum", "pipeline"),
    ),
    "labels": LABEL_KEYS,
    "pipeline": ("type", "filename", "file_content", "judge_model"),
    "judge_model": (
        *("name", "source", "url", "model", "protocol", "api_key_env", "system_prompt"),
        *_TEMPLATE,
        *("generation_params", "parse", *ASKING_KEYS, "repeats", "both_orders"),
    ),
}
"""The allowed keys, by part of the file."""
# The program defines its questions and their parsing.
_NOT_BESIDE_RULES = (*_TEMPLATE, "parse", *ASKING_KEYS, "repeats", "both_orders")
_RULES_JUDGE = tuple(key for key in KEYS["judge_model"] if key not in _NOT_BESIDE_RULES)
_FOREIGN = {
    "PREPROCESS": ("judge_model",),
    "JUDGE_MODEL": ("filename", "file_content"),
    "RULES": (),
    "POSTPROCESS": ("judge_model",),
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

PROBLEMS: dict[str, Text] = {
    **YAML_PROBLEMS,
    **PARSER_PROBLEMS,
    **KIND_PROBLEMS,
    "no_metrics": gettext_noop("Expected a list of {data_name, metrics}, or a single mapping."),
    "empty_scale": gettext_noop("The maximum score, %(high)s, must be greater than the minimum, %(low)s."),
    "duplicate_metric": gettext_noop("A metric named “%(name)s” already exists. Names must be unique."),
    "duplicate_candidate": gettext_noop("A candidate named “%(name)s” already exists. Names must be unique."),
    "quorum_too_high": gettext_noop(
        "“%(key)s” is %(value)s, but there are only %(votes)s votes (judge models × repeats)."
    ),
    "unknown_source": gettext_noop("Unknown source “%(value)s”. Only URL is supported."),
    "no_template": gettext_noop("The judge model has no template. Set one of: %(options)s."),
    "several_templates": gettext_noop("The judge model has several templates. Set only one of: %(options)s."),
    "no_script": gettext_noop("The step has no script. Set “filename” or “file_content”."),
    "several_scripts": gettext_noop("The step has two scripts. Set either “filename” or “file_content”."),
    "key_of_other_step": gettext_noop("“%(key)s” is not valid in a step of type %(step)s."),
    "rules_twice": gettext_noop("Duplicate RULES. A pipeline can have only one."),
    "rules_error": gettext_noop(
        "Error in the rule program, line %(rule_line)s, column %(rule_column)s: %(sentence)s"
    ),
    "rules_need_judge": gettext_noop(
        "The rule program needs a judge model. Add “judge_model” (without a template) to the step."
    ),
    "rules_beside_judges": gettext_noop(
        "A metric uses either judge models or rules. Put the judge model for rules in the rules step."
    ),
    "bad_url": gettext_noop("“%(key)s” must be an http or https URL without a password."),
    "no_variable_name": gettext_noop(
        "“%(key)s” must be the name of an environment variable, for example JUDGE_KEY. Never put the key "
        "itself in the file."
    ),
    "file_outside": gettext_noop("%(path)s is outside the metrics file's folder and can't be read."),
    "file_missing": gettext_noop("File %(path)s not found next to the metrics file."),
    "file_too_long": gettext_noop("%(path)s is larger than %(most)s bytes."),
    "file_not_utf8": gettext_noop("%(path)s is not UTF-8. Save it as UTF-8."),
    "file_unreadable": gettext_noop("Can't read %(path)s."),
}


@dataclass(frozen=True, slots=True)
class MetricsFile:
    """The contents of a metrics file. Several entries are combined; `data_name` is the first one given."""

    data_name: str
    candidates: tuple[CandidateModel, ...]
    metrics: tuple[MetricDefinition, ...]


class MetricsFileError(Exception):
    """Everything that is wrong with a metrics file, by line."""

    def __init__(self, problems: tuple[YamlProblem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems


def read_metrics_file(text: str, folder: Path) -> MetricsFile:
    """Parse the metrics and candidates in `text`, looking for its files in `folder`.

    Raises MetricsFileError with all problems, not just the first.
    """
    problems = Problems()
    reader = _MetricsReader(problems, folder)
    root = compose(text, problems)
    for entry in _entries(root, problems):
        reader.read_entry(entry)
    if errors := problems.in_order():
        raise MetricsFileError(errors)
    return MetricsFile(reader.data_name, tuple(reader.candidates), tuple(reader.metrics))


def _entries(root: Node | None, problems: Problems) -> list[Fields]:
    if root is None:  # not YAML, which is reported already
        return []
    if isinstance(root, MappingNode):
        return [Fields(root, KEYS["file"], problems)]
    if isinstance(root, SequenceNode) and root.value:
        return list(mappings(root, KEYS["file"], problems))
    problems.add(root, "no_metrics")
    return []


class _MetricsReader:
    """Reads the parts of a file, and checks that names are unique across entries."""

    def __init__(self, problems: Problems, folder: Path) -> None:
        self.problems, self.folder = problems, folder
        self.data_name = ""
        self.candidates: list[CandidateModel] = []
        self.metrics: list[MetricDefinition] = []
        self._named: set[tuple[str, str]] = set()

    def read_entry(self, fields: Fields) -> None:
        name = fields.text("data_name", most=MAX_NAME)
        self.data_name = self.data_name or name
        self.candidates += [self.candidate(entry) for entry in fields.items("candidates", KEYS["candidates"])]
        self.metrics += [
            self.metric(entry) for entry in fields.items("metrics", KEYS["metrics"], required=True)
        ]

    def candidate(self, fields: Fields) -> CandidateModel:
        return CandidateModel(
            name=self._name(fields, "candidate"),
            url=_url(fields),
            model=fields.text("model", required=True, most=300),
            protocol=fields.choice("protocol", tuple(PROTOCOLS), CHAT),
            api_key_env=_variable(fields),
            n=fields.whole("n", 1, 1, MOST_ANSWERS),
            system_prompt=fields.text("system_prompt") or None,
            params=fields.json_object("generation_params"),
        )

    def metric(self, fields: Fields) -> MetricDefinition:
        low, high = fields.number("min_score", 1), fields.number("max_score", 10)
        if low >= high:
            fields.wrong(
                "max_score" if "max_score" in fields else "min_score", "empty_scale", low=low, high=high
            )
            low, high = 1, 10
        kind = read_kind(fields)
        if kind.get("gives") == COMPARISON and "max_score" not in fields:
            high = max(low + 1, COMPARISON_TOP)
        steps = _Steps(self, low, high)
        for step in fields.items("pipeline", KEYS["pipeline"], required=True):
            steps.take(step)
        if steps.rules and "max_score" not in fields and low < RULES_TOP:
            high = RULES_TOP
        judges = steps.judges
        if gives := kind.get("gives"):
            judges = [read_as(judge, gives) for judge in judges]
        if kind.get("compares", "reference") != "reference":
            judges = list(map(in_both_orders, judges, steps.judge_keys))
        definition = MetricDefinition(
            name=self._name(fields, "metric"),
            min_score=low,
            max_score=high,
            undefined=fields.choice("undefined", UNDEFINED, "strict"),
            sandbox=fields.choice("sandbox", SANDBOX, "batch"),
            scripts=tuple(steps.scripts),
            judges=tuple(judges),
            rules=steps.rules,
            jury=fields.choice("jury", JURIES, "mean"),
            quorum=fields.whole("quorum", 1, 1, 10_000),
            **{"gives": kind_of_builtins(steps.judge_keys)} | kind,
            **read_asking(fields, steps.judge_keys, given="gives" in fields),
        )
        if definition.gives == CHECKLIST:
            definition = msgspec.structs.replace(definition, min_score=0, max_score=1)
        check_kind(definition, fields, steps.judge_keys)
        if definition.judges and definition.quorum > max(1, definition.votes):
            fields.wrong("quorum", "quorum_too_high", value=definition.quorum, votes=definition.votes)
        return definition

    def _name(self, fields: Fields, kind: str) -> str:
        name = fields.text("name", required=True, most=MAX_NAME).strip()
        if (kind, name) in self._named:
            fields.wrong("name", f"duplicate_{kind}", name=name)
        self._named.add((kind, name))
        return name

    def judge(self, fields: Fields, low: float, high: float) -> tuple[JudgeModel, JudgeKeys]:
        template, builtin = self._template(fields)
        judge = msgspec.structs.replace(
            self.judge_model(fields),
            template=template,
            parse=_parse(fields, COMPARISON if builtin == COMPARISON else SCORE, low, high),
            repeats=fields.whole("repeats", 1, 1, MAX_REPEATS),
            both_orders=fields.flag("both_orders"),
        )
        return judge, JudgeKeys(fields, builtin)

    def judge_model(self, fields: Fields) -> JudgeModel:
        """The connection and the request settings of a judge model, without prompts."""
        if fields.text("source", "URL").upper() != "URL":
            fields.wrong("source", "unknown_source", value=fields.text("source")[:80])
        return JudgeModel(
            name=fields.text("name", fields.text("model"), most=MAX_NAME),
            template="",
            url=_url(fields),
            model=fields.text("model", required=True, most=300),
            protocol=fields.choice("protocol", tuple(PROTOCOLS), CHAT),
            api_key_env=_variable(fields),
            system_prompt=fields.text("system_prompt") or None,
            params=fields.json_object("generation_params"),
        )

    def _template(self, fields: Fields) -> tuple[str, str]:
        """The template's text, and what it gives; '' if it is not a built-in one."""
        sources = [name for name in _TEMPLATE if name in fields]
        if len(sources) != 1:
            wrong = "several_templates" if sources else "no_template"
            fields.wrong(sources[1] if sources else "", wrong, options=", ".join(_TEMPLATE))
            return "", ""
        if sources == ["builtin"]:
            chosen = BUILTINS.get(fields.text("builtin"))
            if chosen is None:
                fields.choice("builtin", tuple(BUILTINS), "")
                return "", ""
            return chosen.source, chosen.gives
        if sources == ["judge_template_file"]:
            return self.file(fields, "judge_template_file"), ""
        return fields.text("judge_template_content", required=True), ""

    def script(self, fields: Fields) -> str:
        """The script of a step, from the metrics file itself or a separate file."""
        sources = [name for name in ("filename", "file_content") if name in fields]
        if len(sources) != 1:
            fields.wrong(sources[1] if sources else "", "several_scripts" if sources else "no_script")
            return ""
        return (
            self.file(fields, "filename")
            if sources == ["filename"]
            else fields.text(sources[0], required=True)
        )

    def file(self, fields: Fields, name: str) -> str:
        """The text of a file in the folder or below it; symbolic links are followed and must stay within it."""
        written = fields.text(name, required=True, most=1000)
        if not written.strip():
            return ""
        folder = self.folder.resolve()
        try:
            path = (folder / written).resolve()
            if not path.is_relative_to(folder):
                fields.wrong(name, "file_outside", path=written)
            elif not path.is_file():
                fields.wrong(name, "file_missing", path=written)
            elif path.stat().st_size > MAX_FILE_BYTES:
                fields.wrong(name, "file_too_long", path=written, most=MAX_FILE_BYTES)
            else:
                text = path.read_text(encoding="utf-8-sig")
                if not text.strip():
                    fields.wrong(name, "blank")
                return text
        except UnicodeDecodeError:
            fields.wrong(name, "file_not_utf8", path=written)
        except (OSError, ValueError, RuntimeError):  # ValueError: a NUL; RuntimeError: a symbolic link loop
            fields.wrong(name, "file_unreadable", path=written)
        return ""


class _Steps:
    """Collects the steps of one pipeline, in any order."""

    def __init__(self, reader: _MetricsReader, low: float, high: float) -> None:
        self.reader, self.low, self.high = reader, low, high
        self.scripts: list[Script] = []
        self.rules = ""
        self.judges: list[JudgeModel] = []
        self.judge_keys: list[JudgeKeys] = []
        self._judging: list[str] = []  # the types of the judging steps so far

    def take(self, fields: Fields) -> None:
        kind = fields.text("type", required=True)
        if kind not in STEP_TYPES:
            if kind:
                fields.wrong("type", "not_an_option", value=kind[:80], options=", ".join(STEP_TYPES))
            return
        for foreign in _FOREIGN[kind]:
            if foreign in fields:
                fields.wrong(foreign, "key_of_other_step", step=kind)
        if script := SCRIPT_KINDS.get(kind):
            source = self.reader.script(fields)
            self.scripts.append(Script(kind=script, source=source, after=len(self._judging)))
            return
        self._check_alone(fields, kind)
        self._judging.append(kind)
        if kind == "RULES":
            self._take_rules(fields)
        elif (judge := fields.mapping("judge_model", KEYS["judge_model"])) is not None:
            model, keys = self.reader.judge(judge, self.low, self.high)
            self.judges.append(model)
            self.judge_keys.append(keys)

    def _take_rules(self, fields: Fields) -> None:
        self.rules = self.reader.script(fields)
        reading = read_program(self.rules) if self.rules.strip() else None
        for problem in reading.errors if reading else ():
            place = {"rule_line": problem.place.line, "rule_column": problem.place.column}
            where = "filename" if "filename" in fields else "file_content"
            fields.wrong(where, "rules_error", rule_code=problem.code, **place, **problem.params)
        if "judge_model" in fields:
            if (judge := fields.mapping("judge_model", _RULES_JUDGE)) is not None:
                self.judges.append(self.reader.judge_model(judge))
        elif reading and reading.program and reading.program.needs_judge:
            fields.wrong("", "rules_need_judge")

    def _check_alone(self, fields: Fields, kind: str) -> None:
        if {"RULES", "JUDGE_MODEL"} <= {*self._judging, kind}:
            fields.wrong("type", "rules_beside_judges")
        elif kind == "RULES" and self._judging:
            fields.wrong("type", "rules_twice")


def _parse(fields: Fields, offered: str, low: float, high: float) -> ParserSpec:
    parse: ParserSpec = fields.value("parse", offered)
    try:
        make_parser(parse, Gives(SCORE, min_score=low, max_score=high))
    except ParserError as error:
        fields.wrong("parse", error.code, detail=error.detail)
        return offered
    return parse


def _url(fields: Fields) -> str:
    url = fields.text("url", required=True, most=1000).strip()
    try:
        if url:
            chat_url(url)
    except JudgeError:
        fields.wrong("url", "bad_url")  # not quoted, because it may contain a password
    return url


def _variable(fields: Fields) -> str:
    """The name of an environment variable. An invalid one is not quoted, because it may be a key."""
    name = fields.text("api_key_env").strip()
    if name and not _VARIABLE.fullmatch(name):
        fields.wrong("api_key_env", "no_variable_name")
        return ""
    return name


# --- writing ---------------------------------------------------------------------------------------------------

_KEY_HINT = "# Keys are never written. Where a judge model needs one, add api_key_env: ITS_VARIABLE\n"


def write_metrics_file(metrics: Sequence[MetricDefinition]) -> str:
    """YAML that reads as metrics that judge the same. Judge models need a URL, so replace endpoint ids first."""
    text = write_yaml([{"metrics": [metric_entry(metric) for metric in metrics]}])
    nameless = any(not judge.api_key_env for metric in metrics for judge in metric.judges)
    return _KEY_HINT + text if nameless else text


def metric_entry(metric: MetricDefinition) -> dict[str, Any]:
    """A metric as an entry of `metrics` in a metrics file."""
    # Not in the original format, so written only if they differ from the default.
    jury = {"jury": metric.jury} if metric.jury != "mean" else {}
    quorum = {"quorum": metric.quorum} if metric.quorum != 1 else {}
    return {
        "name": metric.name,
        **written_kind(metric),
        "undefined": metric.undefined,
        "sandbox": metric.sandbox,
        **jury,
        **quorum,
        "pipeline": [{"type": step.type, **_step(metric, step)} for step in metric.steps],
    }


def _step(metric: MetricDefinition, step: Step) -> dict[str, Any]:
    if step.type == "RULES":
        judge = {"judge_model": _asked(metric.judges[0])} if metric.judges else {}
        return {"file_content": metric.rules, **judge}
    if step.type == "JUDGE_MODEL":
        return {"judge_model": _judge(metric, metric.judges[step.number])}
    return {"file_content": metric.scripts[step.number].source}


def _asked(judge: JudgeModel) -> dict[str, Any]:
    """The connection and the request settings."""
    always = {"name": judge.name or judge.model, "source": "URL", "url": judge.url, "model": judge.model}
    optional = {
        "protocol": "" if judge.protocol == CHAT else judge.protocol,
        "api_key_env": judge.api_key_env,
        "system_prompt": judge.system_prompt,
        "generation_params": judge.params,
    }
    return always | {name: value for name, value in optional.items() if value}


def _judge(metric: MetricDefinition, judge: JudgeModel) -> dict[str, Any]:
    """The judge's non-default settings, and the parser wherever the metric's kind does not say it."""
    template = {"judge_template_content": judge.template}
    written = {**_asked(judge), **template, **written_parse(metric, judge.parse)}
    if judge.repeats != 1:
        written["repeats"] = judge.repeats
    if judge.both_orders != metric.compares_candidates:
        written["both_orders"] = judge.both_orders
    return written
