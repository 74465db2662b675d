"""Sends a message to an address that its owner chose and nobody trusts: only to checked addresses of the network.

The name is resolved for each message. The connection goes to an address so checked, and not to one that a second
look-up gives; TLS and `Host` keep the name. No proxy, no redirect, no cookie; limits on time and on the reply.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evalsite.webhooks.addresses import Network, may_be_called

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

SECONDS = 10.0
MAX_REPLY_BYTES = 64 * 1024
KEPT_REPLY_BYTES = 2 * 1024
HIDDEN = "…"
HEADERS = {"content-type": "application/json", "accept-encoding": "identity", "user-agent": "evalsite"}

Resolve = Callable[[str, int], Sequence[str]]


class NotSent(Exception):
    """Nothing was sent, or no reply came. `code`: refused_address, no_name, bad_url, plain_http, timeout, connect,
    certificate or cut."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Rules:
    """What this site allows. `tls`: None for the usual certificate authorities."""

    plain_http: bool = False
    networks: tuple[Network, ...] = ()
    seconds: float = SECONDS
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a message. `status`: None without a reply; `problem`: '' if it arrived, else a code of NotSent,
    `redirect` or `status`; `reply`: the beginning of the body."""

    status: int | None
    problem: str
    reply: str = ""
    seconds: float = 0.0


def addresses_of(host: str, port: int) -> list[str]:
    """The network addresses of a host. Raises OSError."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


async def post(
    url: str, body: bytes, headers: Mapping[str, str], rules: Rules, resolve: Resolve = addresses_of
) -> Outcome:
    """Send a message; errors become the outcome's problem. Takes at most `rules.seconds`."""
    began = time.monotonic()
    status, problem, reply = None, "", ""
    try:
        async with asyncio.timeout(rules.seconds):
            status, content = await _post(url, body, headers, rules, resolve)
        reply = shown(content, url)
        problem = "" if 200 <= status < 300 else "redirect" if 300 <= status < 400 else "status"
    except TimeoutError:
        problem = "timeout"
    except NotSent as error:
        problem = error.code
    except Exception as error:
        problem = _code_of(error)
    return Outcome(status, problem, reply, round(time.monotonic() - began, 3))


async def _post(
    url: str, body: bytes, headers: Mapping[str, str], rules: Rules, resolve: Resolve
) -> tuple[int, bytes]:
    import aiohttp

    target = _target(url, rules)
    addresses = await _checked(target.raw_host or "", target.port or 0, rules, resolve)
    connector = aiohttp.TCPConnector(
        resolver=_pinned(addresses), ssl=rules.tls or _tls(), use_dns_cache=False, force_close=True
    )
    async with (
        aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False
        ) as session,
        session.post(
            target,
            data=body,
            headers={**HEADERS, **headers},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=rules.seconds),
        ) as response,
    ):
        return response.status, await _beginning(response)


def _target(url: str, rules: Rules) -> URL:
    """The address as aiohttp reads it, so that what is checked is what is called. Raises NotSent."""
    from yarl import URL

    try:
        target = URL(url)
    except ValueError:
        raise NotSent("bad_url") from None
    if not target.raw_host or target.scheme not in ("http", "https"):
        raise NotSent("bad_url")
    if target.scheme == "http" and not rules.plain_http:
        raise NotSent("plain_http")
    return target


async def _checked(host: str, port: int, rules: Rules, resolve: Resolve) -> Sequence[str]:
    """All addresses of the host; one that may not be called refuses them all."""
    try:
        addresses = await asyncio.wrap_future(_in_a_thread(resolve, host, port))
    except (OSError, UnicodeError):
        raise NotSent("no_name") from None
    if not addresses or not all(may_be_called(address, rules.networks) for address in addresses):
        raise NotSent("refused_address")
    return addresses


def _in_a_thread(resolve: Resolve, host: str, port: int) -> Future[Sequence[str]]:
    """In a thread that nobody waits for at the end: the system's resolver knows no timeout."""
    future: Future[Sequence[str]] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(resolve(host, port))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="webhook name").start()
    return future


def _pinned(addresses: Sequence[str]) -> aiohttp.abc.AbstractResolver:
    """A resolver that knows nothing but these addresses. aiohttp asks none for an address in the URL itself, which is
    the one that was checked."""
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Pinned(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            return [
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                    proto=0,
                    flags=socket.AI_NUMERICHOST,
                )
                for address in addresses
            ]

        async def close(self) -> None:
            """Nothing is open."""

    return Pinned()


@cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context(trust_env=False)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """The first bytes of the reply. Reading ends after MAX_REPLY_BYTES, or when the sender breaks off."""
    beginning, read = b"", 0
    while read < MAX_REPLY_BYTES:
        piece = await response.content.read(MAX_REPLY_BYTES - read)
        if not piece:
            break
        read += len(piece)
        beginning += piece[: KEPT_REPLY_BYTES - len(beginning)]
    return beginning


def shown(content: bytes, url: str) -> str:
    """A reply's beginning as text that can be stored, without the address's path and query, which are secret."""
    text = content.decode("utf-8", "replace").replace("\0", "�")
    parts = urlsplit(url)
    for secret in (parts.query, parts.path, *parts.path.split("/")):
        if len(secret) >= 8:
            text = text.replace(secret, HIDDEN)
    return text


def _code_of(error: Exception) -> str:
    """The code for what aiohttp or the system raised."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError | ssl.SSLError):
        return "certificate"
    if isinstance(error, aiohttp.InvalidURL | UnicodeError | ValueError):
        return "bad_url"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "connect"
    if isinstance(error, aiohttp.ClientError | OSError):
        return "cut"
    raise error


def send_all(messages: Sequence[tuple[str, bytes, Mapping[str, str]]], rules: Rules) -> list[Outcome]:
    """Send messages `(url, body, headers)` at the same time."""

    async def gathered() -> list[Any]:
        return await asyncio.gather(*(post(url, body, headers, rules) for url, body, headers in messages))

    return asyncio.run(gathered())
