"""Runs during which workers died: they are worked on alone, and set aside if that goes on.

A dead worker does not say which of its runs killed it: a reply that takes all its memory, a script, or somebody with
kill -9. So each run that it held is suspected until it goes on without a death: until something was stored, and the
requests that were lost with the worker are answered. A suspected run is tried alone, so that the next death tells:
after two deaths without progress, or twenty in all, it is set aside. No run can stop the others. The same holds for a
run that was being planned; each planned slice of it is progress.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef

from datasets.models import Response
from evalsite.tasks import workers
from judging.engine import chunks
from judging.engine.journal import Work, WorkKey, requests_of
from judging.engine.stopping import run_set_aside
from judging.records.models import WORKED_ON, Chunk, Judgement, JudgementState, Run, RunCandidate, RunState

MAX_DEATHS_WITHOUT_PROGRESS = 2
MAX_DEATHS = 20
CLOCKS = 0.01  # seconds between a judgement and the journal's last entry
TRIAL_SECONDS = 60.0  # how long other runs wait for a suspected one


@dataclass(frozen=True, slots=True)
class Suspects:
    """Running runs that are suspected, and those of them that nobody works on."""

    all: frozenset[int] = frozenset()
    free: tuple[int, ...] = ()


def count(owners: Iterable[str]) -> int:
    """Release the runs and chunks of processes of this host that are gone, and count their deaths. Returns how many
    chunks.

    A process that ends in order releases them itself.
    """
    return sum(_count(owner) for owner in owners if workers.has_ended_on_this_host(owner))


def _count(owner: str) -> int:
    requests, died_at = requests_of(owner)
    held = Chunk.objects.filter(owner=owner, done=False)
    planned = Run.objects.filter(planner=owner, state=RunState.PLANNING)
    in_hand = {*held.values_list("run", flat=True), *planned.values_list("pk", flat=True)}
    total = 0
    for pk in in_hand:
        with transaction.atomic():
            run = Run.objects.select_for_update().get(pk=pk)
            freed = held.filter(run=pk).update(owner="", lease_until=0)
            # Without either, another process has counted it.
            counts = planned.filter(pk=pk).update(planner="") or freed
            if counts and (run.batched or run.state in WORKED_ON) and not run.only_worker:
                _count_death(run, requests, died_at, alone=len(in_hand) == 1)
            total += freed
    return total


def _count_death(run: Run, requests: list[WorkKey], died_at: float, *, alone: bool) -> None:
    deaths = 1 if is_cleared(run) else run.worker_deaths + 1
    in_vain = alone and not _made_progress(run)
    too_many = deaths >= (MAX_DEATHS_WITHOUT_PROGRESS if in_vain else MAX_DEATHS)
    if too_many and not run_set_aside(run):
        chunks.park_free(run.pk)
    Run.objects.filter(pk=run.pk).update(
        worker_deaths=deaths, worker_died_at=died_at, in_flight_at_death=_of_run(run, requests)
    )


def _made_progress(run: Run) -> bool:
    """Whether a judgement or an answer was stored after the last death."""
    later = {"finished_at__gt": run.worker_died_at + CLOCKS}
    return run.judgements.filter(**later).exists() or run.generations.filter(**later).exists()


def is_cleared(run: Run) -> bool:
    """Whether the run is not suspected, or no longer."""
    if not run.worker_deaths:
        return True
    return _made_progress(run) and not _is_open(run.in_flight_at_death)


def _of_run(run: Run, requests: list[WorkKey]) -> list[tuple[int, int]]:
    """The requests that belong to the run, as [work, id]."""
    judgements = Judgement.objects.filter(run=run, pk__in=_ids(requests, Work.JUDGEMENT))
    candidates = RunCandidate.objects.filter(run=run).values("candidate")
    answers = Response.objects.filter(candidate__in=candidates, pk__in=_ids(requests, Work.ANSWER))
    return [(int(Work.JUDGEMENT), pk) for pk in judgements.values_list("pk", flat=True)] + [
        (int(Work.ANSWER), pk) for pk in answers.values_list("pk", flat=True)
    ]


def _is_open(requests: Iterable[tuple[int, int]]) -> bool:
    judgements = Judgement.objects.filter(pk__in=_ids(requests, Work.JUDGEMENT), state=JudgementState.NOT_RUN)
    return judgements.exists() or Response.objects.filter(pk__in=_ids(requests, Work.ANSWER), raw="").exists()


def _ids(requests: Iterable[tuple[int, int]], work: Work) -> list[int]:
    return [pk for kind, pk in requests if kind == work]


def suspects(running: Iterable[int]) -> Suspects:
    """The suspected ones of these runs, in the order in which to try them. Clears those that went on."""
    suspected = list(Run.objects.filter(pk__in=running, worker_deaths__gt=0).order_by("worker_deaths", "pk"))
    for run in suspected:
        if is_cleared(run):
            Run.objects.filter(pk=run.pk).update(worker_deaths=0, in_flight_at_death=[])
    left = [run.pk for run in suspected if not is_cleared(run)]
    if not left:
        return Suspects()
    open_chunks = Chunk.objects.filter(run=OuterRef("pk"), done=False)
    free = Run.objects.filter(Exists(open_chunks), ~Exists(open_chunks.exclude(owner="")), pk__in=left)
    untouched = set(free.values_list("pk", flat=True))
    return Suspects(frozenset(left), tuple(pk for pk in left if pk in untouched))
