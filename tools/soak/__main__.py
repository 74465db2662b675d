"""Command line of the soak test; see the package."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tools.soak import __doc__ as purpose
from tools.soak.browser import Requests
from tools.soak.measure import Sample, growth, problems, sample
from tools.soak.people import everyone
from tools.soak.site import Site, running

SAMPLES_AT_LEAST = 20
SETTLE_SECONDS = 180.0  # for tasks still in progress when the users stop


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=purpose)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--database", default="", help="postgres://…, an empty database; default: SQLite")
    parser.add_argument(
        "--celery", action="store_true", help="with a Redis of its own, as on several machines"
    )
    parser.add_argument("--port", type=int, default=8899, help="with --celery Redis gets the next one")
    parser.add_argument("--folder", type=Path, help="an empty folder for the data, the log and samples.json")
    return parser.parse_args()


def soak(site: Site, minutes: float, password: str, requests: Requests) -> list[Sample]:
    """Run all users for `minutes`; return a sample per minute. Updates samples.json and report.md as it goes."""
    stop, runs = threading.Event(), list[int]()
    threads = []
    for kind, name, pause in everyone():
        person = kind(name, password, site.address, requests, stop, runs, pause)
        threads.append(threading.Thread(target=person.live, name=name))
    for thread in threads:
        thread.start()
    try:
        return list(_samples(site, minutes, requests))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _samples(site: Site, minutes: float, requests: Requests) -> Iterator[Sample]:
    samples: list[Sample] = []
    every, end = min(60.0, minutes * 60 / SAMPLES_AT_LEAST), time.monotonic() + minutes * 60
    while time.monotonic() < end:
        time.sleep(every)
        try:
            samples.append(sample(site, requests.count(), len(requests.errors)))
        except OSError as error:
            requests.fail(f"/metrics: {error}")
            continue
        yield samples[-1]
        print(_line(samples[-1]), flush=True)
        (site.folder / "samples.json").write_text(json.dumps(samples))
        (site.folder / "report.md").write_text("\n".join([report(samples, requests), *requests.errors]))


def settled(site: Site, last: Sample, requests: Requests) -> Sample:
    """Sample again until queues and runs are done, for at most SETTLE_SECONDS; return the last sample."""
    until = time.monotonic() + SETTLE_SECONDS
    while (last["waiting"] or last["runs_under_way"]) and time.monotonic() < until:
        time.sleep(1.0)
        last = sample(site, last["requests"], len(requests.errors))
    return last


def _line(one: Sample) -> str:
    memory = ", ".join(f"{kind} {value:.0f}" for kind, value in sorted(one["memory"].items()))
    descriptors = ", ".join(f"{kind} {value:.0f}" for kind, value in sorted(one["descriptors"].items()))
    clock = time.strftime("%H:%M:%S", time.localtime(one["at"]))
    return (
        f"{clock}  MB: {memory}  descriptors: {descriptors}  database {one['database_mb']:.0f} MB, WAL "
        f"{one['wal_mb']:.0f} MB  waiting {one['waiting']:.0f}  judgements {one['judgements']:.0f}  "
        f"requests {one['requests']}  errors {one['errors']}  load {os.getloadavg()[0]:.1f}"
    )


def report(samples: list[Sample], requests: Requests) -> str:
    """The tables of docs/benchmarks.md."""
    minutes = (samples[-1]["at"] - samples[0]["at"]) / 60
    lines = [
        f"{minutes:.0f} minutes, {samples[-1]['requests']} requests, {samples[-1]['judgements']:.0f} judgements, "
        f"database {samples[-1]['database_mb']:.0f} MB, {samples[-1]['errors']} errors",
        "",
        "| process | MB first | after warm-up | last | growth | descriptors last | growth |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    warm = samples[len(samples) // 3]
    for kind in sorted(samples[-1]["memory"]):
        figures = [one["memory"].get(kind, 0.0) for one in (samples[0], warm, samples[-1])]
        shown = " | ".join(f"{figure:.0f}" for figure in figures)
        memory, descriptors = (growth(samples, what, kind) for what in ("memory", "descriptors"))
        last = samples[-1]["descriptors"].get(kind, 0)
        lines.append(f"| {kind} | {shown} | {memory:+.1f} | {last:.0f} | {descriptors:+.1f} |")
    lines += ["", "| request | times | p50 ms | p95 ms | p50 of the first third | of the last third |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    with requests.lock:
        taken = {kind: list(seconds) for kind, seconds in sorted(requests.seconds.items())}
    return "\n".join(lines + [_request_line(kind, seconds) for kind, seconds in taken.items()])


def _request_line(kind: str, seconds: list[float]) -> str:
    third = max(1, len(seconds) // 3)
    p95 = statistics.quantiles(seconds, n=20)[18] if len(seconds) > 1 else seconds[0]
    parts = (seconds, seconds[:third], seconds[-third:])
    p50, first, last = (f"{statistics.median(part) * 1000:.0f}" for part in parts)
    return f"| {kind} | {len(seconds)} | {p50} | {p95 * 1000:.0f} | {first} | {last} |"


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the site is stopped too
    chosen = options()
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    password, requests = secrets.token_urlsafe(12), Requests()
    roles = {name: kind.role for kind, name, _pause in everyone()}
    with running(folder, chosen.port, chosen.database, chosen.celery, roles, password) as site:
        samples = soak(site, chosen.minutes, password, requests)
        last = settled(site, samples[-1], requests)
    print(report(samples, requests))
    found = requests.errors + problems(samples, last, site)
    print("\n".join(["", *found[:50], f"{len(found)} problems; log and samples in {folder}"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
