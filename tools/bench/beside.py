"""How much API requests slow pages down: python -m tools.bench.beside

RATE requests a second, from TOKENS tokens that each stay below their limit, for lists, a run and its judgements, while
one visitor opens pages. Rounds without and with them alternate, since times vary on a machine with other programs.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection

from tools.bench import Figure, command_line
from tools.bench.api import fill
from tools.bench.scale import running
from tools.bench.stored_runs import open_database, signed_in_client

RATE, TOKENS = 50, 20
JUDGEMENTS = 10_000
ROUNDS, VISITS = 4, 8
PORT = 18_947
MOST_RATIO = 2.0
CALLS = ("projects", "projects/bench/runs?limit=20", "{run}", "{run}", "{run}/judgements?limit=20")
PAGES = ("/", "/p/bench/runs/", "/p/bench/datasets/", "{run}/", "{run}/judgements/", "{run}/report/")


def get(path: str, headers: dict[str, str]) -> str:
    """GET; returns the cookies that the reply sets. Raises RuntimeError for another status than 200."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=60)
    connection.request("GET", path, headers={"Accept-Encoding": "gzip", **headers})
    response = connection.getresponse()
    response.read()
    connection.close()
    if response.status != 200:
        raise RuntimeError(
            f"{path} was answered with {response.status} {response.headers.get('Location', '')}"
        )
    return "; ".join(cookie.partition(";")[0] for cookie in response.headers.get_all("Set-Cookie", []))


def wait_until_ready() -> None:
    """Raises RuntimeError after two minutes."""
    for _ in range(600):
        try:
            get("/readyz", {})
        except (OSError, RuntimeError):
            time.sleep(0.2)
        else:
            return
    raise RuntimeError("the site does not start")


@contextmanager
def requests_beside(paths: Sequence[str], secrets: Sequence[str]) -> Iterator[list[float]]:
    """Send RATE requests a second, also when earlier ones are not answered. Yields the seconds that they took."""
    over, taken = threading.Event(), list[float]()
    began = time.monotonic()

    def request(path: str, secret: str) -> None:
        sent = time.monotonic()
        get(path, {"Authorization": f"Bearer {secret}"})
        taken.append(time.monotonic() - sent)

    def send(pool: ThreadPoolExecutor) -> None:
        pairs = zip(itertools.cycle(paths), itertools.cycle(secrets), strict=False)
        for number, (path, secret) in enumerate(pairs, start=1):
            if over.wait(max(0.0, began + number / RATE - time.monotonic())):
                return
            pool.submit(request, path, secret)

    with ThreadPoolExecutor(RATE) as pool:
        sender = threading.Thread(target=send, args=[pool])
        sender.start()
        try:
            yield taken
        finally:
            over.set()
            sender.join()


def page_seconds(paths: list[str], cookies: str) -> list[float]:
    """How long each of these pages takes a visitor, VISITS times."""
    seconds = []
    for path in paths * VISITS:
        began = time.perf_counter()
        get(path, {"Cookie": cookies})
        seconds.append(time.perf_counter() - began)
    return seconds


def measured(pages: list[str], calls: Sequence[str], secrets: Sequence[str]) -> list[list[float]]:
    """Seconds of pages alone, of pages beside the requests, and of the requests."""
    cookies = get("/", {})
    page_seconds(pages, cookies)  # loads templates
    alone, beside, requests = list[float](), list[float](), list[float]()
    for _ in range(ROUNDS):
        alone += page_seconds(pages, cookies)
        with requests_beside(calls, secrets) as taken:
            beside += page_seconds(pages, cookies)
            requests += taken
    return [alone, beside, requests]


def p95(seconds: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(seconds, n=20)[18]


def beside_figures() -> Iterator[Figure]:
    """Must run last: it connects this process to the benchmark site's database for good."""
    with tempfile.TemporaryDirectory() as folder:
        open_database(folder)
        from django.db import connection

        from evalsite.accounts.models import User
        from evalsite.accounts.tokens import token_create

        run = fill(JUDGEMENTS).pk
        signed_in_client()  # creates the administrator's account
        admin = User.objects.get(username="admin")
        secrets = [token_create(user=admin, name=f"bench {n}", days=None)[1] for n in range(TOKENS)]
        connection.close()
        calls = [f"/api/v1/{call.format(run=f'projects/bench/runs/{run}')}" for call in CALLS]
        pages = [page.format(run=f"/p/bench/runs/{run}") for page in PAGES]
        with running("serve", "--no-sample", DATA_DIR=folder, PORT=str(PORT)):
            wait_until_ready()
            alone, beside, requests = measured(pages, calls, secrets)
    yield Figure.at_most(
        f"pages beside {RATE} API requests a second, p95 relative to pages alone",
        p95(beside) / p95(alone),
        MOST_RATIO,
        f"{p95(beside) * 1000:.0f} to {p95(alone) * 1000:.0f} ms; medians {statistics.median(beside) * 1000:.0f} and "
        f"{statistics.median(alone) * 1000:.0f} ms; API p95 {p95(requests) * 1000:.0f} ms",
    )


def main() -> None:
    command_line(__doc__).parse_args()
    for figure in beside_figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
