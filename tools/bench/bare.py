"""The bare loop the engine is compared with: N requests, K in flight, replies read to the end, nothing else.

python -m tools.bench.bare httpx|aiohttp URL REQUESTS.jsonl IN_FLIGHT     → {"seconds": …, "cpu": …}
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
import httpx

from tools.bench import command_line

HEADERS = {"content-type": "application/json"}


async def workers(bodies: Iterator[bytes], in_flight: int, post: Callable[[bytes], Awaitable[None]]) -> None:
    async def one() -> None:
        for body in bodies:
            await post(body)

    await asyncio.gather(*(one() for _ in range(in_flight)))


async def with_httpx(url: str, bodies: Iterator[bytes], in_flight: int) -> None:
    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:

        async def post(body: bytes) -> None:
            async with client.stream("POST", url, content=body, headers=HEADERS) as response:
                async for _ in response.aiter_lines():
                    pass

        await workers(bodies, in_flight, post)


async def with_aiohttp(url: str, bodies: Iterator[bytes], in_flight: int) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def post(body: bytes) -> None:
            async with session.post(url, data=body, headers=HEADERS) as response:
                await response.read()

        await workers(bodies, in_flight, post)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("kind", choices=["httpx", "aiohttp"])
    parser.add_argument("url")
    parser.add_argument("requests", type=Path)
    parser.add_argument("in_flight", type=int)
    chosen = parser.parse_args()
    bodies = chosen.requests.read_bytes().splitlines()
    loop = with_httpx if chosen.kind == "httpx" else with_aiohttp
    cpu_before, before = cpu(), time.perf_counter()
    asyncio.run(loop(chosen.url, iter(bodies), chosen.in_flight))
    print(json.dumps({"seconds": time.perf_counter() - before, "cpu": cpu() - cpu_before}))


if __name__ == "__main__":
    main()
