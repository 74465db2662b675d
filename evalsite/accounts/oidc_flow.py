"""The OpenID Connect protocol, using Authlib: code flow with PKCE, state and nonce.

Imported only where it is used: it takes a fifth of a second to load, and most sites have no single sign-on.
"""

from __future__ import annotations

import hmac
import json
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import quote

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.common.security import generate_token
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from django.conf import settings
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from evalsite.accounts.oidc import PendingSignIn, SignInRefused

# never "none", never a shared secret
SIGNED_BY = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
SCOPE = "openid profile email"
SECONDS = 10
MAX_BYTES = 2**20
LEEWAY = 60  # allowed clock difference in seconds


def begin(*, callback: str, target: str) -> tuple[str, PendingSignIn]:
    """Return the provider's URL and the data to store until the user returns to `callback`. Raises SignInRefused."""
    pending = PendingSignIn(generate_token(43), generate_token(43), generate_token(64), target)
    with _client() as client:
        address = prepare_grant_uri(
            _metadata(client)["authorization_endpoint"],
            settings.CONFIG.oidc_client_id,
            "code",
            redirect_uri=callback,
            scope=SCOPE,
            state=pending.state,
            nonce=pending.nonce,
            code_challenge=create_s256_code_challenge(pending.verifier),
            code_challenge_method="S256",
        )
    return str(address), pending


def finish(*, callback: str, params: dict[str, str], pending: PendingSignIn) -> dict[str, Any]:
    """Verified claims about the returning user. Raises SignInRefused."""
    if not hmac.compare_digest(params.get("state", "").encode(), pending.state.encode()):
        raise SignInRefused("the state is not the one that was sent")
    if "code" not in params:
        raise SignInRefused(f"the provider said: {params.get('error', 'nothing')[:100]}")
    try:
        with _client() as client:
            metadata = _metadata(client)
            token = _token(client, metadata, callback, params["code"], pending)
            keys = KeySet.import_key_set(_json(client, "GET", metadata["jwks_uri"]))
        return _verified_claims(token, keys, pending.nonce)
    except (AuthlibBaseError, JoseError, httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise SignInRefused(f"{type(error).__name__}: {str(error)[:200]}") from None


def _client() -> httpx.Client:
    """A client without cookies that asks for no compression."""
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    return httpx.Client(timeout=SECONDS, cookies=cookies, headers={"accept-encoding": "identity"})


def _json(client: httpx.Client, method: str, address: str, **sent: Any) -> Any:
    """The JSON value that the provider answers with. Raises ValueError for one that is compressed or too long."""
    with client.stream(method, address, **sent) as response:
        response.raise_for_status()
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise ValueError("the answer is compressed")
        body = bytearray()
        for piece in response.iter_raw():
            body += piece
            if len(body) > MAX_BYTES:
                raise ValueError("the answer is too long")
    return json.loads(body)


def _token(
    client: httpx.Client, metadata: dict[str, Any], callback: str, code: str, pending: PendingSignIn
) -> dict[str, Any]:
    """Exchange the code for tokens. The secret is sent in the header, or in the form if only that is supported."""
    name, secret = settings.CONFIG.oidc_client_id, settings.CONFIG.oidc_client_secret
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": callback,
        "code_verifier": pending.verifier,
    }
    if "client_secret_basic" in metadata.get(
        "token_endpoint_auth_methods_supported", ["client_secret_basic"]
    ):
        auth: httpx.BasicAuth | None = httpx.BasicAuth(
            quote(name, safe=""), quote(secret, safe="")
        )  # RFC 6749, 2.3.1
    else:
        auth = None
        form |= {"client_id": name, "client_secret": secret}
    tokens: dict[str, Any] = _json(client, "POST", metadata["token_endpoint"], data=form, auth=auth)
    return tokens


def _verified_claims(token: dict[str, Any], keys: KeySet, nonce: str) -> dict[str, Any]:
    """Verify the ID token's signature, issuer, audience, nonce and expiry; return its claims."""
    config = settings.CONFIG
    wanted = {"iss": config.oidc_issuer, "aud": config.oidc_client_id}
    decoded = jwt.decode(token["id_token"], keys, algorithms=SIGNED_BY)
    claims = CodeIDToken(
        decoded.claims,
        decoded.header,
        {name: {"essential": True, "value": value} for name, value in wanted.items()},
        {"nonce": nonce, "client_id": config.oidc_client_id, "access_token": token.get("access_token")},
    )
    claims.validate(leeway=LEEWAY)
    if not isinstance(claims["sub"], str) or not claims["sub"] or "\0" in claims["sub"]:
        raise SignInRefused("the subject is no text")
    return dict(claims)


def _metadata(client: httpx.Client) -> dict[str, Any]:
    """The provider's metadata, verified to be of the configured issuer."""
    issuer = settings.CONFIG.oidc_issuer
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        metadata: dict[str, Any] = _json(client, "GET", address)
    except (httpx.HTTPError, ValueError) as error:
        raise SignInRefused(f"{address}: {type(error).__name__}") from None
    if not isinstance(metadata, dict) or metadata.get("issuer") != issuer:
        raise SignInRefused(f"{address} speaks for another issuer")
    return metadata
