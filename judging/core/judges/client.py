"""The HTTP client for OpenAI-compatible endpoints: httpx on aiohttp's transport, at a fraction of httpx's own cost.

Nothing is read from the environment; redirects are refused, since they would carry the key elsewhere.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from functools import lru_cache
from types import TracebackType
from urllib.parse import urlsplit

import aiohttp
import httpx
import msgspec
from httpx_aiohttp import AiohttpTransport

from judging.core.judges.error_responses import error_for_status, redacted
from judging.core.judges.errors import Interrupted, JudgeError, Unreachable, Unusable
from judging.core.judges.reply import Reply
from judging.core.judges.reply_reader import OnText, ReplyReader
from judging.core.judges.settings import JudgeSettings, Request, Timeouts, chat_url

# Below the 5 s after which uvicorn, and so most model servers, close an idle connection.
KEEP_ALIVE_SECONDS = 4.0
MAX_ERROR_BYTES = 64 * 1024
# Servers close the stream right after the end mark; we do not wait longer for one that does not.
SECONDS_AFTER_DONE = 1.0


def open_client(settings: JudgeSettings) -> httpx.AsyncClient:
    """To be called in the event loop and closed by the caller. Raises Unreachable `bad_ca` or `bad_url`."""
    context = _tls_context(settings)
    proxy = _proxy(settings) if settings.proxy else None

    def session() -> aiohttp.ClientSession:
        # No limit: the endpoint client decides how many requests are in flight. No cookies: a judge has no memory.
        connector = aiohttp.TCPConnector(ssl=context, limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    transport = AiohttpTransport(verify=context, trust_env=False, proxy=proxy, client=session)
    return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)


class HttpClients:
    """Of one process, one per server, proxy and certificates: `async with HttpClients() as clients: …`."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str, bool], httpx.AsyncClient] = {}

    def of(self, settings: JudgeSettings) -> httpx.AsyncClient:
        origin = urlsplit(chat_url(settings.url))
        key = (f"{origin.scheme}://{origin.netloc}", settings.proxy, settings.ca_pem, settings.verify)
        if key not in self._open:
            self._open[key] = open_client(settings)
        return self._open[key]

    async def aclose(self) -> None:
        while self._open:
            await self._open.popitem()[1].aclose()

    async def __aenter__(self) -> HttpClients:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def ask(
    client: httpx.AsyncClient, settings: JudgeSettings, request: Request, *, on_text: OnText | None = None
) -> Reply:
    """Sends `request` once and reads the reply, streamed or not; `on_text` gets each piece as it arrives.

    Raises JudgeError, whose message contains no secret.
    """
    call = _Call(settings.timeouts, on_text)
    try:
        http_request = client.build_request(
            "POST",
            _parsed_url(settings.url),
            headers=request_headers(settings),
            content=_encoded(request),
            # httpx's `pool` is all that aiohttp does for a connection: DNS, connecting, TLS.
            timeout=httpx.Timeout(None, connect=settings.timeouts.connect, pool=settings.timeouts.connect),
        )
        return await call.run(client, http_request)
    except JudgeError as error:
        error.message = redacted(error.message, settings.secrets())
        raise


class _Call:
    """One request in flight, with its deadline and what it is waiting for."""

    def __init__(self, timeouts: Timeouts, on_text: OnText | None) -> None:
        self.timeouts = timeouts
        self.on_text = on_text
        self.now = asyncio.get_running_loop().time
        self.started = self.now()
        self.first_token: float | None = None
        self.waiting_for = "timeout_first_byte"
        self.ends = self.started + timeouts.whole
        self.assembly = ReplyReader()

    async def run(self, client: httpx.AsyncClient, http_request: httpx.Request) -> Reply:
        first_byte = self.started + self.timeouts.connect + self.timeouts.first_byte
        try:
            async with asyncio.timeout_at(min(first_byte, self.ends)) as deadline:
                response = await client.send(http_request, stream=True)
                try:
                    await self._read(response, deadline)
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.HTTPError, aiohttp.ClientError, OSError, UnicodeError) as error:
            if not self.assembly.done:
                raise self._failure(error) from error
        seconds = self.now() - self.started
        return self.assembly.finish(seconds, self.first_token)

    async def _read(self, response: httpx.Response, deadline: asyncio.Timeout) -> None:
        if response.status_code >= 300:
            raise error_for_status(response.status_code, response.headers, await _start_of(response))
        assembly = self.assembly = ReplyReader(response.status_code, self.on_text)
        extended, step = 0.0, min(1.0, self.timeouts.idle / 10)
        compressed = "content-encoding" in response.headers
        async for data in response.aiter_bytes() if compressed else response.aiter_raw():
            now = self.now()
            assembly.feed(data)
            if self.first_token is None and assembly.size:
                self.first_token = now - self.started
            if assembly.done:
                deadline.reschedule(now + SECONDS_AFTER_DONE)
            elif now - extended > step:
                # Moving the deadline costs as much as reading a chunk: once a second is enough.
                self.waiting_for = "timeout_idle"
                deadline.reschedule(min(now + self.timeouts.idle + step, self.ends))
                extended = now

    def _failure(self, error: Exception) -> JudgeError:
        if isinstance(error, TimeoutError):
            whole_passed = self.now() >= self.ends
            return Interrupted("timeout_whole" if whole_passed else self.waiting_for)
        return network_error(error)


