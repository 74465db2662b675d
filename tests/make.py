"""Factories for tests: a ready version, a metric, a run. They use the real services where these exist."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from datasets.models import Candidate, Dataset, Response, Row, Version, VersionState
from evalsite.accounts.models import Project
from evalsite.accounts.services import project_create
from judging.core.candidates import CandidateModel
from judging.core.metric_definition import JudgeModel, MetricDefinition, Script
from judging.records.models import Run
from judging.runs.services import ChosenMetric, run_create

_numbers = itertools.count(1)
TEMPLATE = "Q: {{ data.question }}\nA: {{ response.content }}"
PAIR_TEMPLATE = "Q: {{ data.question }}\nA: {{ a.content }}\nB: {{ b.content }}"


def a_project(name: str = "Physics") -> Project:
    return project_create(name=name)


def a_version(
    project: Project, rows: int = 3, models: Sequence[str] = ("alpha", "beta"), answers: int = 1
) -> Version:
    """A ready version with `rows` questions, each answered `answers` times by every model."""
    dataset = Dataset.objects.create(project=project, name=f"set {next(_numbers)}")
    version = Version.objects.create(
        dataset=dataset, number=1, state=VersionState.READY, format="judge_only", rows=rows, valid_rows=rows
    )
    candidates = [Candidate.objects.create(version=version, name=name) for name in models]
    made = Row.objects.bulk_create(
        Row(version=version, line=line, valid=True, raw=json.dumps(asked(line)))
        for line in range(1, rows + 1)
    )
    Response.objects.bulk_create(
        Response(row=row, candidate=candidate, number=number, raw=json.dumps(said(candidate, row, number)))
        for row in made
        for candidate in candidates
        for number in range(1, answers + 1)
    )
    return version


def asked(line: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"question {line}"}]}


def said(candidate: Candidate, row: Row, number: int) -> dict[str, Any]:
    return {"content": f"{candidate.name} says {row.line}.{number}"}


def a_metric(url: str, **changes: Any) -> MetricDefinition:
    """A metric with one judge model at `url`."""
    judge: dict[str, Any] = {"name": "judge", "url": url, "model": "scripted", "template": TEMPLATE}
    for key in [key for key in changes if key in JudgeModel.__struct_fields__ and key != "name"]:
        judge[key] = changes.pop(key)
    metric = {"name": "quality", "judges": (JudgeModel(**judge),), **with_scripts(changes)}
    return MetricDefinition(**metric)


def with_scripts(changes: dict[str, Any]) -> dict[str, Any]:
    """Fields of a metric in which `preprocess` and `postprocess` are scripts before and after all judging (by one judge
    model, if they do not say)."""
    changes = dict(changes)
    before, after = changes.pop("preprocess", ""), changes.pop("postprocess", "")
    judging = 1 if changes.get("rules") else len(changes.get("judges", [1]))
    scripts = [Script(kind="preprocess", source=before)] if before else []
    if after:
        scripts.append(Script(kind="postprocess", source=after, after=judging))
    return {"scripts": tuple(scripts), **changes} if scripts else changes


def a_comparison(url: str, **changes: Any) -> MetricDefinition:
    """A metric with one judge model at `url` that compares candidates, in both orders."""
    usual = {"template": PAIR_TEMPLATE, "gives": "comparison", "compares": "all", "both_orders": True}
    return a_metric(url, **{**usual, **changes})


def a_run(version: Version, *metrics: MetricDefinition, name: str = "", **options: Any) -> Run:
    """A run waiting for a worker, with all uploaded candidates of the version by default."""
    options.setdefault("candidates", list(Candidate.uploaded.filter(version=version).order_by("pk")))
    return run_create(
        project=version.dataset.project,
        name=name or f"run {next(_numbers)}",
        version=version,
        metrics=[ChosenMetric(metric) for metric in metrics],
        user=None,
        **options,
    )


def a_candidate(url: str, name: str = "gamma", **changes: Any) -> CandidateModel:
    """A candidate model at `url` that generates answers."""
    return CandidateModel(name=name, url=url, model="scripted", **changes)
