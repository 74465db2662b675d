"""Runs compared: a table of any number of them; of two also why their numbers differ, and item by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from django.contrib.auth.decorators import login_required
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from datasets.core.formats import Format
from datasets.core.text_diff import Piece, pieces
from datasets.core.variables import row_data
from datasets.models import Row
from evalsite.web.numbers import whole
from judging.comparison.labels import cause_name
from judging.comparison.services import OUTCOMES, CellChange, ComparedItem, changes_between, shared_cells
from judging.core.change import Change
from judging.metrics.version_diff import PartView, parts_of_definitions
from judging.reports.figures import for_page
from judging.runs.access import get_judgement, get_run
from judging.runs.models import JudgeReply, Run
from judging.runs.rerun.reparse import definition_now

LAYOUT = 1  # of what is kept; to be raised when KeptChange changes
ITEMS_PER_PAGE = 50
MOST_RUNS = 12
OFFERED = 100  # runs in the list to choose from
AT_ONCE = 200_000  # judgements of both runs; beyond that one candidate is worked out at a time
KEPT_SECONDS = 3600
QUESTION_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class KeptChange:
    """A cell's change with its items, as the page keeps them."""

    metric: str
    candidate: str
    change: Change
    items: list[ComparedItem]

    def counts(self) -> dict[str, int]:
        return {outcome: sum(one.outcome == outcome for one in self.items) for outcome in OUTCOMES}

    def of(self, outcome: str, cause: str) -> list[ComparedItem]:
        chosen = [one for one in self.items if not outcome or one.outcome == outcome]
        return [one for one in chosen if not cause or one.cause == cause]


