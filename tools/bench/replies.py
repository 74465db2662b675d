"""Benchmarks of reading judges' replies: an ordinary one of 1 kB, and the short ones that most judges give."""

from __future__ import annotations

import time
from collections.abc import Iterator

from judging.core.reading.gives import Gives
from judging.core.reading.reader import read_reply
from tools.bench import Figure, command_line

REPLIES: tuple[tuple[str, str, float], ...] = (
    ("a reply of 1 kB", "The response is mostly right, and “well put”. " * 21 + "\n\nScore: 8/10", 500),
    ("a bare number", "8", 60),
    ("a lone [[8]]", "[[8]]", 60),
    ("a JSON object", '{"reasoning": "All facts are right.", "verdict": 8}', 60),
)
_TRIES, _TIMES = 20, 100


def reply_figures() -> Iterator[Figure]:
    for name, reply, most in REPLIES:
        spent = min(_seconds_to_read(reply) for _ in range(_TRIES)) * 1_000_000
        yield Figure.at_most(f"processor time to read {name}, µs", spent, most, f"the least of {_TRIES}")


def _seconds_to_read(reply: str) -> float:
    gives = Gives("score")
    started = time.process_time()
    for _ in range(_TIMES):
        read_reply(reply, gives)
    return (time.process_time() - started) / _TIMES


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in reply_figures():
        print(figure)


if __name__ == "__main__":
    main()
