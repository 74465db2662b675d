"""Request settings: the model as frozen in the run, with the endpoint's current secrets."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from urllib.parse import urlsplit

import msgspec
from django.conf import settings

from evalsite.env import Config
from evalsite.secrets import decrypt
from judging.core.judges.addresses import chat_url
from judging.core.judges.errors import JudgeError
from judging.core.judges.settings import JudgeSettings, Timeouts
from judging.core.metric_definition import JudgeModel
from judging.core.results import Failure
from judging.endpoints.models import Endpoint


def default_concurrency() -> int:
    """The default concurrency for judge models without a stored endpoint (given by URL in a metrics file)."""
    config: Config = settings.CONFIG
    return config.judge_concurrency


def unusable(judge: JudgeModel, row: Endpoint | None) -> Failure | None:
    """Why no request can be sent: the key is missing or was entered for another server. None if usable."""
    if judge.api_key_env and not os.environ.get(judge.api_key_env):
        return Failure("key_missing", judge.api_key_env)
    has_secrets = row is not None and (row.key_encrypted or row.headers_encrypted)
    if row is not None and has_secrets and origin(row.url) != origin(judge.url):
        return Failure("endpoint_moved", origin(judge.url))
    return None


def origin(url: str) -> str:
    """Scheme, host and port of a URL; the URL itself if it is invalid."""
    try:
        parts = urlsplit(chat_url(url))
    except JudgeError:
        return url
    return f"{parts.scheme}://{parts.netloc}"


def judge_settings(judge: JudgeModel, row: Endpoint | None) -> JudgeSettings:
    """URL, model, protocol and parameters as frozen in the metric; secrets, proxy, CA and timeouts from the endpoint's
    current state.

    Raises Undecryptable if the endpoint's secrets were encrypted with a key that is no longer available.
    """
    settings = JudgeSettings(
        url=judge.url,
        model=judge.model,
        protocol=judge.protocol,
        api_key=os.environ.get(judge.api_key_env, "") if judge.api_key_env else "",
        params=judge.params,
        system_prompt=judge.system_prompt,
    )
    if row is None:
        return settings
    return replace(
        settings,
        api_key=decrypt(row.key_encrypted) or settings.api_key,
        headers=json.loads(decrypt(row.headers_encrypted) or "{}"),
        proxy=decrypt(row.proxy_encrypted),
        ca_pem=row.ca_pem,
        refuses=frozenset(row.rejected_params),
        structured=row.structured if _place(row) == _place(judge) else "",
        timeouts=Timeouts(
            connect=row.connect_seconds,
            first_byte=row.first_byte_seconds,
            idle=row.idle_seconds,
            whole=row.total_seconds,
        ),
    )


def _place(of: JudgeModel | Endpoint) -> tuple[str, str, str]:
    return of.url, of.model, of.protocol


def with_address(judge: JudgeModel, endpoint: Endpoint) -> JudgeModel:
    """The judge model with the endpoint's URL, model, protocol and parameters, which its own parameters override."""
    address = {"url": endpoint.url, "model": endpoint.model, "protocol": endpoint.protocol}
    return msgspec.structs.replace(judge, **address, params={**endpoint.params, **judge.params})


def remember_refusals(endpoint: int, refuses: frozenset[str]) -> None:
    """Store rejected parameters, so that the next run does not have to detect them again."""
    for row in Endpoint.objects.filter(pk=endpoint):
        row.rejected_params = sorted({*row.rejected_params, *refuses})
        row.save(update_fields=["rejected_params"])
