"""A simulated week of two studies: `python -m tools.soak.week`.

Thirty scripted raters score answers and compare them through the site's own addresses, while the studies' time is
moved from one step of a rater to the next (`evalsite.clock`). At the end everything that the site confirmed must be
stored once, no item may have more or fewer ratings than asked for, and flags must stand where they belong. Exit
status 1 if not.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tools.soak.raters import KINDS, Rater
from tools.soak.week_checks import problems

if TYPE_CHECKING:
    from evalsite.accounts.models import Project, User
    from judging.people.models import Evaluation

MONDAY = datetime(2027, 3, 1, tzinfo=UTC)
DAYS = 7
SESSIONS = (9, 14)  # the hour from which raters compare, and score
MODELS = ("heron", "wren")
PAUSED = timedelta(days=3, hours=14), timedelta(days=3, hours=16)
OVERLAP, GOLD_SHARE, REPEAT_SHARE = 3, 0.1, 0.1


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak.week", description=__doc__)
    parser.add_argument(
        "--rows",
        type=int,
        default=400,
        help="questions, each with two answers; with fewer, not all flags can be told",
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


@dataclass
class Week:
    """The studies and the raters of a week."""

    studies: list[Evaluation]
    raters: list[Rater]
    owner: User

    def live(self) -> None:
        """Let everybody work, one step after the other, until the week is over."""
        from evalsite import clock

        numbers = itertools.count()
        waiting = [(moment, next(numbers), steps) for moment, steps in self._beginnings()]
        heapq.heapify(waiting)
        while waiting:
            moment, _number, steps = heapq.heappop(waiting)
            with clock.moved_to(moment):
                wait = next(steps, None)
            if wait is not None:
                heapq.heappush(waiting, (moment + wait, next(numbers), steps))

    def _beginnings(self) -> Iterator[tuple[datetime, Iterator[timedelta]]]:
        for pause, after in ((True, PAUSED[0]), (False, PAUSED[1])):
            yield MONDAY + after, self._pause(pause=pause)
        for rater, day in itertools.product(self.raters, range(DAYS)):
            if day in rater.kind.days:
                for study, hour in zip(self.studies, SESSIONS, strict=True):
                    minutes = rater.chance.randrange(90)
                    begins = MONDAY + timedelta(days=day, hours=hour, minutes=minutes)
                    yield begins, rater.session(study, day)

    def _pause(self, *, pause: bool) -> Iterator[timedelta]:
        from judging.people.states import study_pause, study_resume

        for study in self.studies:
            (study_pause if pause else study_resume)(evaluation=study, by=self.owner)
        yield from ()


@contextmanager
def site() -> Iterator[None]:
    """An empty site in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="week-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "evalsite.settings", "DATA_DIR": folder, "DATABASE_URL": ""}
        os.environ |= {"REQUIRE_SIGN_IN": "1", "DEMO_JUDGE": "0"}
        import django

        django.setup()
        from django.conf import settings

        from evalsite.storage import data_dir

        data_dir.prepare()
        settings.ALLOWED_HOSTS = ["testserver"]
        yield


def prepare(rows: int, seed: int) -> Week:
    """The project, its data set, both studies with gold, opened by their date, and the raters."""
    from django.test import Client

    from evalsite.accounts.members import roles_set
    from evalsite.accounts.models import Role, User
    from evalsite.accounts.services import project_create

    owner = User.objects.create_user("owner")
    project = project_create(name="Week", slug="week", owner=owner)
    raters = []
    items = rows * 3  # a pair, and two answers
    names = [
        (f"{name} {number}", kind) for name, (count, kind) in KINDS.items() for number in range(1, count + 1)
    ]
    a_session = 1 + round(
        1.5 * items * OVERLAP * (1 + GOLD_SHARE + REPEAT_SHARE) / len(names) / len(SESSIONS) / DAYS
    )
    for number, (name, kind) in enumerate(names):
        user = User.objects.create_user(name)
        roles_set(project=project, user=user, roles=[Role.RATER])
        client = Client()
        client.force_login(user)
        raters.append(Rater(name, kind, client, random.Random(f"{seed} {number}"), a_session))
    return Week(list(_studies(project, owner, [rater.name for rater in raters], rows, seed)), raters, owner)


