"""A judge that fails often: some requests always, some at first, and any by chance."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import replace

from judging.core.judges import scripted
from judging.core.judges.scripted import Answer, Received

UNREADABLE = Answer(body=b"<html>Bad gateway</html>")


class FlakyScript:
    """By a hash of the body, 20 % of the requests fail for ever (500) and 30 % are first told to wait (429). Each
    further call fails with 10 % (500) and 10 % (a body that is no JSON). `delay`: seconds before each answer."""

    def __init__(self, delay: float = 0.0, seed: int = 1) -> None:
        self.delay = delay
        self.calls: Counter[bytes] = Counter()
        self._random = random.Random(seed)

    def __call__(self, asked: Received) -> Answer:
        return replace(self._answer(asked), delay=self.delay)

    def _answer(self, asked: Received) -> Answer:
        self.calls[asked.raw] += 1
        part = part_of(asked.raw)
        if part < 0.2:
            return scripted.server_error()
        if part < 0.5 and self.calls[asked.raw] == 1:
            return scripted.rate_limited(None)
        chance = self._random.random()
        if chance < 0.2:
            return scripted.server_error() if chance < 0.1 else UNREADABLE
        return Answer("Score: [[7]]")

    @property
    def readable(self) -> int:
        """How many of the requests don't fail for ever."""
        return sum(part_of(body) >= 0.2 for body in self.calls)


def part_of(body: bytes) -> float:
    """A number from 0 to 1 by the body's hash."""
    return int.from_bytes(hashlib.sha256(body).digest()[:4]) / 2**32
