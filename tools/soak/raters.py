"""The raters of the simulated week: how they judge, when they work, and what their browsers do."""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.test import Client

    from judging.people.models import Evaluation

_QUALITY = re.compile(r"quality (\d)")
_AHEAD = 3  # items that a page keeps
OFFLINE = timedelta(hours=1)
OFFLINE_DAY = 2
WHOLE_WEEK = range(7)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of rater. `seconds`: median time an item; `noise`: how far its view of an answer is off, in steps;
    `offset`: how much it rates above what it sees; `upside_down`: it takes the lowest for the best; `flags`: figures
    that must be flagged, in the study that compares and in the one that scores; `others`: those that may be."""

    seconds: float = 20.0
    noise: float = 0.4
    offset: float = 0.0
    guesses: bool = False
    upside_down: bool = False
    left_only: bool = False
    days: range | tuple[int, ...] = WHOLE_WEEK
    two_tabs: bool = False
    goes_offline: bool = False
    gives_back: bool = True
    flags: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    others: frozenset[str] = frozenset()


_WRONG = frozenset({"agreement", "gold", "repeats", "deviation"})
KINDS = {
    "honest": (10, Kind()),
    "quick": (2, Kind(seconds=3.0, flags=(frozenset({"time"}), frozenset({"time"})))),
    "slow": (2, Kind(seconds=70.0)),
    "sloppy": (
        2,
        Kind(guesses=True, others=_WRONG),
    ),  # chance agrees with others too often to be told at once
    "misreading": (
        2,
        Kind(upside_down=True, flags=(frozenset({"agreement"}), frozenset({"agreement"})), others=_WRONG),
    ),
    "one-sided": (
        2,
        Kind(left_only=True, flags=(frozenset({"side"}), frozenset()), others=_WRONG | {"value"}),
    ),
    "lenient": (
        2,
        Kind(offset=1.5, flags=(frozenset(), frozenset({"deviation"})), others=_WRONG | {"value"}),
    ),
    "leaving": (2, Kind(days=(0, 1), gives_back=False)),
    "returning": (2, Kind(days=(0, 1, 4, 5, 6))),
    "two tabs": (2, Kind(two_tabs=True)),
    "offline": (2, Kind(goes_offline=True)),
}
"""Number of raters and their kind, by name."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rater sent for an item: the choice's number, as shown."""

    study: int
    token: str
    choice: int
    key: str
    seconds: float


@dataclass
class Rater:
    """One rater with a browser. `confirmed`: what the site said it has stored; `unsent`: what it could not take yet."""

    name: str
    kind: Kind
    client: Client
    chance: random.Random
    items_a_session: int
    confirmed: dict[tuple[int, str], Verdict] = field(default_factory=dict)
    unsent: list[Verdict] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)

    def session(self, study: Evaluation, day: int) -> Iterator[timedelta]:
        """Work on a study for a while; yields the time until its next step."""
        self._send_unsent(study)
        offline = self.kind.goes_offline and day == OFFLINE_DAY
        loaded: dict[str, str] = {}
        for _number in range(self.items_a_session):
            if not loaded and not offline:
                loaded = self._items(study, [])
            if not loaded:
                break
            token, html = next(iter(loaded.items()))
            del loaded[token]
            seconds = self.kind.seconds * self.chance.lognormvariate(0, 0.4)
            yield timedelta(seconds=seconds)
            verdict = Verdict(study.run_id, token, self._choice(html), self._key(), seconds)
            if offline:
                self.unsent.append(verdict)
                continue
            self._send(verdict)
            if self.kind.two_tabs:
                self._send(replace(verdict, choice=0, key=self._key()))  # the other tab says something else
            if len(loaded) < _AHEAD:
                loaded |= self._items(study, list(loaded))
        if offline:
            yield OFFLINE
            self._send_unsent(study, times=2)  # as if the first answer had not arrived
        if self.kind.gives_back and loaded:
            self._give_back(study, loaded)

    def _choice(self, html: str) -> int:
        """The number of the choice, in the order of the form's keys."""
        seen = [int(quality) + self.chance.gauss(0, self.kind.noise) for quality in _QUALITY.findall(html)]
        if self.kind.upside_down:
            seen = [6 - quality for quality in seen]
        if len(seen) == 1:
            if self.kind.guesses:
                return self.chance.randrange(5)
            return min(max(round(seen[0] + self.kind.offset), 1), 5) - 1
        left, right = seen
        if self.kind.left_only:
            return 0
        if self.kind.guesses:
            return self.chance.randrange(3)
        return 1 if abs(left - right) < 0.5 else 0 if left > right else 2

    def _key(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def _items(self, study: Evaluation, loaded: list[str]) -> dict[str, str]:
        """The HTML of the next items by token."""
        answer = self._asked("get", f"{self._desk(study.run_id)}items/", {"have": ",".join(loaded)})
        return {item["id"]: item["html"] for item in answer["items"]} if answer else {}

    def _give_back(self, study: Evaluation, loaded: dict[str, str]) -> None:
        from evalsite import clock

        until = clock.now() + timedelta(minutes=study.lease_minutes)
        sent = {"items": ",".join(loaded), "until": until.isoformat()}
        self._asked("post", f"{self._desk(study.run_id)}give-back/", sent)

    def _send_unsent(self, study: Evaluation, times: int = 1) -> None:
        for verdict in [verdict for verdict in self.unsent if verdict.study == study.run_id]:
            for _time in range(times):
                self._send(verdict)

    def _send(self, verdict: Verdict) -> None:
        """Send a verdict; keep it for later if the study is paused."""
        sent = {"v0": verdict.choice, "key": verdict.key, "seconds": verdict.seconds}
        began = time.perf_counter()
        answer = self._asked("post", f"{self._desk(verdict.study)}{verdict.token}/verdict/", sent)
        self.taken.append(time.perf_counter() - began)
        if answer and answer.get("code") == "paused":
            if verdict not in self.unsent:
                self.unsent.append(verdict)
        elif answer and "code" not in answer:
            self.confirmed.setdefault((verdict.study, verdict.token), verdict)
            if verdict in self.unsent:
                self.unsent.remove(verdict)
        else:
            self.surprises.append(f"{self.name}: a verdict was answered with {answer}")

    def _desk(self, study: int) -> str:
        return f"/p/week/desk/{study}/"

    def _asked(self, method: str, path: str, sent: dict[str, Any]) -> dict[str, Any] | None:
        answer = getattr(self.client, method)(path, sent, headers={"accept": "application/json"})
        if answer.status_code not in (200, 204, 409):
            self.surprises.append(f"{self.name}: {path} answered with status {answer.status_code}")
            return None
        return dict(answer.json()) if answer.content else {}
