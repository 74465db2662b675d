"""HTTP clients for OpenAI-compatible endpoints: httpx with aiohttp's transport, at a fraction of httpx's overhead.

Nothing is read from the environment. Redirects are rejected, because they would send the key to another server.

Here, in `client` and in `probe`, httpx and aiohttp are imported where they are used: they take a quarter of the time
in which a process starts, and most processes call no endpoint.
"""

from __future__ import annotations

import base64
import ssl
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from judging.core.judges.error_responses import redacted
from judging.core.judges.errors import Interrupted, JudgeError, Unreachable, Unusable
from judging.core.judges.settings import JudgeSettings, chat_url

if TYPE_CHECKING:
    import aiohttp
    import httpx

# Less than the 5 s after which uvicorn, and so most model servers, close an idle connection.
KEEP_ALIVE_SECONDS = 4.0


def open_client(settings: JudgeSettings) -> httpx.AsyncClient:
    """Open a client. Call it in the event loop and close it. Raises Unreachable `bad_ca` or `bad_url`."""
    import aiohttp
    import httpx
    from httpx_aiohttp import AiohttpTransport

    context = _tls_context(settings.ca_pem)
    proxy = _proxy(settings) if settings.proxy else None

    def session() -> aiohttp.ClientSession:
        # No limit, because the endpoint client limits concurrency. No cookies, because judge calls must be independent.
        connector = aiohttp.TCPConnector(ssl=context, limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    transport = AiohttpTransport(verify=context, trust_env=False, proxy=proxy, client=session)
    return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)


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
    return _headers(settings.api_key, tuple(settings.headers.items()))


@lru_cache(maxsize=256)
def _headers(api_key: str, extra: tuple[tuple[str, str], ...]) -> httpx.Headers:
    import httpx

    found = {"content-type": "application/json", "accept-encoding": "identity"}
    if api_key.strip():
        found["authorization"] = f"Bearer {api_key.strip()}"
    found |= {name.strip().lower(): value.strip() for name, value in extra}
    for name, value in found.items():
        if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable() and name):
            raise Unreachable("bad_header", name if name.isascii() else "")
    return httpx.Headers(found)


def _proxy(settings: JudgeSettings) -> httpx.Proxy:
    """The proxy with its password as a header, because aiohttp's own argument for it is deprecated."""
    import httpx

    try:
        proxy = httpx.Proxy(settings.proxy)
    except (ValueError, httpx.InvalidURL) as error:
        raise Unreachable("bad_url", redacted(str(error), settings.secrets())) from error
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
        UnicodeError: (Unreachable, "bad_url"),  # a host name that cannot be encoded
    }


def network_error(error: BaseException) -> JudgeError:
    """The JudgeError for an exception raised by httpx, aiohttp or the operating system."""
    import aiohttp

    # The cause decides: the transport reports a connection closed by the server as a connect timeout.
    cause = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
    for kind, (branch, code) in _codes().items():
        if isinstance(cause, kind):
            return branch(code, str(cause)[:500])
    return Interrupted("cut", str(cause)[:500])
