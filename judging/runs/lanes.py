"""From a metric's judge models to open connections: settings with their secrets, one lane for each endpoint."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from evalsite.secrets import Undecryptable, decrypt
from judging.core.judges.client import Clients
from judging.core.judges.errors import JudgeError
from judging.core.judges.limits import AdaptiveSlots
from judging.core.judges.settings import JudgeSettings, Timeouts, chat_url
from judging.core.pipeline import Failure, JudgeModel
from judging.metrics.models import Endpoint

DEFAULT_CONCURRENCY = 64  # for judges that a metrics file names by address


@dataclass(slots=True)
class Lane:
    """A judge model's way out: what to ask with, and the slots that all who ask the same address share."""

    settings: JudgeSettings
    slots: AdaptiveSlots
    endpoint: int | None = None
    failure: Failure | None = None
    answered: bool = False

    def learn(self, refuses: frozenset[str]) -> bool:
        """Remember what the server refuses; true if that is news."""
        news = refuses - self.settings.refuses
        if news:
            self.settings = replace(self.settings, refuses=self.settings.refuses | news)
        return bool(news)


class Lanes:
    """The lanes of one pump. Slots are shared by address, so that two runs do not double an endpoint's load."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self._slots: dict[str, AdaptiveSlots] = {}

    def of(self, judge: JudgeModel) -> Lane:
        """Reads the endpoint's row; call it where the database may be used."""
        row = Endpoint.objects.filter(pk=judge.endpoint).first() if judge.endpoint else None
        ceiling = row.concurrency if row else DEFAULT_CONCURRENCY
        slots = self._slots.setdefault(judge.url, AdaptiveSlots(ceiling))
        try:
            settings = judge_settings(judge, row)
        except Undecryptable:
            settings = JudgeSettings(url=judge.url, model=judge.model)
            return Lane(settings, slots, judge.endpoint, Failure("key_unreadable"))
        return Lane(settings, slots, row.pk if row else None, why_not(judge, row))


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
        timeouts=Timeouts(first_byte=row.first_byte_seconds, whole=row.whole_seconds),
    )


def remember_refusals(endpoint: int, refuses: frozenset[str]) -> None:
    """So that the next run does not have to find out again."""
    for row in Endpoint.objects.filter(pk=endpoint):
        row.refuses = sorted({*row.refuses, *refuses})
        row.save(update_fields=["refuses"])
