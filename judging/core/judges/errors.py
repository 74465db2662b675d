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

from dataclasses import dataclass
from typing import ClassVar

from datasets.core.texts import gettext_noop
from judging.core.judges.reply import Reply
from judging.core.reasons import ReasonKind


@dataclass(frozen=True, slots=True)
class ErrorKind(ReasonKind):
    """The texts of a code; `retry`: whether the same request may succeed if it is sent again."""

    retry: bool = False


class JudgeError(Exception):
    """An error of a call to a model. `message` is the server's own text, shortened and without the key."""

    codes: ClassVar[dict[str, ErrorKind]] = {}

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
        self.retry = self.codes[code].retry
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.refused = refused
        self.reply = reply

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class Unreachable(JudgeError):
    codes = {
        "bad_url": ErrorKind(
            gettext_noop(
                "The endpoint address is not a valid http or https URL. Edit the endpoint; don't include a "
                "username or password."
            )
        ),
        "bad_header": ErrorKind(
            gettext_noop(
                "The API key or an extra header contains an invalid character. Enter it again without line breaks "
                "or non-Latin characters."
            )
        ),
        "bad_ca": ErrorKind(
            gettext_noop(
                "The custom CA certificate is not valid PEM. Paste the whole certificate, from BEGIN to END."
            )
        ),
        "certificate": ErrorKind(
            gettext_noop(
                "The server certificate is not trusted. Check the address. For a self-hosted server, add its CA "
                "certificate to the endpoint."
            ),
            short=gettext_noop("no connection"),
        ),
        "connect": ErrorKind(
            gettext_noop(
                "Can't connect to the endpoint. Check the address and port, and that the model server is running."
            ),
            retry=True,
            short=gettext_noop("no connection"),
        ),
        "proxy": ErrorKind(
            gettext_noop(
                "The proxy is not responding or refused the request. Check the proxy in the endpoint settings."
            ),
            retry=True,
            short=gettext_noop("no connection"),
        ),
        "timeout_connect": ErrorKind(
            gettext_noop(
                "Connection timed out. Check the address, the network and whether you need a proxy."
            ),
            retry=True,
            short=gettext_noop("timed out"),
        ),
    }


class Interrupted(JudgeError):
    # A reply that exceeded the total timeout would most likely exceed it again.
    codes = {
        "timeout_whole": ErrorKind(
            gettext_noop(
                "The reply took too long. Raise “Total timeout” in the endpoint, or lower max_tokens."
            ),
            short=gettext_noop("timed out"),
        ),
        "timeout_first_byte": ErrorKind(
            gettext_noop(
                "The server accepted the request but did not start replying in time. Try again later, or raise "
                "“Time to first byte” in the endpoint."
            ),
            retry=True,
            while_down=gettext_noop("The server accepts requests but does not start replying in time."),
            short=gettext_noop("timed out"),
        ),
        "timeout_idle": ErrorKind(
            gettext_noop("The reply stalled for too long. Try again."),
            retry=True,
            short=gettext_noop("timed out"),
        ),
        "cut": ErrorKind(
            gettext_noop("The connection closed before the reply was complete. Try again."),
            retry=True,
            while_down=gettext_noop("The server closes the connection before replies are complete."),
            short=gettext_noop("cut off"),
        ),
    }


class Refused(JudgeError):
    codes = {
        "bad_key": ErrorKind(gettext_noop("Invalid API key. Enter the key again in the endpoint.")),
        "forbidden": ErrorKind(
            gettext_noop("The API key lacks permission for this request. Check what the key can access.")
        ),
        "quota": ErrorKind(gettext_noop("Quota or balance exhausted. Top up the account, then retry.")),
        "unknown_model": ErrorKind(gettext_noop("Unknown model. Check the model ID in the endpoint.")),
        "not_found": ErrorKind(
            gettext_noop(
                "The server returned 404 for this address. Check the path, for example whether it needs /v1."
            )
        ),
        "redirected": ErrorKind(
            gettext_noop(
                "The server redirects to another address. Redirects are not followed, to protect the API key. "
                "Enter the final address."
            )
        ),
        "bad_request": ErrorKind(
            gettext_noop(
                "The server rejected the request, often because of a generation parameter. See its message for "
                "details."
            )
        ),
        "refused_parameter": ErrorKind(
            gettext_noop("The server rejected a required parameter. Change the generation parameters.")
        ),
        "context_too_long": ErrorKind(
            gettext_noop(
                "The prompt exceeds the model's context window. Shorten the template, or use a model with a larger "
                "context."
            ),
            of_candidate=gettext_noop(
                "The row's messages exceed the model's context window. Shorten them, or use a model with a larger "
                "context."
            ),
        ),
        "content_filter": ErrorKind(
            gettext_noop(
                "The provider's content filter blocked the reply because of the prompt. Try another judge model."
            ),
            of_candidate=gettext_noop(
                "The provider's content filter blocked the answer because of this row's text. Other rows are not "
                "affected."
            ),
        ),
    }