def _studies(project: Project, owner: User, names: list[str], rows: int, seed: int) -> Iterator[Evaluation]:
    from django.core.files.base import ContentFile

    from datasets.importing.worker import import_or_wait
    from datasets.services import dataset_upload
    from evalsite import clock
    from evalsite.accounts.models import User
    from judging.core.people.criteria import Criterion
    from judging.people.models import Scheme
    from judging.people.sampling import ItemChoice
    from judging.people.services import Terms, evaluation_create

    chance = random.Random(f"{seed} answers")
    qualities = [(chance.randint(1, 5), chance.randint(1, 5)) for _row in range(rows)]
    file = ContentFile("".join(map(_line, range(1, rows + 1), qualities)).encode())
    version = import_or_wait(
        dataset_upload(project=project, name="Answers", file=file, file_name="answers.jsonl", user=owner).pk
    )
    candidates = list(version.candidates.order_by("pk"))
    terms = Terms(overlap=OVERLAP, gold_share=GOLD_SHARE, repeat_share=REPEAT_SHARE)
    comparing, scoring = Criterion(name="Quality", scale="gsb"), Criterion(name="Quality", scale="five")
    for name, criterion, scheme in (
        ("Comparing", comparing, Scheme.EVERY_PAIR),
        ("Scoring", scoring, Scheme.NONE),
    ):
        with clock.moved_to(MONDAY):
            evaluation = evaluation_create(
                project=project,
                name=name,
                choice=ItemChoice(version, candidates, scheme, seed=seed),
                criteria=[criterion],
                raters=list(User.objects.filter(username__in=names)),
                user=owner,
                terms=terms,
            )
        _gold_add(evaluation, qualities)
        yield evaluation


def _line(number: int, qualities: tuple[int, int]) -> str:
    outputs = [
        {"model_name": name, "responses": [{"content": f"An answer of quality {quality}."}]}
        for name, quality in zip(MODELS, qualities, strict=True)
    ]
    messages = [{"role": "user", "content": f"Question {number}"}]
    return json.dumps({"messages": messages, "model_outputs": outputs}) + "\n"


def _gold_add(evaluation: Evaluation, qualities: list[tuple[int, int]]) -> None:
    """Every tenth row is gold, with the answer that everybody who looks can see."""
    from judging.people.gold import gold_add, gold_read

    lines = []
    for number in range(1, len(qualities) + 1, 10):
        first, second = qualities[number - 1]
        known: object = {"value": first, "within": 1}
        if evaluation.scheme:
            known = "A=B" if first == second else "A>B" if first > second else "B>A"
        second_name = {"b": MODELS[1]} if evaluation.scheme else {}
        lines.append(json.dumps({"row": number, "a": MODELS[0], **second_name, "values": {"Quality": known}}))
    items, wrong = gold_read(evaluation, "\n".join(lines))
    assert not wrong, wrong
    gold_add(evaluation=evaluation, gold=items)


def main() -> None:
    """Simulate the week and report."""
    chosen, began = options(), time.monotonic()
    with site():
        from judging.people.models import Rating

        week = prepare(chosen.rows, chosen.seed)
        week.live()
        found = problems(week.studies, week.raters)
        taken = sorted(second for rater in week.raters for second in rater.taken)
        p50, p95 = (taken[len(taken) * share // 100] * 1000 for share in (50, 95))
        seconds, processor = time.monotonic() - began, time.process_time()
        ratings = f"{Rating.objects.count()} ratings by {len(week.raters)} raters"
        print(f"{ratings} in {seconds:.0f} s, {processor:.0f} s of processor time")
        print(f"a verdict took {p50:.0f} ms, 95 of 100 at most {p95:.0f} ms")
    print("\n".join([*found[:50], f"{len(found)} problems"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
