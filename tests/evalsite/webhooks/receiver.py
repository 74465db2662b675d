"""A server that receives webhooks on this machine."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

from evalsite.webhooks.sending import Rules

HERE = Rules(plain_http=True, networks=(ip_network("127.0.0.0/8"),))


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`reply`: what it answers to a request: status, headers and body."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    reply: Callable[[Request], tuple[int, dict[str, str], bytes]] = lambda _request: (200, {}, b"thanks")

    def url(self, path: str = "/hook/secret-part?key=secret-key") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Run a receiver in a thread, over HTTPS if there is a context."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            receiver.requests.append(request)
            status, headers, content = receiver.reply(request)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Be quiet."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """The sender went away."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
