"""Import and export of metrics files.

A file's judge model is a URL. On import it is replaced by the project's endpoint with this URL and model, so that files
need no API keys. Only the management command can keep the URL and the environment variable with its key.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from django.db import transaction
from django.utils.translation import gettext as _

from datasets.messages import translated
from evalsite.accounts.models import Project, User
from judging.core.judges.addresses import chat_url
from judging.core.judges.errors import JudgeError
from judging.core.judges.protocols import CHAT
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.metrics_file import (
    PROBLEMS,
    MetricsFile,
    MetricsFileError,
    read_metrics_file,
    write_metrics_file,
)
from judging.core.rules.program import Problem as RuleProblem
from judging.core.rules.program import SourcePlace
from judging.core.yaml_tree import YamlProblem
from judging.endpoints.models import Endpoint
from judging.endpoints.selectors import endpoints_of
from judging.endpoints.settings import with_address
from judging.metrics import services
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.selectors import newest_version
from judging.rule_messages import problem_sentence

Done = Literal["new", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class ImportedMetric:
    """An imported metric and what the import did."""

    version: MetricVersion
    done: Done


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A judge model without a matching endpoint in the project."""

    metric: str
    judge: JudgeModel


def read_alone(text: str) -> MetricsFile:
    """Parse a metrics file without its folder: files that it refers to are missing. Raises MetricsFileError."""
    with tempfile.TemporaryDirectory() as empty:
        return read_metrics_file(text, Path(empty))


def with_endpoints(
    project: Project, metrics: Sequence[MetricDefinition], *, keep_named_keys: bool = False
) -> tuple[list[MetricDefinition], list[Unplaced]]:
    """Replace judge models by the project's endpoints. Returns the metrics, and the judge models without a match.

    Judge models that the existing metric of that name already has are kept, so that its own export can be imported.
    `keep_named_keys`: also keep judge models that name an environment variable for their key. Only for callers who may
    read the environment: otherwise a file could send any of the server's variables to any URL.
    """
    by_place: dict[tuple[str, str, str], Endpoint] = {}
    for endpoint in endpoints_of(project):
        by_place.setdefault(_place(endpoint), endpoint)
    existing = _existing_judges(project, [metric.name for metric in metrics])
    unplaced: list[Unplaced] = []
    placed = []
    for metric in metrics:
        judges = []
        for judge in metric.judges:
            if keep_named_keys and judge.api_key_env:
                judges.append(judge)
                continue
            match = by_place.get(_place(judge))
            if match is None and (metric.name, judge.url, judge.model, judge.api_key_env) not in existing:
                unplaced.append(Unplaced(metric.name, judge))
            judges.append(judge if match is None else _at(judge, match))
        placed.append(msgspec.structs.replace(metric, judges=tuple(judges)))
    return placed, unplaced


def _existing_judges(project: Project, names: Sequence[str]) -> set[tuple[str, str, str, str]]:
    """(metric, URL, model, key variable) of these metrics' existing judge models without an endpoint."""
    metrics = Metric.objects.filter(project=project, name__in=names, archived_at=None)
    return {
        (metric.name, judge.url, judge.model, judge.api_key_env)
        for metric in metrics
        for judge in MetricDefinition.from_json(newest_version(metric).definition).judges
        if judge.endpoint is None
    }


def _place(of: Endpoint | JudgeModel) -> tuple[str, str, str]:
    try:
        return chat_url(of.url), of.model, of.protocol
    except JudgeError:
        return of.url, of.model, of.protocol


def _at(judge: JudgeModel, endpoint: Endpoint) -> JudgeModel:
    """The judge model with the endpoint, without parameters that equal the endpoint's."""
    own = {name: value for name, value in judge.params.items() if endpoint.params.get(name, ...) != value}
    nowhere = {"url": "", "model": "", "protocol": CHAT, "api_key_env": ""}
    return msgspec.structs.replace(judge, endpoint=endpoint.pk, params=own, **nowhere)


@transaction.atomic
def metrics_import(
    *, project: Project, metrics: Sequence[MetricDefinition], user: User | None
) -> list[ImportedMetric]:
    """Import each metric as a new one, or as the newest version of the metric with that name, in one transaction.

    Raises ValidationError if an archived metric has the name.
    """
    return [_import(project, definition, user) for definition in metrics]


def _import(project: Project, definition: MetricDefinition, user: User | None) -> ImportedMetric:
    metric = Metric.objects.filter(project=project, name=definition.name, archived_at=None).first()
    if metric is None:
        created = services.metric_create(project=project, definition=definition, user=user)
        return ImportedMetric(newest_version(created), "new")
    before = newest_version(metric)
    saved = services.metric_edit(metric=metric, definition=definition, based_on=before.number, user=user)
    return ImportedMetric(saved, "unchanged" if saved.pk == before.pk else "changed")


def metrics_text(versions: Sequence[MetricVersion]) -> str:
    """The versions as one metrics file. Endpoints are written as URL, model and parameters."""
    return write_metrics_file(definitions_with_addresses(versions))


def definitions_with_addresses(versions: Sequence[MetricVersion]) -> list[MetricDefinition]:
    """The versions' definitions, with URL, model and parameters in place of endpoints."""
    definitions = [MetricDefinition.from_json(version.definition) for version in versions]
    ids = {judge.endpoint for definition in definitions for judge in definition.judges if judge.endpoint}
    endpoints = Endpoint.objects.in_bulk(ids) if ids else {}
    return [_with_addresses(definition, endpoints) for definition in definitions]


def _with_addresses(definition: MetricDefinition, endpoints: Mapping[int, Endpoint]) -> MetricDefinition:
    judges = tuple(
        msgspec.structs.replace(with_address(judge, endpoint), endpoint=None)
        if (endpoint := endpoints.get(judge.endpoint or 0))
        else judge
        for judge in definition.judges
    )
    return msgspec.structs.replace(definition, judges=judges)


def no_endpoint_sentence(unplaced: Unplaced) -> str:
    """What to do about a judge model without an endpoint."""
    sentence = _(
        "%(metric)s: this project has no endpoint with address %(url)s and model "
        "%(model)s. Ask an administrator to add it, then import the file again."
    )
    return sentence % {"metric": unplaced.metric, "url": unplaced.judge.url, "model": unplaced.judge.model}


def metrics_file_sentences(error: MetricsFileError) -> list[str]:
    """One message per problem, with its line."""
    return [
        _("line %(line)s: %(sentence)s") % {"line": problem.line, "sentence": _problem_sentence(problem)}
        for problem in error.problems
    ]


def _problem_sentence(problem: YamlProblem) -> str:
    text, params = PROBLEMS[problem.code], problem.params
    if problem.code == "rules_error":
        place = SourcePlace(int(params["rule_line"]), int(params["rule_column"]))
        in_rules = RuleProblem(params["rule_code"], place, params)
        return translated(text, {**params, "sentence": problem_sentence(in_rules)})
    if not params.get("near"):
        return translated(text, params)
    sentence = translated(text, params)
    return _("%(sentence)s Did you mean “%(near)s”?") % {"sentence": sentence, "near": params["near"]}
