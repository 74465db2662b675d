"""Files made to exhaust memory: each is read in a process with a tight memory limit."""

import gzip
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MEBIBYTE = 1024 * 1024
READER = """
import os, resource, sys
from pathlib import Path
from datasets.core.limits import Limits
from datasets.core.reader import read
LIMITS

def read_within(file, extra):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    counts = read(file, limits=LIMITS, digest=False).summary.counts
    return " ".join(f"{code} {count}" for code, count in counts.items())

for line in sys.stdin:
    file, extra = line.split()
    if os.fork() == 0:
        print(read_within(file, int(extra)), flush=True)
        os._exit(0)
    if status := os.wait()[1]:
        print(f"ended with {status}", flush=True)
"""
VALUES = 250_000
UNPACKED, ROW = 40 * MEBIBYTE, 4 * MEBIBYTE
FINE = b'{"messages": [{"role": "user", "content": "?"}]}\n'
COUNT = 75_000


def listed(item: bytes, end: bytes = b"]}") -> bytes:
    return FINE + b'{"messages": [' + b",".join([item] * COUNT) + end + b"\n"


def asked(more: bytes) -> bytes:
    return FINE + b'{"messages": [{"role": "user", "content": "!"}], ' + more + b"}\n"


Read = Callable[[bytes, int], dict[str, int]]


@pytest.fixture(scope="module")
def reader() -> Iterator[subprocess.Popen[str]]:
    """A process that forks for each file, so that the reader is imported once."""
    limits = f"LIMITS = Limits(row_values={VALUES}, unpacked_bytes={UNPACKED}, row_bytes={ROW})"
    program = READER.replace("LIMITS", limits, 1)
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


@pytest.fixture
def counts(reader: subprocess.Popen[str], tmp_path: Path) -> Read:
    """Return a function that reads bytes in a process that may allocate `extra` bytes, and returns counts by code."""
    file = tmp_path / "file"

    def counted(source: bytes, extra: int) -> dict[str, int]:
        assert reader.stdin is not None
        assert reader.stdout is not None
        file.write_bytes(source)
        print(file, extra, file=reader.stdin, flush=True)
        words = reader.stdout.readline().split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))

    return counted


ROWS: dict[str, tuple[Callable[[], bytes], dict[str, int]]] = {
    "numbers for messages": (lambda: listed(b"1"), {"message.not_object": COUNT}),
    "empty messages": (lambda: listed(b"{}"), {"role.missing": COUNT, "content.missing": COUNT}),
    "cut at its end": (lambda: listed(b"{}", b",]}"), {"json.invalid": 1}),
    "one key again and again": (
        lambda: asked(b'"x": {' + b",".join([b'"a":1'] * COUNT) + b"}"),
        {"json.duplicate_key": COUNT - 1},
    ),
    "many NULs": (
        lambda: listed(b'{"role":"tool","content":"\\u0000"}'),
        {"json.nul": COUNT, "messages.no_user": 1},
    ),
    "brackets without end": (lambda: asked(b'"x": ' + b"[" * 200_000), {"json.invalid": 1}),
    "millions of brackets": (lambda: asked(b'"x": ' + b"[" * 2_000_000), {"row.too_large": 1}),
    "5,000 brackets": (lambda: asked(b'"x": ' + b"[" * 5_000 + b"]" * 5_000), {"json.invalid": 1}),
    "100,000 brackets": (lambda: asked(b'"x": ' + b"[" * 100_000 + b"]" * 100_000), {"json.invalid": 1}),
    "100,000 objects in each other": (
        lambda: asked(b'"x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        {"json.invalid": 1},
    ),
    "bytes of no meaning": (
        lambda: FINE.replace(b"?", b"x" * 9_000) + random.Random(1).randbytes(2_000_000).replace(b"\n", b""),
        {"file.encoding": 1},
    ),
    "half a million keys": (
        lambda: asked(b'"x": {' + b",".join(b'"k%06d":1' % number for number in range(500_000)) + b"}"),
        {"row.too_large": 1},
    ),
    "millions of lists": (
        lambda: asked(b'"x": [' + b",".join([b"[]"] * 2_000_000) + b"]"),
        {"row.too_large": 1},
    ),
    "many lists, and cut": (
        lambda: asked(b'"x": [' + b",".join([b"[]"] * (VALUES + 1))),
        {"row.too_large": 1},
    ),
    "many lists over lines": (
        lambda: b'{"x": [\n' + b",".join([b"[]"] * (VALUES + 1)) + b"]\n}",
        {"file.not_jsonl": 1, "row.too_large": 1},
    ),
    "millions of fields in a record": (
        lambda: b"prompt,response\na,b\n" + b"ab," * 1_500_000 + b"\n",
        {"row.too_large": 1},
    ),
    "bytes that are NUL": (lambda: FINE + b"\0" * 2_000_000, {"json.invalid": 1}),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_faulty_row_is_counted_whole_in_a_few_times_its_bytes(name: str, counts: Read) -> None:
    source, expected = ROWS[name][0](), ROWS[name][1]
    assert counts(source, 12 * len(source) + 8 * MEBIBYTE) == expected


FILES: dict[str, tuple[Callable[[], bytes], dict[str, int]]] = {
    "one endless line": (lambda: FINE + b'{"messages": "' + b"x" * 40 * MEBIBYTE, {"row.too_large": 1}),
    "a bomb": (
        lambda: gzip.compress(bytes(UNPACKED + MEBIBYTE)),
        {"file.too_large": 1, "file.unknown_format": 1},
    ),
    "a bomb of blank lines": (
        lambda: gzip.compress((b" " * 9 + b"\n") * 5 * MEBIBYTE),
        {"file.too_large": 1},
    ),
    "a quote without end on one line": (
        lambda: b'prompt,response\na,"' + b"x" * 40 * MEBIBYTE,
        {"csv.quote": 1},
    ),
    "an endless quote": (
        lambda: b'prompt,response\na,"' + (b'x,""' + b"y" * 30 + b"\n") * 60_000,
        {"csv.quote": 1, "row.duplicate": 59_998},
    ),
    "an object over lines without end": (
        lambda: b'{"x": [\n' + (b'"' + b"x" * 10_000 + b'",\n') * 4_000,
        {"file.not_jsonl": 1, "row.too_large": 1},
    ),
    "half a line of UTF-16": (
        lambda: '\ufeff{"messages": "'.encode("utf-16-le") + b"\x60\x4f" * 15 * MEBIBYTE + b"\x00",
        {"file.converted": 1, "row.too_large": 1},
    ),
    "tens of thousands of columns": (
        lambda: b"prompt,response," + b",".join(b"%06d" % number for number in range(80_000)) + b"\na,b\n",
        {"csv.extra_column": 80_000, "csv.columns": 1},
    ),
    "blank lines": (lambda: FINE + b"\n" * 20 * MEBIBYTE, {}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_large_file_of_nothing_costs_the_memory_of_a_few_rows(name: str, counts: Read) -> None:
    assert counts(FILES[name][0](), 24 * MEBIBYTE) == FILES[name][1]
