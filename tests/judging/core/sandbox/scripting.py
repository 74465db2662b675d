"""Shortcuts to run a script body in a sandbox."""

import os
from textwrap import dedent, indent
from typing import Any

from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import ScriptOutcome, run_preprocess

FORGE = """
import json, struct
def say(body):
    os.write(3, struct.pack(">I", len(body)) + body)
"""
OUTSIDE = """
import traceback
modules = traceback.sys.modules
os, socket, ctypes, signal, resource, mmap, sys = (
    modules[name] for name in "os socket ctypes signal resource mmap sys".split()
)
thread = modules["_thread"]
libc = ctypes.CDLL(None, use_errno=True)

def call(function, *arguments):
    if function(*arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")

def system_call(number, *arguments):
    call(libc.syscall, ctypes.c_long(number), *arguments)
"""


def own_size(number: int) -> tuple[int, str]:
    """Return a memory limit (MB) unique on this machine, and how it appears in the processes' command lines."""
    size = 1000 * (os.getpid() % 100_000 + 1) + number
    return size, f'"memory_mb": {size},'


def script(body: str, before: str = "") -> str:
    return f"{before}\ndef preprocess(data, resp):\n{indent(dedent(body).strip(), '    ')}\n"


def run(sandbox: Sandbox, source: str, count: int = 1, *, alone: bool = False) -> list[ScriptOutcome]:
    """Run `source` over `count` items, numbered from 0 in ``data.n``."""
    items: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"n": n}, {"content": "answer"}) for n in range(count)
    ]
    return run_preprocess(sandbox, source, items, each_alone=alone)


def result_of(sandbox: Sandbox, body: str, before: str = "") -> Any:
    (outcome,) = run(sandbox, script(body, before))
    assert outcome.failure is None, outcome.failure
    return outcome.result


def failure_of(sandbox: Sandbox, body: str, before: str = "") -> Any:
    (outcome,) = run(sandbox, script(body, before))
    assert outcome.failure is not None, outcome
    return outcome.failure
