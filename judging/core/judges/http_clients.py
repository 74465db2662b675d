"""HTTP clients for endpoints: httpx with aiohttp's transport, at a fraction of httpx's overhead.

Nothing is read from the environment. Redirects are not followed, because they would send the key to another server. No
cookie is kept: a client serves several keys and projects. A compressed body, which was not asked for, is decompressed
in small pieces, so that a few bytes can't fill the memory.

Here, in `client` and in `probe`, httpx and aiohttp are imported where they are used: they take a quarter of the time
in which a process starts, and most processes call no endpoint.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import zlib
from collections.abc import AsyncIterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judging.core.judges.addresses import chat_url
from judging.core.judges.errors import Interrupted, JudgeError, Unreachable, Unusable
from judging.core.judges.outside_text import shown_message
from judging.core.judges.protocols import PROTOCOLS
from judging.core.judges.settings import JudgeSettings

if TYPE_CHECKING:
    import aiohttp
    import httpx

# Less than the 5 s after which uvicorn, and so most model servers, close an idle connection.
KEEP_ALIVE_SECONDS = 4.0
PIECE_BYTES = 64 * 1024
MAX_DECOMPRESSED = 8 * 2**20


def open_client(settings: JudgeSettings) -> httpx.AsyncClient:
    """Open a client. Call it in the event loop and close it. Raises Unreachable `bad_ca` or `bad_url`."""
    import aiohttp
    from httpx_aiohttp import AiohttpTransport

    context = _tls_context(settings.ca_pem)
    proxy = _proxy(settings) if settings.proxy else None

    def session() -> aiohttp.ClientSession:
        # No limit, because the endpoint client limits concurrency.
        connector = aiohttp.TCPConnector(ssl=context, limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    transport = AiohttpTransport(verify=context, trust_env=False, proxy=proxy, client=session)
    return _client_type()(transport=transport, trust_env=False)


@cache
def _client_type() -> type[httpx.AsyncClient]:
    import httpx

    class Client(httpx.AsyncClient):
        """Sends without what httpx does around a transport for authentication, redirects and cookies, of which
        endpoints need nothing: it takes as long as a tenth of a judgement."""

        def __init__(self, *, transport: httpx.AsyncBaseTransport, trust_env: bool) -> None:
            super().__init__(transport=transport, trust_env=trust_env)
            self.transport = transport

        async def send(self, request: httpx.Request, **_options: Any) -> httpx.Response:
            response = await self.transport.handle_async_request(request)
            response.request = request
            return response

    return Client


def body_of(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body in pieces, decompressed. Raises Unusable `bad_reply` for another encoding than one gzip or deflate,
    `too_long` if it grows too much."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return response.aiter_raw()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _decompressed(response)
    raise Unusable("bad_reply", f"content-encoding: {encoding}", status=response.status_code)


async def _decompressed(response: httpx.Response) -> AsyncIterator[bytes]:
    inflater, total = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32), 0
    async for data in response.aiter_raw():
        while data:
            try:
                piece = inflater.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise Unusable("bad_reply", str(error), status=response.status_code) from None
            total += len(piece)
            if total > MAX_DECOMPRESSED:
                raise Unusable("too_long", status=response.status_code)
            yield piece
            data = inflater.unconsumed_tail
            await asyncio.sleep(0)  # other calls wait for this event loop


class HttpClients:
    """A process's clients, one per server, proxy and certificates: `async with HttpClients() as clients: …`."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str], httpx.AsyncClient] = {}

    def of(self, settings: JudgeSettings) -> httpx.AsyncClient:
        origin = urlsplit(chat_url(settings.url))
        key = (f"{origin.scheme}://{origin.netloc}", settings.proxy, settings.ca_pem)
        if key not in self._open:
            self._open[key] = open_client(settings)
        return self._open[key]

    async def aclose(self) -> None:
        while self._open:
            await self._open.popitem()[1].aclose()

    async def __aenter__(self) -> HttpClients:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def request_headers(settings: JudgeSettings) -> httpx.Headers:
    """The headers of every request. Raises Unreachable `bad_header` for text that is not valid in a header."""
    return _headers(settings.protocol, settings.api_key, tuple(settings.headers.items()))


