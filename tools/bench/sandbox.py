"""Benchmarks of the sandbox: batches of scripts and templates, compared with direct calls; and a fresh worker."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import jinja2

from judging.core.prompts import RenderItem, render
from judging.core.sandbox.pool import Sandbox
from judging.core.scripts import run_preprocess
from tools.bench import Figure

TEMPLATE = """Question: {{ data.question }}
Reference: {{ data.ref_answer }}
Answer: {{ response.content }}
Score: [[n]]"""
SCRIPT = """
def preprocess(data, resp):
    resp["length"] = len(resp["content"])
    return "answer" in resp["content"]
"""
ITEMS = 10_000
FRESH = 200
WANTED_RATE = 20_000
WANTED_MS = 5.0

Pair = tuple[dict[str, Any], dict[str, Any]]


def sandbox_figures() -> Iterator[Figure]:
    pairs = [pair(number) for number in range(ITEMS)]
    items = [RenderItem(data, response) for data, response in pairs]
    yield _rate(
        "preprocess calls per second of one core",
        lambda sandbox: run_preprocess(sandbox, SCRIPT, pairs),
        bare_preprocess(pairs),
    )
    yield _rate(
        "template renders per second of one core",
        lambda sandbox: render(sandbox, TEMPLATE, items),
        bare_render(pairs),
    )
    yield _fresh_worker(pairs[:1])


def pair(number: int) -> Pair:
    """A row and a response of about 1,500 bytes together."""
    filler = "the quick brown fox jumps over the lazy dog " * 11
    question = f"question {number} {filler}"
    data = {
        "messages": [{"role": "user", "content": question}],
        "question": question,
        "gt": None,
        "history": None,
        "ref_answer": "forty-two",
        "id": number,
    }
    return data, {"content": f"answer {number} {filler}", "reasoning_content": None, "tool_calls": None}


def bare_preprocess(pairs: list[Pair]) -> float:
    """Processor seconds of direct calls in this process, each with its own copy of the data."""
    names: dict[str, Any] = {}
    exec(SCRIPT, names)  # noqa: S102 - the script above
    texts = [json.dumps(one) for one in pairs]
    before = time.process_time()
    for text in texts:
        data, response = json.loads(text)
        names["preprocess"](data, response)
    return time.process_time() - before


def bare_render(pairs: list[Pair]) -> float:
    """Processor seconds of rendering with plain Jinja2 in this process."""
    template = jinja2.Environment(autoescape=False).from_string(TEMPLATE)  # noqa: S701 - a prompt is no HTML
    before = time.process_time()
    for data, response in pairs:
        template.render(data=data, response=response)
    return time.process_time() - before


def processor_seconds(use: Callable[[Sandbox], object]) -> float:
    """Processor seconds of this process and of all sandbox processes, from the sandbox's start to its end."""
    before = _used()
    with Sandbox() as sandbox:
        use(sandbox)
    return _used() - before


def _used() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, who))


def _rate(name: str, use: Callable[[Sandbox], object], bare: float) -> Figure:
    """Calls per second of processor time, so that other processes on the machine do not matter."""
    starting = processor_seconds(lambda sandbox: sandbox.level)
    seconds = processor_seconds(use) - starting
    rate = ITEMS / seconds
    detail = f"{seconds / ITEMS * 1e6:.0f} µs each, bare loop {bare / ITEMS * 1e6:.0f} µs"
    return Figure.at_least(name, rate, WANTED_RATE, detail)


def _fresh_worker(pairs: list[Pair]) -> Figure:
    with Sandbox() as sandbox:
        run_preprocess(sandbox, SCRIPT, pairs)
        took = []
        for _ in range(FRESH):
            before = time.perf_counter()
            run_preprocess(sandbox, SCRIPT, pairs)
            took.append((time.perf_counter() - before) * 1000)
    median = sorted(took)[FRESH // 2]
    detail = f"median of {FRESH}, one after the other; the slowest {max(took):.1f} ms"
    return Figure.at_most("one call in a fresh worker, ms", median, WANTED_MS, detail)
