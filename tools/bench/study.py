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
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench import Figure, command_line, python
from tools.bench.stored_runs import signed_in_client, stored_version
from tools.soak.browser import Requests
from tools.soak.people import ARRIVING, Rater
from tools.soak.site import running

ITEMS, OVERLAP, RATERS = 5_000, 3, 30
GOLD, GOLD_SHARE, REPEAT_SHARE = 100, 0.05, 0.05
SECONDS = 60.0  # of the raters' work
PAUSE = 10.0  # between two verdicts of a rater: twice as fast as people
VISITS = 9
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


def rate(address: str, password: str) -> list[float]:
    """Let all raters work; return the seconds of each verdict once all have arrived."""
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
    return working


def page_seconds(path: str) -> list[float]:
    """Processor seconds of each visit of a page; the first, which imports modules, is left out."""
    client = signed_in_client()
    return [_seconds(client.get, path) for _visit in range(VISITS + 1)][1:]


def verdict_seconds(evaluation: Any) -> list[float]:
    """Processor seconds of verdicts of one rater; the first, which imports modules, is left out."""
    from django.test import Client

    from evalsite.accounts.models import User

    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.get(username=NAMES[0]))
    desk = f"/p/soak/desk/{evaluation.run_id}/"
    answer = client.get(f"{desk}items/", headers={"accept": "application/json"})
    taken = []
    for item in answer.json()["items"]:
        sent = {"v0": 0, "key": str(uuid.uuid4()), "seconds": 20}
        headers = {"accept": "application/json"}
        taken.append(_seconds(client.post, f"{desk}{item['id']}/verdict/", sent, headers=headers))
    return taken[1:]


def _seconds(method: Any, path: str, *arguments: Any, **more: Any) -> float:
    began = time.process_time()
    response = method(path, *arguments, **more)
    if response.status_code != 200:
        raise RuntimeError(f"{path} was answered with status {response.status_code}")
    return time.process_time() - began


def measured() -> dict[str, Any]:
    """Seconds of each measurement; connects this process to the benchmark site's database for good."""
    password = secrets.token_urlsafe(12)
    roles = dict.fromkeys(NAMES, "rater")
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), PORT, "", False, roles, password) as site,
    ):
        evaluation = new_study()
        store_ratings(evaluation, 0.5)
        verdicts = rate(site.address, password)
        load = os.getloadavg()[0]
        alone = verdict_seconds(evaluation)
        store_ratings(evaluation, 1)
        page = page_seconds(f"/p/soak/evaluations/{evaluation.run_id}/")
        return {"verdicts": verdicts, "load": load, "verdicts_alone": alone, "page": page}


def study_figures() -> Iterator[Figure]:
    times = json.loads(python("-m", "tools.bench.study"))
    p50, p95 = (1000 * np.quantile(times["verdicts"], (0.5, 0.95))).tolist()
    detail = (
        f"{len(times['verdicts'])} by {RATERS} raters at once, median {p50:.0f}, load {times['load']:.1f}"
    )
    yield Figure.at_most("a verdict's POST over HTTP, p95 in ms", p95, VERDICT_MS, detail)
    alone = 1000 * statistics.median(times["verdicts_alone"])
    yield Figure.at_most("processor time of a verdict's POST, ms", alone, VERDICT_MS, f"{ITEMS:,} items")
    page, detail = 1000 * statistics.median(times["page"]), f"{OVERLAP * ITEMS:,} ratings"
    yield Figure.at_most("processor time of an organiser's page, ms", page, PAGE_MS, detail)


def main() -> None:
    command_line(__doc__).parse_args()
    print(json.dumps(measured()))


if __name__ == "__main__":
    main()
