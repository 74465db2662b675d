"""A study of 5,000 pairs with three raters each: python -m tools.bench.study

Thirty raters send verdicts at once over HTTP while half of the ratings are stored; then all 15,000 are, and an
organiser opens the study's page.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from tools.bench import Figure, command_line
from tools.bench.scale import process_seconds
from tools.bench.stored_runs import signed_in_client, stored_version
from tools.soak.browser import Requests
from tools.soak.people import ARRIVING, Rater
from tools.soak.site import Site, running

ITEMS, OVERLAP, RATERS = 5_000, 3, 30
GOLD, GOLD_SHARE, REPEAT_SHARE = 100, 0.05, 0.05
SECONDS, PAUSE = 60.0, 5.0  # of the raters' work, and between two verdicts of a rater
PAGE_VISITS = 9
PORT = 18947
VERDICT_MS, PAGE_MS = 60.0, 300.0
NAMES = tuple(f"rater{number}" for number in range(1, RATERS + 1))
VALUES = ("A>B", "A>B", "A=B", "B>A")


def new_study() -> Any:
    """An open study without ratings, in the project of the soak test."""
    from evalsite.accounts.models import User
    from judging.core.people.criteria import Criterion
    from judging.people.gold import gold_add, gold_read
    from judging.people.models import Scheme
    from judging.people.sampling import ItemChoice
    from judging.people.services import Terms, evaluation_create

    version = stored_version("study", ITEMS, ("alpha", "beta"), project="soak")
    evaluation = evaluation_create(
        project=version.dataset.project,
        name="study",
        choice=ItemChoice(version, list(version.candidates.order_by("pk")), Scheme.EVERY_PAIR, seed=1),
        criteria=[Criterion(name="Quality", scale="gsb")],
        raters=list(User.objects.filter(username__in=NAMES).order_by("pk")),
        user=None,
        terms=Terms(overlap=OVERLAP, gold_share=GOLD_SHARE, repeat_share=REPEAT_SHARE),
    )
    known = {"a": "alpha", "b": "beta", "values": {"Quality": "A>B"}}
    lines = [json.dumps({"row": row, **known}) for row in range(1, GOLD + 1)]
    gold, wrong = gold_read(evaluation, "\n".join(lines))
    if wrong:
        raise RuntimeError(str(wrong))
    gold_add(evaluation=evaluation, gold=gold)
    return evaluation


def store_ratings(evaluation: Any, share: float) -> None:
    """Import ratings of the last week until this share of the items has all that it needs."""
    from django.core.files.base import ContentFile

    from evalsite import clock
    from evalsite.accounts.models import User
    from judging.people.models import Item
    from judging.people.rating_import import import_begin

    usual = Item.objects.filter(evaluation=evaluation, needed__gt=0, rank__lte=share * ITEMS)
    chance, now = random.Random(share), clock.now()
    lines = []
    for item in usual.filter(free__gt=0).prefetch_related("assignments__rater__user"):
        had = {assignment.rater.user.username for assignment in item.assignments.all()}
        for name in chance.sample([name for name in NAMES if name not in had], item.free):
            at = now - timedelta(days=7) * chance.random()
            values = {"Quality": chance.choice(VALUES)}
            rating = {
                "rater": name,
                "item": item.number,
                "values": values,
                "shown_first": chance.choice((1, 2)),
            }
            lines.append(
                json.dumps(rating | {"seconds": chance.lognormvariate(3, 0.4), "at": at.isoformat()})
            )
    file = ContentFile("\n".join(lines).encode())
    admin = User.objects.get(username="admin")
    ratings_import = import_begin(evaluation=evaluation, file=file, file_name="ratings.jsonl", by=admin)
    while ratings_import.ended_at is None:
        time.sleep(0.5)
        ratings_import.refresh_from_db()
    if ratings_import.problem or ratings_import.invalid:
        raise RuntimeError(f"{ratings_import.problem} {ratings_import.bad_lines[:3]}")


def rate(address: str, password: str) -> tuple[Requests, list[float]]:
    """Let all raters work; return their requests, and the seconds of each verdict once all have arrived."""
    requests, stop = Requests(), threading.Event()
    people = [Rater(name, password, address, requests, stop, [], PAUSE) for name in NAMES]
    threads = [threading.Thread(target=person.live, name=person.name) for person in people]
    for thread in threads:
        thread.start()
    time.sleep(ARRIVING)
    before = len(requests.seconds["rating"])
    time.sleep(SECONDS)
    working = requests.seconds["rating"][before:]
    stop.set()
    for thread in threads:
        thread.join()
    if requests.errors:
        raise RuntimeError("\n".join(requests.errors[:5]))
    return requests, working


def page_times(path: str) -> list[float]:
    """Processor seconds of each visit of a page; the first, which imports modules, is left out."""
    client, taken = signed_in_client(), []
    for _visit in range(PAGE_VISITS + 1):
        began = time.process_time()
        response = client.get(path)
        taken.append(time.process_time() - began)
        if response.status_code != 200:
            raise RuntimeError(f"{path} was answered with status {response.status_code}")
    return taken[1:]


def study_figures() -> Iterator[Figure]:
    """Must run last: it connects this process to the benchmark site's database for good."""
    password = secrets.token_urlsafe(12)
    roles = dict.fromkeys(NAMES, "rater")
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), PORT, "", False, roles, password) as site,
    ):
        evaluation = new_study()
        store_ratings(evaluation, 0.5)
        yield _verdict_figure(site, password)
        store_ratings(evaluation, 1)
        yield _page_figure(evaluation)


def _verdict_figure(site: Site, password: str) -> Figure:
    cpu = process_seconds(site.processes[0].pid)
    requests, working = rate(site.address, password)
    cpu = (process_seconds(site.processes[0].pid) - cpu) / requests.count()
    taken = sorted(working)
    p50, p95 = (taken[len(taken) * share // 100] * 1000 for share in (50, 95))
    detail = (
        f"{len(taken)} verdicts by {RATERS} raters, median {p50:.0f}, {cpu * 1000:.0f} ms of processor time"
    )
    return Figure.at_most(
        "a verdict's POST, p95 in ms", p95, VERDICT_MS, f"{detail} a request, load {os.getloadavg()[0]:.1f}"
    )


def _page_figure(evaluation: Any) -> Figure:
    path = f"/p/soak/evaluations/{evaluation.run_id}/"
    taken = [second * 1000 for second in page_times(path)]
    detail = f"{OVERLAP * ITEMS} ratings, worst of {len(taken)}: {max(taken):.0f}"
    return Figure.at_most(
        "an organiser's page, ms of processor time", statistics.median(taken), PAGE_MS, detail
    )


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in study_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