@login_required
@require_GET
def compare(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """This run with those that `with` names: with none a list to choose from."""
    run = get_run(request, slug, pk)
    others = [get_run(request, slug, number) for number in _chosen(request, run)]
    context: dict[str, Any] = {"run": run, "others": others, "offered": _offered(run)}
    if len(others) == 1:
        context |= _two_runs(request, others[0], run)
    elif others:
        context |= {"table": _figures_table([*others, run])}
    return render(request, "comparison/compare.html", context)


def _chosen(request: HttpRequest, run: Run) -> list[int]:
    """Raises Http404 for what is no number."""
    numbers = [whole(text) for text in request.GET.getlist("with")]
    if None in numbers or len(numbers) > MOST_RUNS:
        raise Http404
    return sorted({number for number in numbers if number is not None} - {run.pk})


def _offered(run: Run) -> list[Run]:
    """The project's other runs that have scores, those over the same data set first, then newest first."""
    found = Run.objects.filter(project=run.project_id, archived_at=None, scored__gt=0).exclude(pk=run.pk)
    runs = list(found.select_related("version__dataset").order_by("-pk")[:OFFERED])
    return sorted(runs, key=lambda one: one.version.dataset_id != run.version.dataset_id)


def _two_runs(request: HttpRequest, before: Run, after: Run) -> dict[str, Any]:
    cells = shared_cells(before, after)
    if not cells:
        return {"before": before, "after": after, "cells": []}
    asked = (request.GET.get("metric") or cells[0][0], request.GET.get("candidate", ""))
    chosen = next((one for one in cells if asked in (one, (one[0], ""))), None)
    if chosen is None:
        raise Http404
    small = before.total + after.total <= AT_ONCE
    changes = kept_changes(before, after, cells if small else [chosen])
    return {
        "before": before,
        "after": after,
        "settings": settings_between(before, after),
        "metrics": list(dict.fromkeys(metric for metric, _candidate in cells)),
        "cells": cells,
        "changes": [(one, shares_of(one)) for one in changes if one.metric == chosen[0]],
        **_items(request, next(one for one in changes if (one.metric, one.candidate) == chosen), after),
    }


def kept_changes(before: Run, after: Run, cells: Sequence[tuple[str, str]]) -> list[KeptChange]:
    """The changes of these cells, kept while neither run changes."""
    runs = ":".join(f"{run.pk}.{run.created_at.timestamp()}.{run.revision}" for run in (before, after))
    key = f"compare.{LAYOUT}:{runs}:{sha256(repr(cells).encode()).hexdigest()}"
    found: list[KeptChange] | None = cache.get(key)
    if found is None:
        found = [_kept(one) for one in changes_between(before, after, cells)]
        cache.set(key, found, KEPT_SECONDS)
    return found


def _kept(cell: CellChange) -> KeptChange:
    return KeptChange(cell.metric, cell.candidate, cell.change, cell.items())


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A share with its name and its bar on a scale from −50 to 50 that all shares of the cell have in common."""

    cause: str
    name: str
    difference: float
    items: int
    left: str
    width: str


def shares_of(kept: KeptChange) -> list[ShareRow]:
    """The shares of a cell, the largest first."""
    shares = sorted(kept.change.shares, key=lambda one: -abs(one.difference))
    most = max((abs(one.difference) for one in shares), default=0) or 1
    return [
        ShareRow(
            one.cause,
            cause_name(one.cause),
            one.difference,
            len(one.items),
            f"{50 + min(0.0, 50 * one.difference / most):.1f}",
            f"{max(0.5, 50 * abs(one.difference) / most):.1f}",
        )
        for one in shares
    ]


def settings_between(before: Run, after: Run) -> list[tuple[str, list[PartView]]]:
    """By metric that both runs have: the settings that differ."""
    first, second = ({one.name: definition_now(one) for one in run.metrics.all()} for run in (before, after))
    parts = [
        (name, parts_of_definitions(after.project_id, first[name], metric))
        for name, metric in second.items()
        if name in first
    ]
    return [(name, differing) for name, differing in parts if differing]


def _items(request: HttpRequest, chosen: KeptChange, after: Run) -> dict[str, Any]:
    outcome, cause = request.GET.get("outcome", ""), request.GET.get("cause", "")
    causes = [share.cause for share in chosen.change.shares]
    if outcome not in ("", *OUTCOMES) or cause not in ("", *causes):
        raise Http404
    found = chosen.of(outcome, cause)
    pages = max(1, -(-len(found) // ITEMS_PER_PAGE))
    page = min(whole(request.GET.get("page", "")) or 1, pages)
    here = found[(page - 1) * ITEMS_PER_PAGE : page * ITEMS_PER_PAGE]
    return {
        "chosen": chosen,
        "outcome": outcome,
        "cause": cause,
        "counts": chosen.counts(),
        "causes": [(one, cause_name(one)) for one in causes],
        "items": _with_questions(here),
        "count": len(found),
        "previous": page - 1 if page > 1 else None,
        "next": page + 1 if page < pages else None,
    }


def _with_questions(found: Sequence[ComparedItem]) -> list[tuple[ComparedItem, int, str, str]]:
    """Each with its row's line, the beginning of its question and the cause's name."""
    rows = Row.objects.select_related("version").in_bulk([one.row for one in found])
    return [
        (one, rows[one.row].line, _question(rows[one.row])[:QUESTION_CHARACTERS], cause_name(one.cause))
        for one in found
    ]


def _question(row: Row) -> str:
    return row_data(row.raw, cast(Format, row.version.format))["question"] or ""


@login_required
@require_GET
def compare_item(
    request: HttpRequest, slug: str, pk: int, other: int, first: int, second: int
) -> HttpResponse:
    """The replies to two judgements beside each other, with what differs marked."""
    after, before = get_judgement(request, slug, pk, second), get_judgement(request, slug, other, first)
    replies = [_replies(one.asked_by_id or one.pk) for one in (before, after)]
    places = sorted({*replies[0], *replies[1]})
    pairs = [pieces(replies[0].get(place, ""), replies[1].get(place, "")) for place in places]
    answers = [one.response.raw for one in (before, after)]
    context = {
        "before": before,
        "after": after,
        "pairs": [(_side(one, "removed"), _side(one, "added")) for one in pairs],
        "answers_differ": answers[0] != answers[1],
    }
    return render(request, "comparison/_item.html", context)


def _replies(judgement: int) -> dict[tuple[int, int, bool], str]:
    """What each judge said, reasoning first, by judge, repeat and order."""
    found = JudgeReply.objects.filter(judgement=judgement)
    return {
        (one.judge, one.repeat, one.swapped): "\n\n".join(filter(None, (one.reasoning, one.content)))
        for one in found
    }


def _side(found: list[Piece], mine: str) -> list[Piece]:
    return [piece for piece in found if piece.kind in ("same", mine)]


def _figures_table(runs: list[Run]) -> list[dict[str, Any]]:
    """A row for each metric and candidate of any of the runs, with its cell in each of them, oldest first."""
    runs = sorted(runs, key=lambda one: one.pk)
    reports = [kept.figures.report["candidates"] if (kept := for_page(run)) else {} for run in runs]
    names = dict.fromkeys(
        (metric, candidate) for report in reports for candidate, cells in report.items() for metric in cells
    )
    table = []
    for metric, candidate in sorted(names):
        cells = [report.get(candidate, {}).get(metric) for report in reports]
        means = [cell and cell["mean"] for cell in cells]
        if all(mean is None for mean in means):
            continue  # a metric that gives no number
        table.append(
            {
                "metric": metric,
                "candidate": candidate,
                "cells": list(zip(runs, cells, strict=True)),
                "trend": trend_points(means),
            }
        )
    return table


def trend_points(means: Sequence[float | None]) -> str:
    """The points of a line 80 wide and 20 high through the means that there are; '' for fewer than two."""
    known = [(place, mean) for place, mean in enumerate(means) if mean is not None]
    if len(known) < 2:
        return ""
    low, high = min(mean for _, mean in known), max(mean for _, mean in known)
    step = 76 / (len(means) - 1)
    return " ".join(
        f"{2 + place * step:.1f},{10 if high == low else 18 - 16 * (mean - low) / (high - low):.1f}"
        for place, mean in known
    )
