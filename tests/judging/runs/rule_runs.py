"""Runs judged by rule programs, for tests."""

from __future__ import annotations

import json
from typing import Any

from datasets.models import Candidate, Dataset, Response, Row, Version, VersionState
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.records.models import Run
from tests.judging.working import work
from tests.make import a_project, a_run, with_scripts

MECHANICAL = "# DSL\n标签:精确匹配\n主题:字数限制:4\n@聚合方式:min\n@格式限制:JSON\n"
FUZZY = "# DSL\n标签:精确匹配\n主题:模糊匹配\n@格式限制:JSON\n"
CODE = "# DSL\n主题:Python代码:代码1\n@格式限制:JSON\n<代码1>\n{source}\n</代码1>\n"
GOOD = '{"标签": "物理", "主题": "光的折射"}'
REFERENCE = {"标签": "物理", "主题": "光的折射"}


def a_version(*answers: str, reference: Any = REFERENCE) -> Version:
    """A version with one row per answer."""
    dataset = Dataset.objects.create(project=a_project(), name="标注")
    version = Version.objects.create(
        dataset=dataset,
        number=1,
        state=VersionState.READY,
        format="judge_only",
        rows=len(answers),
        valid_rows=len(answers),
    )
    candidate = Candidate.objects.create(version=version, name="甲")
    for line, answer in enumerate(answers, 1):
        raw = {"messages": [{"role": "user", "content": "请标注"}], "ref_answer": reference}
        row = Row.objects.create(version=version, line=line, valid=True, raw=json.dumps(raw))
        Response.objects.create(row=row, candidate=candidate, number=1, raw=json.dumps({"content": answer}))
    return version


def by_rules(rules: str, *answers: str, url: str = "", reference: Any = REFERENCE, **more: Any) -> Run:
    judges = (JudgeModel(name="裁判", template="", url=url, model="scripted"),) if url else ()
    metric = by_program(rules, judges=judges, **more)
    return work(a_run(a_version(*answers, reference=reference), metric))


def by_program(rules: str, **more: Any) -> MetricDefinition:
    return MetricDefinition(name="字段", max_score=5, **with_scripts({"rules": rules, **more}))


def by_written_reference(rules: str, answer: str, reference: str, **more: Any) -> Run:
    """Judge one row whose reference is the JSON text `reference`, stored verbatim."""
    version = a_version(answer)
    raw = f'{{"messages": [{{"role": "user", "content": "?"}}], "ref_answer": {reference}}}'
    Row.objects.filter(version=version).update(raw=raw)
    return work(a_run(version, by_program(rules, **more)))
