"""The connection test: a short request within the time limit of a web request, and a readable result."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsite.secrets import Undecryptable
from evalsite.templatetags.show import duration
from judging.core.judges.client import Guard
from judging.core.judges.errors import Held
from judging.core.judges.probe import Probe, probe
from judging.core.judges.refused_parameters import SYSTEM_ROLE, TOGETHER
from judging.core.judges.settings import JudgeSettings, Timeouts
from judging.core.judges.structured import JSON_OBJECT, JSON_SCHEMA, NONE, TOOL
from judging.core.metric_definition import JudgeModel
from judging.endpoints.manual_calls import Emit, ManualCall
from judging.endpoints.models import Endpoint
from judging.endpoints.settings import judge_settings
from judging.messages import reason_sentence

TIMEOUTS = Timeouts(connect=5.0, first_byte=20.0, idle=10.0, whole=25.0)
TOTAL_SECONDS = 40.0  # including waiting and retries
MAX_WAIT = 10.0  # seconds to wait for a slot and the rate limit, behind runs

# Each test occupies a web thread; leave enough for other requests.
_turns = threading.BoundedSemaphore(2)


def try_endpoint(endpoint: Endpoint) -> Probe:
    """Test an endpoint. Failures are returned as a Probe, never raised."""
    try:
        settings = endpoint_settings(endpoint)
    except Undecryptable:
        return Probe(code="key_unreadable")
    if not _turns.acquire(timeout=10):
        return Probe(code="busy_here")
    try:
        within = replace(settings, timeouts=settings.timeouts.within(TIMEOUTS))
        return _probed(within, as_judge(endpoint), min(TOTAL_SECONDS, settings.timeouts.whole))
    finally:
        _turns.release()


def fingerprint(endpoint: Endpoint) -> str:
    """A keyed hash of what a connection test depends on, so that a result can be told to be that of other unsaved
    values without storing a secret."""
    try:
        settings = endpoint_settings(endpoint)
    except Undecryptable:
        return ""
    parts = (
        *(settings.url, settings.model, settings.protocol, settings.api_key, settings.proxy, settings.ca_pem),
        json.dumps([dict(settings.headers), dict(settings.params)], sort_keys=True),
    )
    return salted_hmac("connection test", json.dumps(parts), algorithm="sha256").hexdigest()


def _probed(settings: JudgeSettings, judge: JudgeModel, total: float) -> Probe:
    async def work(guard: Guard, _emit: Emit) -> Probe:
        return await probe(settings, guard)

    started = time.perf_counter()
    # Also try a server that is marked as down, since a test can show that it is up again.
    with ManualCall(judge, work, max_wait=MAX_WAIT, total=total, even_if_down=True) as call:
        for _waiting in call.events():
            pass  # the page shows only the result
        try:
            result = replace(call.result(), waited=round(call.waited, 1))
        except TimeoutError:
            result = Probe(code="timeout_whole", seconds=round(time.perf_counter() - started, 3))
        return replace(result, failed_calls=len(call.failed_tries))


def as_judge(endpoint: Endpoint) -> JudgeModel:
    """A JudgeModel of the endpoint alone, without a metric."""
    return JudgeModel(
        name="",
        template="",
        endpoint=endpoint.pk,
        url=endpoint.url,
        model=endpoint.model,
        protocol=endpoint.protocol,
        params=endpoint.params,
    )


def endpoint_settings(endpoint: Endpoint) -> JudgeSettings:
    """The endpoint's request settings. Raises Undecryptable."""
    return judge_settings(as_judge(endpoint), endpoint)


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a connection test as shown to users. `kind`: a notice type; `facts`: (name, value) pairs."""

    kind: str
    title: str
    text: str
    refusals: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    hint: str = ""


def last_result(endpoint: Endpoint) -> TestResult | None:
    """The result of the endpoint's last test; None if never tested."""
    probe = endpoint.probe
    if not probe:
        return None
    if not probe["ok"]:
        text = reason_sentence(probe["code"], probe["detail"])
        if probe["code"] in Held.codes:
            return TestResult("warning", _("Not tested: endpoint is busy"), text)
        return TestResult(
            "error", _("Connection failed"), f"{text}{_calls(probe)}", hint=_model_hint(endpoint)
        )
    refusals = tuple(refusal_sentence(name) for name in probe["refuses"])
    title = _("Connected; some parameters not supported") if refusals else _("Connected")
    text = _("Runs omit unsupported parameters.") if refusals else ""
    return TestResult("success", title, text, refusals, _facts(probe), _model_hint(endpoint))


def _calls(probe: dict[str, Any]) -> str:
    """How many calls failed, if the test sent more than one."""
    failed = probe.get("failed_calls") or 0
    return " " + _("%(n)s calls failed.") % {"n": failed} if failed > 1 else ""


def refusal_sentence(name: str) -> str:
    """A sentence on the effect of a parameter that the server rejects."""
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
        SYSTEM_ROLE: _("System messages are not supported: their text is sent as part of the user message."),
    }
    name, _together, other = name.partition(TOGETHER)
    if other:
        sentence = _("%(name)s is not supported together with %(other)s, so only %(other)s is sent.")
        return sentence % {"name": name, "other": other}
    return sentences.get(name) or _("%(name)s is not supported.") % {"name": name}


def _facts(probe: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    yes, no = _("yes"), _("no")
    waited = float(probe.get("waited") or 0)
    facts = [
        (_("Queue time (behind runs)"), duration(waited) if waited >= 1 else ""),
        (_("Failed calls before the reply"), str(probe.get("failed_calls") or "")),
        (_("Model in reply"), probe["model"]),
        (_("Streaming"), yes if probe["streams"] else no),
        (_("Reasoning output"), yes if probe["reasoning"] else _("not in this short reply")),
        (_("Token usage"), yes if probe["usage"] else no),
        (_("Batches, answered within a day"), yes if probe.get("batches") else no),
        (_("Structured output"), structured_name(probe.get("structured", ""))),
    ]
    return tuple((name, value) for name, value in facts if value)


def structured_name(mode: str) -> str:
    """The form of structured output that a server honours; '' if unknown."""
    names = {
        JSON_SCHEMA: _("JSON by a schema"),
        JSON_OBJECT: _("JSON objects"),
        TOOL: _("as a tool call"),
        NONE: _("not supported"),
    }
    return names.get(mode, "")


def _model_hint(endpoint: Endpoint) -> str:
    """A hint with the models that the server lists if the endpoint's model is not among them, or that the list can't
    be read; '' otherwise."""
    if endpoint.probe.get("list_broken"):
        return _("The server's list of models can't be read: it breaks the HTTP protocol or does not end.")
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
