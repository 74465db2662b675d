"""Errors of calls to models that gave no usable reply.

JudgeError            code, retry, retry_after, status, message, refused, reply
├── Unreachable       no connection
├── Interrupted       connected, but the reply did not arrive complete
├── Refused           the server will never answer this request
├── Busy              the server would answer later
├── Unusable          a reply without anything to parse
└── Held              not sent: the endpoint's limits, or a server that is down (manual calls only: runs wait)

The class tells who can fix the problem, the code what happened, and `retry` whether the same request may succeed if it
is sent again unchanged.
"""

from __future__ import annotations

from typing import ClassVar

from judging.core.judges.reply import Reply


class JudgeError(Exception):
    """An error of a call to a model. `message` is the server's own text, shortened and without the key."""

    codes: ClassVar[dict[str, bool]] = {}  # code → whether to retry

    def __init__(
        self,
        code: str,
        message: str = "",
        *,
        status: int | None = None,
        retry_after: float | None = None,
        refused: frozenset[str] = frozenset(),
        reply: Reply | None = None,
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.retry = self.codes[code]
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.refused = refused
        self.reply = reply

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


def _codes(*, final: str = "", retry: str = "") -> dict[str, bool]:
    return {**dict.fromkeys(final.split(), False), **dict.fromkeys(retry.split(), True)}


class Unreachable(JudgeError):
    codes = _codes(final="bad_url bad_header bad_ca certificate", retry="connect proxy timeout_connect")


class Interrupted(JudgeError):
    # A reply that exceeded the total timeout would most likely exceed it again.
    codes = _codes(final="timeout_whole", retry="timeout_first_byte timeout_idle cut")


class Refused(JudgeError):
    codes = _codes(
        final="bad_key forbidden quota unknown_model not_found redirected"
        " bad_request refused_parameter context_too_long content_filter"
    )


class Busy(JudgeError):
    codes = _codes(retry="rate_limited overloaded server_error")


class Unusable(JudgeError):
    # An empty reply counts as a reply: it has a cost, and repeating the call until there is text would bias the result.
    codes = _codes(final="empty_reply truncated too_long", retry="bad_reply")


class Held(JudgeError):
    codes = _codes(final="held_slots held_pace held_closed held_down")


BRANCHES: tuple[type[JudgeError], ...] = (Unreachable, Interrupted, Refused, Busy, Unusable, Held)
ERROR_CODES: dict[str, type[JudgeError]] = {code: branch for branch in BRANCHES for code in branch.codes}

# The owner of the endpoint must fix these; until then every request would fail.
_ADDRESS_CODES = {"bad_url", "bad_header", "bad_ca", "certificate", "not_found", "redirected"}
SETTING_CODES = frozenset(_ADDRESS_CODES | {"bad_key", "forbidden", "quota", "unknown_model"})
# These may concern a single prompt, so they only count as long as the endpoint has never answered.
MAYBE_SETTING_CODES = frozenset({"bad_request", "refused_parameter", "bad_reply"})

# "Slow down" codes, for the concurrency limiter.
LIMIT_CODES = frozenset({"rate_limited", "overloaded"})