class Busy(JudgeError):
    codes = {
        "rate_limited": ErrorKind(
            gettext_noop(
                "Rate limit still exceeded after several retries. Lower the endpoint's concurrency, then retry."
            ),
            retry=True,
        ),
        "overloaded": ErrorKind(
            gettext_noop(
                "The server is still overloaded after several retries. Lower the endpoint's concurrency, then retry."
            ),
            retry=True,
            while_down=gettext_noop("The server reports that it is overloaded."),
        ),
        "server_error": ErrorKind(
            gettext_noop("The server returned an error, even after several retries. Retry later."),
            retry=True,
            while_down=gettext_noop("The server answers with an error."),
        ),
    }


class Unusable(JudgeError):
    # An empty reply counts as a reply: it has a cost, and repeating the call until there is text would bias the result.
    codes = {
        "empty_reply": ErrorKind(
            gettext_noop("The judge model returned an empty reply. Retry, or check the request.")
        ),
        "truncated": ErrorKind(
            gettext_noop("The judge model used all its tokens on reasoning. Raise max_tokens.")
        ),
        "too_long": ErrorKind(gettext_noop("The reply is too long to store. Set max_tokens.")),
        "batch_expired": ErrorKind(
            gettext_noop("The server did not answer this request of a batch within a day.")
        ),
        "bad_reply": ErrorKind(
            gettext_noop(
                "The response is not in the format of the endpoint's protocol. Check the address and the protocol."
            ),
            retry=True,
            short=gettext_noop("unreadable"),
        ),
    }


class Held(JudgeError):
    codes = {
        "held_slots": ErrorKind(
            gettext_noop(
                "Runs are using all of this endpoint's concurrent calls. Try again in a moment, or pause a run."
            )
        ),
        "held_pace": ErrorKind(
            gettext_noop(
                "The endpoint's requests or tokens per minute are used up, so the request was not sent. Try again "
                "later."
            )
        ),
        "held_closed": ErrorKind(
            gettext_noop(
                "The server asked clients to wait (Retry-After), so the request was not sent. Try again later."
            )
        ),
        "held_down": ErrorKind(
            gettext_noop(
                "The endpoint is down, so the request was not sent. Runs retry automatically; use “Test "
                "connection” on the endpoint page to try now."
            )
        ),
    }


BRANCHES: tuple[type[JudgeError], ...] = (Unreachable, Interrupted, Refused, Busy, Unusable, Held)
ERROR_CODES: dict[str, type[JudgeError]] = {code: branch for branch in BRANCHES for code in branch.codes}
ERROR_KINDS: dict[str, ErrorKind] = {code: kind for branch in BRANCHES for code, kind in branch.codes.items()}

# The owner of the endpoint must fix these; until then every request would fail.
_ADDRESS_CODES = {"bad_url", "bad_header", "bad_ca", "certificate", "not_found", "redirected"}
SETTING_CODES = frozenset(_ADDRESS_CODES | {"bad_key", "forbidden", "quota", "unknown_model"})
# These may concern a single prompt, so they only count as long as the endpoint has never answered.
MAYBE_SETTING_CODES = frozenset({"bad_request", "refused_parameter", "bad_reply"})

# Overload codes: fewer calls at a time.
LIMIT_CODES = frozenset({"rate_limited", "overloaded"})

# The server did not answer: no connection, a time-out, an error of the server itself, a cut or unreadable body.
UNANSWERED_CODES = frozenset(
    {
        "connect",
        "proxy",
        "certificate",
        "timeout_connect",
        "timeout_first_byte",
        "timeout_idle",
        "timeout_whole",
    }
    | {"cut", "server_error", "overloaded", "bad_reply"}
)


def is_answer(error: JudgeError) -> bool:
    """Whether the server answered the request: with a reply, or with a refusal that leaves it in service."""
    by_status = error.code == "overloaded" and error.status is not None and 400 <= error.status < 500
    return error.reply is not None or by_status or error.code not in UNANSWERED_CODES
