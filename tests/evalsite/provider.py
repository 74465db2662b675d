"""A minimal OpenID Connect provider over HTTP: discovery, keys, and tokens signed with RS256."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "evalsite", "s3cret/with+signs"


class Provider:
    """Signs in every visitor. `claims` go into every token; `sign_with` may differ from the published key."""

    def __init__(self) -> None:
        self.key = self.sign_with = RSAKey.generate_key(2048, {"kid": "one"}, private=True)
        self.claims: dict[str, Any] = {"sub": "248", "preferred_username": "dora", "name": "Dora"}
        self.algorithm = "RS256"
        self.asked: dict[str, dict[str, str]] = {}  # code → parameters of the authorization request
        self.refused: list[str] = []
        self.headers: dict[str, str] = {}  # of every answer
        self.cookies: list[str] = []  # that were sent to it
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.answer(self, b"")

            def do_POST(self) -> None:
                provider.answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def visit(self, address: str) -> dict[str, str]:
        """Approve the authorization request `address`; return the callback's query parameters."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.asked)}"
        self.asked[code] = asked
        return {"code": code, "state": asked["state"]}

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        status, found = self.found(handler.path, handler.headers.get("Authorization", ""), body.decode())
        data = json.dumps(found).encode()
        self.cookies += handler.headers.get_all("Cookie", [])
        handler.send_response(status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def found(self, path: str, authorization: str, body: str) -> tuple[int, dict[str, Any]]:
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
            }
        if path == "/keys":
            return 200, {"keys": [self.key.as_dict(private=False)]}
        form = {name: values[0] for name, values in parse_qs(body).items()}
        return self.token(form, authorization)

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        asked = self.asked.pop(form.get("code", ""), {})
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        client = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        wrong = [unquote(part) for part in client.split(":")] != [CLIENT, SECRET]
        if wrong or challenge != asked.get("code_challenge") or form["redirect_uri"] != asked["redirect_uri"]:
            self.refused.append(form.get("code", ""))
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        token = jwt.encode({"alg": self.algorithm, "kid": "one"}, {**claims, **self.claims}, self.sign_with)
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": token}
