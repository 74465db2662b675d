"""«Test connection»: asks the endpoint, within bounds that a web thread can bear, and says what was found."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.secrets import Undecryptable
from evalsite.templatetags.show import duration
from judging.core.judges.errors import Held
from judging.core.judges.probe import Probe, probe
from judging.core.judges.retry import Guard
from judging.core.judges.settings import JudgeSettings, Timeouts
from judging.core.pipeline import JudgeModel
from judging.endpoints.client_pool import judge_settings
from judging.endpoints.manual_calls import Say, Trial, Turn
from judging.endpoints.models import Endpoint
from judging.messages import reason_sentence

TIMEOUTS = Timeouts(connect=5.0, first_byte=20.0, idle=10.0, whole=25.0)
ALTOGETHER = 40.0  # seconds, with all that is waited for and tried again
PATIENCE = 10.0  # seconds that a test waits for a slot and its pace, beside the runs
MAX_MODELS_KEPT = 200

# Each test holds a web thread while it waits: some must be left for everybody else.
_turns = threading.BoundedSemaphore(2)


def try_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    """What a short question found out, as JSON-able `probe` of the endpoint. Raises nothing."""
    try:
        settings = endpoint_settings(endpoint)
    except Undecryptable:
        return failed("key_unreadable")
    if not _turns.acquire(timeout=10):
        return failed("busy_here")
    try:
        # A server that is down is tried all the same: this is how somebody finds out that it is mended.
        turn = Turn(
            f"endpoint {endpoint.pk}", endpoint.pk, endpoint.concurrency, patience=PATIENCE, anyway=True
        )
        return _probed(replace(settings, timeouts=TIMEOUTS), turn)
    finally:
        _turns.release()


def _probed(settings: JudgeSettings, turn: Turn) -> dict[str, Any]:
    async def work(watch: Guard, _say: Say) -> Probe:
        async with asyncio.timeout(ALTOGETHER):
            return await probe(settings, watch)

    started = time.perf_counter()
    with Trial(turn, work) as trial:
        for _waits in trial.said():
            pass  # nothing is shown before the test has ended
        try:
            return as_kept(trial.result()) | {"waited": round(turn.waited, 1)}
        except TimeoutError:
            return failed("timeout_whole") | {"seconds": time.perf_counter() - started}


def endpoint_settings(endpoint: Endpoint) -> JudgeSettings:
    """How the endpoint is asked, by itself. Raises Undecryptable."""
    judge = JudgeModel(name="", template="", url=endpoint.url, model=endpoint.model, params=endpoint.params)
    return judge_settings(judge, endpoint)


def failed(code: str, detail: str = "") -> dict[str, Any]:
    return {"ok": False, "code": code, "detail": detail, "refuses": [], "models": []}


def as_kept(found: Probe) -> dict[str, Any]:
    """The probe as it is stored: no request, no key."""
    return {
        "ok": found.ok,
        "code": found.error.code if found.error else "",
        "detail": found.error.message if found.error else "",
        "refuses": sorted(found.refuses),
        "streams": found.streams,
        "reasoning": found.reasoning,
        "usage": found.usage,
        "model": found.model or "",
        "seconds": round(found.seconds, 3),
        "models": list(found.models[:MAX_MODELS_KEPT]),
    }


@dataclass(frozen=True, slots=True)
class Told:
    """What a test found, in words. `kind` is that of a notice; `facts` are name and value."""

    kind: str
    title: str
    text: str
    refusals: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    hint: str = ""


def told(endpoint: Endpoint) -> Told | None:
    """The words for what the last test found; None if there was none."""
    found = endpoint.probe
    if not found:
        return None
    if not found["ok"]:
        text = reason_sentence(found["code"], found["detail"])
        if found["code"] in Held.codes:
            return Told("warning", _("Not tested: endpoint is busy"), text)
        return Told("error", _("Connection failed"), text, hint=_model_hint(endpoint))
    refusals = tuple(refusal_sentence(name) for name in found["refuses"])
    title = _("Connected; some parameters not supported") if refusals else _("Connected")
    text = _("Runs omit unsupported parameters.") if refusals else ""
    return Told("success", title, text, refusals, _facts(found), _model_hint(endpoint))


def refusal_sentence(name: str) -> str:
    """What it means that a server refuses a parameter."""
    sentences = {
        "stream": _("stream is not supported: slow replies show nothing until they are complete."),
        "separate_reasoning": _(
            "separate_reasoning is not supported: reasoning appears in the reply itself."
        ),
        "stream_options": _("stream_options is not supported: token usage may be missing."),
        "temperature": _(
            "temperature is not supported: the model's default is used, so scores may vary more."
        ),
        "max_tokens": _("max_tokens is not supported: max_completion_tokens is sent instead."),
    }
    return sentences.get(name) or _("%(name)s is not supported.") % {"name": name}


def _facts(found: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    yes, no = _("yes"), _("no")
    waited = float(found.get("waited") or 0)
    facts = [
        (_("Queue time (behind runs)"), duration(waited) if waited >= 1 else ""),
        (_("Model in reply"), found["model"]),
        (_("Streaming"), yes if found["streams"] else no),
        (_("Reasoning output"), yes if found["reasoning"] else _("not in this short reply")),
        (_("Token usage"), yes if found["usage"] else no),
    ]
    return tuple((name, value) for name, value in facts if value)


def _model_hint(endpoint: Endpoint) -> str:
    """Models that the server offers, where the one that is set is not among them."""
    offered = endpoint.probe.get("models", [])
    if not offered or endpoint.model in offered:
        return ""
    names = ", ".join(offered[:8]) + (" …" if len(offered) > 8 else "")
    sentence = ngettext(
        "The server lists one model, but not this one: %(names)s",
        "The server lists %(n)s models, but not this one: %(names)s",
        len(offered),
    )
    return sentence % {"n": len(offered), "names": names}
