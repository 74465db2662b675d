"""What can go wrong between a question and its reply.

JudgeError            code, retry, retry_after, status, message, refused, reply
├── Unreachable       no connection came about
│                     bad_url  bad_header  bad_ca  connect  proxy  certificate  timeout_connect
├── Interrupted       the connection was there, the reply did not come whole
│                     timeout_first_byte  timeout_idle  timeout_whole  cut
├── Refused           the server will not answer this request, ever
│                     bad_key  forbidden  quota  unknown_model  not_found  redirected  bad_request
│                     refused_parameter  context_too_long  content_filter
├── Busy              the server would answer, later
│                     rate_limited  overloaded  server_error
├── Unusable          there is a reply, but nothing to read in it
│                     empty_reply  truncated  bad_reply  too_long
└── Held              we did not send it: the endpoint's limits, or a server that is being left alone (trials only:
                      a run's requests wait)
                      held_slots  held_pace  held_closed  held_down

The class says who is to act (network, owner of the settings, nobody, author of the prompt); the code says
what happened; `retry` says whether the same request may succeed if it is sent again unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from judging.core.judges.replies import Reply


class JudgeError(Exception):
    """A call that gave no usable reply; `message` is the server's own words, cut, without the key."""

    codes: ClassVar[dict[str, bool]] = {}

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


class Unreachable(JudgeError):
    codes: ClassVar[dict[str, bool]] = {
        "bad_url": False,
        "bad_header": False,
        "bad_ca": False,
        "certificate": False,
        "connect": True,
        "proxy": True,
        "timeout_connect": True,
    }


class Interrupted(JudgeError):
    # A reply that took longer than a whole call may last would most likely take as long again.
    codes: ClassVar[dict[str, bool]] = {
        "timeout_first_byte": True,
        "timeout_idle": True,
        "timeout_whole": False,
        "cut": True,
    }


class Refused(JudgeError):
    codes: ClassVar[dict[str, bool]] = {
        "bad_key": False,
        "forbidden": False,
        "quota": False,
        "unknown_model": False,
        "not_found": False,
        "redirected": False,
        "bad_request": False,
        "refused_parameter": False,
        "context_too_long": False,
        "content_filter": False,
    }


class Busy(JudgeError):
    codes: ClassVar[dict[str, bool]] = {"rate_limited": True, "overloaded": True, "server_error": True}


class Unusable(JudgeError):
    # An empty reply is a reply: it was paid for, and asking until something comes would choose among replies.
    codes: ClassVar[dict[str, bool]] = {
        "empty_reply": False,
        "truncated": False,
        "too_long": False,
        "bad_reply": True,
    }


class Held(JudgeError):
    codes: ClassVar[dict[str, bool]] = {
        "held_slots": False,
        "held_pace": False,
        "held_closed": False,
        "held_down": False,
    }


BRANCHES: tuple[type[JudgeError], ...] = (Unreachable, Interrupted, Refused, Busy, Unusable, Held)
ERROR_CODES: dict[str, type[JudgeError]] = {code: branch for branch in BRANCHES for code in branch.codes}

# What the owner of the settings must put right: no request of any item would fare better until then.
SETTING_CODES = frozenset(
    {
        "bad_url",
        "bad_header",
        "bad_ca",
        "certificate",
        "bad_key",
        "forbidden",
        "quota",
        "unknown_model",
        "not_found",
    }
    | {"redirected"}
)
# These may tell of a single prompt too: they count as long as the endpoint has never answered.
MAYBE_SETTING_CODES = frozenset({"bad_request", "refused_parameter", "bad_reply"})

# The codes that say "slow down" to whoever holds the slots.
LIMIT_CODES = frozenset({"rate_limited", "overloaded"})
