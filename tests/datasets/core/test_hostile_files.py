"""Files made to exhaust memory: each is read in a process with a tight memory limit."""

import gzip
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MEBIBYTE = 1024 * 1024
BOUNDED = """
import resource, sys
from pathlib import Path
from datasets.core.limits import Limits
from datasets.core.reader import read
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (most, most))
summary = read(sys.argv[1], limits=Limits(row_values=500_000), digest=False).summary
for code, count in summary.counts.items():
    print(code, count)
"""
FINE = b'{"messages": [{"role": "user", "content": "?"}]}\n'
COUNT = 150_000


def listed(item: bytes, end: bytes = b"]}") -> bytes:
    return FINE + b'{"messages": [' + b",".join([item] * COUNT) + end + b"\n"


def asked(more: bytes) -> bytes:
    return FINE + b'{"messages": [{"role": "user", "content": "!"}], ' + more + b"}\n"


def counts(folder: Path, source: bytes, extra: int) -> dict[str, int]:
    """Counts by code, from a process that may allocate `extra` bytes after its start."""
    file = folder / "file"
    file.write_bytes(source)
    command = [sys.executable, "-c", BOUNDED, str(file), str(extra)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert ran.returncode == 0, ran.stderr
    return {code: int(count) for code, count in (line.split() for line in ran.stdout.splitlines())}


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
    "brackets without end": (lambda: asked(b'"x": ' + b"[" * 900_000), {"json.invalid": 1}),
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
    "half a million lists, and cut": (
        lambda: asked(b'"x": [' + b",".join([b"[]"] * 500_001)),
        {"row.too_large": 1},
    ),
    "half a million lists over lines": (
        lambda: b'{"x": [\n' + b",".join([b"[]"] * 500_001) + b"]\n}",
        {"file.not_jsonl": 1, "row.too_large": 1},
    ),
    "millions of fields in a record": (
        lambda: b"prompt,response\na,b\n" + b"ab," * 1_500_000 + b"\n",
        {"row.too_large": 1},
    ),
    "bytes that are NUL": (lambda: FINE + b"\0" * 2_000_000, {"json.invalid": 1}),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_faulty_row_is_counted_whole_in_a_few_times_its_bytes(name: str, tmp_path: Path) -> None:
    source, expected = ROWS[name][0](), ROWS[name][1]
    assert counts(tmp_path, source, 12 * len(source) + 12 * MEBIBYTE) == expected


FILES: dict[str, tuple[Callable[[], bytes], dict[str, int]]] = {
    "one endless line": (lambda: FINE + b'{"messages": "' + b"x" * 130 * MEBIBYTE, {"row.too_large": 1}),
    "a bomb": (
        lambda: gzip.compress(bytes(300 * MEBIBYTE)),
        {"file.too_large": 1, "file.unknown_format": 1},
    ),
    "a bomb of blank lines": (
        lambda: gzip.compress((b" " * 9 + b"\n") * 26 * MEBIBYTE),
        {"file.too_large": 1},
    ),
    "a quote without end on one line": (
        lambda: b'prompt,response\na,"' + b"x" * 100 * MEBIBYTE,
        {"csv.quote": 1},
    ),
    "an endless quote": (
        lambda: b'prompt,response\na,"' + b'x,""y\n' * 2_000_000,
        {"csv.quote": 1},
    ),
    "an object over lines without end": (
        lambda: b'{"x": [\n' + (b'"' + b"x" * 10_000 + b'",\n') * 10_000,
        {"file.not_jsonl": 1, "row.too_large": 1},
    ),
    "half a line of UTF-16": (
        lambda: '\ufeff{"messages": "'.encode("utf-16-le") + b"\x60\x4f" * 30 * MEBIBYTE + b"\x00",
        {"file.converted": 1, "row.too_large": 1},
    ),
    "hundreds of thousands of columns": (
        lambda: b"prompt,response," + b",".join(b"%06d" % number for number in range(300_000)) + b"\na,b\n",
        {"csv.extra_column": 300_000, "csv.columns": 1},
    ),
    "blank lines": (lambda: FINE + b"\n" * 40 * MEBIBYTE, {}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_large_file_of_nothing_costs_the_memory_of_a_few_rows(name: str, tmp_path: Path) -> None:
    assert counts(tmp_path, FILES[name][0](), 80 * MEBIBYTE) == FILES[name][1]