# The cause decides: the transport maps a connection closed by the server to a connect timeout.
_BY_CAUSE: tuple[tuple[type[BaseException], type[JudgeError], str], ...] = (
    (aiohttp.ClientConnectorCertificateError, Unreachable, "certificate"),
    (aiohttp.ClientSSLError, Unreachable, "certificate"),
    (aiohttp.ClientProxyConnectionError, Unreachable, "proxy"),
    (aiohttp.ClientHttpProxyError, Unreachable, "proxy"),
    (aiohttp.ClientConnectorError, Unreachable, "connect"),
    (aiohttp.ConnectionTimeoutError, Unreachable, "timeout_connect"),
    (aiohttp.ServerTimeoutError, Interrupted, "timeout_idle"),
    (aiohttp.ServerDisconnectedError, Interrupted, "cut"),
    (aiohttp.ClientPayloadError, Interrupted, "cut"),
    (aiohttp.InvalidURL, Unreachable, "bad_url"),
    (aiohttp.ClientResponseError, Unusable, "bad_reply"),
    (httpx.DecodingError, Unusable, "bad_reply"),
    (httpx.UnsupportedProtocol, Unreachable, "bad_url"),
    (httpx.InvalidURL, Unreachable, "bad_url"),
    (httpx.ProxyError, Unreachable, "proxy"),
    (httpx.ConnectTimeout, Unreachable, "timeout_connect"),
    (httpx.ConnectError, Unreachable, "connect"),
    (UnicodeError, Unreachable, "bad_url"),  # a host name that cannot be encoded
)


def network_error(error: BaseException) -> JudgeError:
    """The JudgeError for an exception of httpx, aiohttp or the system."""
    cause = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
    for kind, branch, code in _BY_CAUSE:
        if isinstance(cause, kind):
            return branch(code, str(cause)[:500])
    return Interrupted("cut", str(cause)[:500])


async def _start_of(response: httpx.Response) -> bytes:
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) >= MAX_ERROR_BYTES:
            break
    return bytes(body[:MAX_ERROR_BYTES])


def request_headers(settings: JudgeSettings) -> httpx.Headers:
    """Of every request. Raises Unreachable `bad_header` for text that no header can contain."""
    return _headers(settings.api_key, tuple(settings.headers.items()))


def _encoded(request: Request) -> bytes:
    try:
        return msgspec.json.encode(request)
    except UnicodeEncodeError:  # half a surrogate pair in the text: JSON can carry it escaped
        return json.dumps(request).encode()


@lru_cache(maxsize=256)
def _parsed_url(url: str) -> httpx.URL:
    try:
        return httpx.URL(chat_url(url))
    except httpx.InvalidURL as error:
        raise Unreachable("bad_url", str(error)) from error


@lru_cache(maxsize=256)
def _headers(api_key: str, extra: tuple[tuple[str, str], ...]) -> httpx.Headers:
    found = {"content-type": "application/json", "accept-encoding": "identity"}
    if api_key.strip():
        found["authorization"] = f"Bearer {api_key.strip()}"
    found |= {name.strip().lower(): value.strip() for name, value in extra}
    for name, value in found.items():
        if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable() and name):
            raise Unreachable("bad_header", name if name.isascii() else "")
    return httpx.Headers(found)


def _proxy(settings: JudgeSettings) -> httpx.Proxy:
    """The proxy, with its password as a header: aiohttp's own argument for it is deprecated."""
    try:
        proxy = httpx.Proxy(settings.proxy)
    except (ValueError, httpx.InvalidURL) as error:
        raise Unreachable("bad_url", redacted(str(error), settings.secrets())) from error
    if proxy.auth is None:
        return proxy
    credentials = base64.b64encode(":".join(proxy.auth).encode()).decode()
    return httpx.Proxy(proxy.url, headers={"Authorization": f"Basic {credentials}"})


def _tls_context(settings: JudgeSettings) -> ssl.SSLContext:
    context = httpx.create_ssl_context(verify=settings.verify, trust_env=False)
    if settings.ca_pem:
        try:
            context.load_verify_locations(cadata=settings.ca_pem)
        except (ssl.SSLError, ValueError) as error:
            raise Unreachable("bad_ca", str(error)) from error
    return context
