"""Bodies of messages: the Standard Webhooks text's, or what the robots of chat services take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _

from evalsite.webhooks.kinds import LABELS, Preset

DATA = ("project", "id", "name", "state", "url")
KEYWORD = "evalsite"
"""Begins every sentence, for robots that take only messages with a keyword."""


def standard_body(event: str, timestamp: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """`{type, timestamp, data}`. `timestamp`: ISO 8601; `data` has the members of DATA."""
    return {"type": event, "timestamp": timestamp, "data": {name: data[name] for name in DATA}}


def body_text(preset: str, language: str, body: Mapping[str, Any]) -> str:
    """The body as it is sent: the standard one, or its sentence in `language` as the preset wants it."""
    if preset == Preset.STANDARD:
        shaped: Mapping[str, Any] = body
    else:
        with translation.override(language):
            shaped = _SHAPES[preset](sentence(body))
    return json.dumps(shaped, ensure_ascii=False, separators=(",", ":"))


def sentence(body: Mapping[str, Any]) -> str:
    """What happened to what, in one line, and where to look."""
    data = body["data"]
    values = {
        "keyword": KEYWORD,
        "event": str(LABELS.get(body["type"], body["type"])),
        "name": _plain(str(data["name"])),
        "project": data["project"],
    }
    text = _("%(keyword)s: %(event)s – %(name)s (project %(project)s)") % values
    return f"{text}\n{data['url']}" if data["url"] else text


def _plain(name: str) -> str:
    """A name in which no chat service finds a mention, a link or markup."""
    one_line = " ".join(name.split())
    return one_line.translate({ord("<"): "‹", ord(">"): "›", ord("@"): "＠", ord("&"): "＆"})


def _card(text: str) -> dict[str, Any]:
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "TextBlock", "text": line, "wrap": True} for line in text.splitlines()],
    }
    content = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [content]}


_SHAPES: dict[str, Any] = {
    Preset.SLACK: lambda text: {"text": text},
    Preset.FEISHU: lambda text: {"msg_type": "text", "content": {"text": text}},
    Preset.DINGTALK: lambda text: {"msgtype": "text", "text": {"content": text}},
    Preset.WECOM: lambda text: {"msgtype": "text", "text": {"content": text}},
    Preset.TEAMS: _card,
}
