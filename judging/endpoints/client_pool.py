"""From a metric's judge models to open connections: settings with their secrets, one lane for each endpoint."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError

from evalsite.env import Config
from evalsite.secrets import Undecryptable, decrypt
from evalsite.tasks.backoff import Backoff
from judging.core.judges.errors import JudgeError
from judging.core.judges.settings import JudgeSettings, Timeouts, chat_url
from judging.core.pipeline import Failure, JudgeModel
from judging.endpoints import limiter
from judging.endpoints.client import AGREE_SECONDS, LOOK_SECONDS, EndpointClient, RunInThread
from judging.endpoints.limiter import endpoint_key
from judging.endpoints.models import Endpoint

log = logging.getLogger("judging.pump")


def default_concurrency() -> int:
    """Calls at a time to a judge that a metrics file names by address."""
    config: Config = settings.CONFIG
    return config.judge_concurrency


@dataclass(slots=True)
class ModelConnection:
    """A judge model's way out: what to ask with, and the way that all who ask the same endpoint share."""

    settings: JudgeSettings
    client: EndpointClient
    endpoint: int | None = None
    failure: Failure | None = None
    answered: bool = False
    name: str = ""
    refused: int = 0  # questions in a row that failed for its settings

    def learn(self, refuses: frozenset[str]) -> bool:
        """Remember what the server refuses; true if that is news."""
        news = refuses - self.settings.refuses
        if news:
            self.settings = replace(self.settings, refuses=self.settings.refuses | news)
        return bool(news)


class ClientPool:
    """The lanes of one pump, and what it agrees on with other workers about each endpoint."""

    def __init__(self, owner: str, *, reads: RunInThread, writes: RunInThread) -> None:
        self.owner = owner
        self.ways: dict[str, EndpointClient] = {}
        self._reads = reads
        self._writes = writes
        self._agreed_at = time.monotonic()

    def of(self, judge: JudgeModel) -> ModelConnection:
        """Reads the endpoint's row; call it where the database may be used."""
        row = Endpoint.objects.filter(pk=judge.endpoint).first() if judge.endpoint else None
        way, name = self._way(endpoint_key(judge), row), row.name if row else judge.url
        try:
            settings = judge_settings(judge, row)
        except Undecryptable:
            settings = JudgeSettings(url=judge.url, model=judge.model)
            return ModelConnection(settings, way, judge.endpoint, Failure("key_unreadable"), name=name)
        return ModelConnection(settings, way, row.pk if row else None, why_not(judge, row), name=name)

    def _way(self, key: str, row: Endpoint | None) -> EndpointClient:
        if key not in self.ways:
            limiter.ensure_row(key)
            ceiling = row.concurrency if row else default_concurrency()
            way = EndpointClient(key, row.pk if row else None, ceiling, self._writes)
            way.agreed(limiter.allocate([way.told()], self.owner)[key])
            self.ways[key] = way
        return self.ways[key]

    async def keep_up(self) -> None:
        """Tell the other workers and hear from them, until cancelled. A database that is away is waited for; by the
        time that others may have taken this worker's slots, it has stopped using them."""
        backoff = Backoff()
        while True:
            pause = LOOK_SECONDS
            try:
                await self._look()
                if any(way.urgent for way in self.ways.values()) or self._silent_for() >= AGREE_SECONDS:
                    await self._agree()
                backoff.succeeded()
            except DatabaseError as error:
                log.warning("The endpoints' limits cannot be agreed on: %s", error)
                pause = min(backoff.failed(), limiter.SHARE_SECONDS / 4)
            if self._silent_for() > limiter.SHARE_SECONDS / 2:
                for way in self.ways.values():
                    way.slots.share = 0
            await asyncio.sleep(pause)

    def _silent_for(self) -> float:
        return time.monotonic() - self._agreed_at

    async def _look(self) -> None:
        if not self.ways:
            return
        for key, seen in (await self._reads(limiter.read_status, list(self.ways))).items():
            way = self.ways[key]
            way.seen(seen)
            if way.wants_try and await self._writes(limiter.claim_probe, key, way.tries + 1):
                way.let_one_try()

    async def _agree(self) -> None:
        began = time.monotonic()
        told = [way.told() for way in self.ways.values()]
        for key, heard in (await self._writes(limiter.allocate, told, self.owner)).items():
            self.ways[key].agreed(heard)
        self._agreed_at = began

    def release_shares(self) -> None:
        """Leave the slots to others; call it where the database may be used."""
        limiter.release_shares(self.ways, self.owner)


def why_not(judge: JudgeModel, row: Endpoint | None) -> Failure | None:
    """Why this judge must not be asked: its key is nowhere, or would go to another server than it is kept for."""
    if judge.api_key_env and not os.environ.get(judge.api_key_env):
        return Failure("key_missing", judge.api_key_env)
    secret = row is not None and (row.key_encrypted or row.headers_encrypted)
    if row is not None and secret and origin(row.url) != origin(judge.url):
        return Failure("endpoint_moved", origin(judge.url))
    return None


def origin(url: str) -> str:
    """Scheme, host and port that a judge's address leads to; the address itself if it is none."""
    try:
        parts = urlsplit(chat_url(url))
    except JudgeError:
        return url
    return f"{parts.scheme}://{parts.netloc}"


def judge_settings(judge: JudgeModel, row: Endpoint | None) -> JudgeSettings:
    """Address, model and parameters as the metric froze them; secrets, proxy and CA as the endpoint has them now.

    Raises Undecryptable if the endpoint's secrets were encrypted with a lost key.
    """
    settings = JudgeSettings(
        url=judge.url,
        model=judge.model,
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
        refuses=frozenset(row.refuses),
        timeouts=Timeouts(
            connect=row.connect_seconds,
            first_byte=row.first_byte_seconds,
            idle=row.idle_seconds,
            whole=row.whole_seconds,
        ),
    )


def remember_refusals(endpoint: int, refuses: frozenset[str]) -> None:
    """So that the next run does not have to find out again."""
    for row in Endpoint.objects.filter(pk=endpoint):
        row.refuses = sorted({*row.refuses, *refuses})
        row.save(update_fields=["refuses"])
