"""The files of `--ci`: a run's report for continuous integration, for the commands and the API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from datasets.core.kinds import PASS_FAIL
from judging.core.ci_files import FAILED_ITEMS, WORST, Item, Results, junit_xml, summary_md
from judging.core.requirements import decide, exit_status, parse_requirement
from judging.records.definitions import definitions_now
from judging.records.models import Judgement, JudgementState, Run
from judging.reports.comparison.services import (
    CellChange,
    changes_between,
    changes_document,
    definitions_by_name,
    shared_cells,
)
from judging.reports.figures import current_figures
from judging.reports.files import document_json
from judging.reports.services import report_document
from judging.reports.sharing import report_html

MOST_TEXT = 300  # characters of an answer


@dataclass(frozen=True, slots=True)
class CiOptions:
    """`require`: requirements; `baseline`: an earlier run; `texts`: whether answers are shown; `site`: its address."""

    require: Sequence[str] = ()
    baseline: Run | None = None
    texts: bool = False
    site: str = ""


def ci_files(run: Run, options: CiOptions) -> tuple[dict[str, bytes], int]:
    """{file name: content}, and the exit status: 0 if all requirements are met, 3 if one is not, 4 if one is undecided.
    Raises RequirementError."""
    parsed = [(text, parse_requirement(text)) for text in options.require]
    stored = current_figures(run)
    document = report_document(run, stored.figures)
    decisions = [(text, decide(requirement, document)) for text, requirement in parsed]
    before = options.baseline
    changes = list(changes_between(before, run, shared_cells(before, run))) if before else []
    results = Results(
        document=document,
        address=options.site + reverse("runs:report", args=[run.project.slug, run.pk]),
        requirements=decisions,
        failed=list(_failed(run, options)),
        baseline=before.name if before else "",
        changes=changes_document(changes) if before else None,
        worse=list(_worse(run, changes, options)),
    )
    files = {
        "report.html": report_html(run, stored),
        "report.json": document_json(document),
        "junit.xml": junit_xml(results),
        "summary.md": summary_md(results).encode(),
    }
    return files, exit_status([decision for _text, decision in decisions])


def _failed(run: Run, options: CiOptions) -> Iterator[Item]:
    """The first failed items of pass/fail metrics."""
    metrics = [pk for pk, definition in definitions_now(run).items() if definition.gives == PASS_FAIL]
    failed = Judgement.objects.filter(
        run=run, current=True, run_metric__in=metrics, state_in_force=JudgementState.SCORED, score_in_force=0
    )
    yield from _items(run, failed.order_by("position", "pk")[:FAILED_ITEMS], options)


def _worse(run: Run, changes: Sequence[CellChange], options: CiOptions) -> Iterator[Item]:
    """The items whose values fell most, as shares of their metrics' scales."""
    definitions = definitions_by_name(run)
    fallen = []
    for change in changes:
        definition = definitions[change.metric]
        width = 1.0 if definition.gives == PASS_FAIL else definition.max_score - definition.min_score
        fallen += [
            (item.difference / (width or 1.0), item.judgement_after)
            for item in change.items()
            if item.difference is not None and item.difference < 0 and item.judgement_after is not None
        ]
    ids = [pk for _difference, pk in sorted(fallen)[:WORST]]
    stored = {item.judgement: item for item in _items(run, Judgement.objects.filter(pk__in=ids), options)}
    yield from (stored[pk] for pk in ids if pk in stored)


def _items(run: Run, judgements: Any, options: CiOptions) -> Iterator[Item]:
    columns = ("pk", "run_metric__name", "candidate__name", "row__line", "response__raw")
    for pk, metric, candidate, line, raw in judgements.values_list(*columns):
        address = options.site + reverse("runs:judgement", args=[run.project.slug, run.pk, pk])
        yield Item(pk, metric, candidate, line, address, raw[:MOST_TEXT] if options.texts else "")