@lru_cache(maxsize=256)
def _headers(protocol: str, api_key: str, extra: tuple[tuple[str, str], ...]) -> httpx.Headers:
    import httpx

    headers = {"content-type": "application/json", "accept-encoding": "identity"}
    if api_key.strip():
        headers |= PROTOCOLS[protocol].headers(api_key.strip())
    headers |= {name.strip().lower(): value.strip() for name, value in extra}
    for name, value in headers.items():
        if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable() and name):
            raise Unreachable("bad_header", name if name.isascii() else "")
    return httpx.Headers(headers)


def _proxy(settings: JudgeSettings) -> httpx.Proxy:
    """The proxy with its password as a header, because aiohttp's own argument for it is deprecated."""
    import httpx

    try:
        proxy = httpx.Proxy(settings.proxy)
    except (ValueError, httpx.InvalidURL) as error:
        raise Unreachable("bad_url", shown_message(str(error), settings.secrets())) from error
    if proxy.auth is None:
        return proxy
    credentials = base64.b64encode(":".join(proxy.auth).encode()).decode()
    return httpx.Proxy(proxy.url, headers={"Authorization": f"Basic {credentials}"})


@lru_cache(maxsize=16)
def _tls_context(ca_pem: str) -> ssl.SSLContext:
    """The public certificate authorities and `ca_pem`; reading them takes 20 ms. Raises Unreachable `bad_ca`."""
    import httpx

    context = httpx.create_ssl_context(trust_env=False)
    if ca_pem:
        try:
            context.load_verify_locations(cadata=ca_pem)
        except (ssl.SSLError, ValueError) as error:
            raise Unreachable("bad_ca", str(error)) from error
    return context


@cache
def _codes() -> dict[type[BaseException], tuple[type[JudgeError], str]]:
    """Error and code by exception; the first that fits counts."""
    import aiohttp
    import httpx

    return {
        aiohttp.ClientConnectorCertificateError: (Unreachable, "certificate"),
        aiohttp.ClientSSLError: (Unreachable, "certificate"),
        aiohttp.ClientProxyConnectionError: (Unreachable, "proxy"),
        aiohttp.ClientHttpProxyError: (Unreachable, "proxy"),
        aiohttp.ClientConnectorError: (Unreachable, "connect"),
        aiohttp.ConnectionTimeoutError: (Unreachable, "timeout_connect"),
        aiohttp.ServerTimeoutError: (Interrupted, "timeout_idle"),
        aiohttp.ServerDisconnectedError: (Interrupted, "cut"),
        aiohttp.ClientPayloadError: (Interrupted, "cut"),
        aiohttp.InvalidURL: (Unreachable, "bad_url"),
        aiohttp.ClientResponseError: (Unusable, "bad_reply"),
        httpx.DecodingError: (Unusable, "bad_reply"),
        httpx.UnsupportedProtocol: (Unreachable, "bad_url"),
        httpx.InvalidURL: (Unreachable, "bad_url"),
        httpx.ProxyError: (Unreachable, "proxy"),
        httpx.ConnectTimeout: (Unreachable, "timeout_connect"),
        httpx.ConnectError: (Unreachable, "connect"),
        UnicodeEncodeError: (Unusable, "bad_reply"),  # a reason phrase
        UnicodeError: (Unreachable, "bad_url"),  # a host name that cannot be encoded
    }


@cache
def network_errors() -> tuple[type[Exception], ...]:
    """What httpx, aiohttp and the operating system raise for a server that can't be reached or breaks the protocol."""
    import aiohttp
    import httpx

    return (TimeoutError, httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError, UnicodeError)


def network_error(error: BaseException) -> JudgeError:
    """The JudgeError for an exception raised by httpx, aiohttp or the operating system."""
    import aiohttp

    # The cause decides: the transport reports a connection closed by the server as a connect timeout.
    cause = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
    for kind, (branch, code) in _codes().items():
        if isinstance(cause, kind):
            return branch(code, str(cause))
    return Interrupted("cut", str(cause))
