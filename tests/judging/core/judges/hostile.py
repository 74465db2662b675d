"""What servers send that mean ill or are broken: for the client, the connection test and whole runs."""

from __future__ import annotations

import gzip
import json

from judging.core.judges.scripted import Answer


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A response as sent, ended by closing the connection."""
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("latin-1") + body


def gzipped(body: bytes, times: int) -> bytes:
    for _ in range(times):
        body = gzip.compress(body, 1)
    return body


BOMB = 64 * 2**20  # bytes
_ONE_LAYER = gzipped(bytes(BOMB), 1)
ENDLESS_EVENT = b'data: {"choices": [\n' + b"data: 1,\n" * 20_000
NUL = json.dumps({"choices": [{"message": {"content": "[[5]]\0"}}], "model": "m\0"}).encode()
LIST_WITH_NUL = json.dumps({"data": [{"id": "a\0"}]}).encode()

# A server's answers to a question, by what is wrong with them, and the code of the error.
ANSWERS: dict[str, tuple[Answer, str]] = {
    "an event without end": (Answer(body=ENDLESS_EVENT), "bad_reply"),
    "three layers of gzip": (
        Answer(raw=http(gzipped(_ONE_LAYER, 2), "content-encoding: gzip, gzip, gzip")),
        "bad_reply",
    ),
    "a gzip bomb": (Answer(raw=http(_ONE_LAYER, "content-encoding: gzip")), "too_long"),
    "a gzip bomb as an error": (
        Answer(raw=http(_ONE_LAYER, "content-encoding: gzip", status="500 Oops")),
        "server_error",
    ),
    "no gzip": (Answer(raw=http(b"x", "content-encoding: gzip")), "bad_reply"),
    "an encoding that was not asked for": (Answer(raw=http(b"x", "content-encoding: br")), "bad_reply"),
    "two lengths": (Answer(raw=http(b"{}", "content-length: 2", "content-length: 3")), "bad_reply"),
    "no status line": (Answer(raw=b"SSH-2.0-OpenSSH_9.6\r\n"), "bad_reply"),
    "a bad chunk size": (Answer(raw=http(b"zz\r\n{}\r\n", "transfer-encoding: chunked")), "bad_reply"),
    "a reason that is no text": (Answer(raw=http(b"{}", status="200 \xff\xfe")), "bad_reply"),
    "an error with NUL": (
        Answer(status=500, body=b'{"error": {"message": "out\\u0000 of order"}}'),
        "server_error",
    ),
}
# Lists of models.
LISTS: dict[str, Answer] = {
    "three layers of gzip": ANSWERS["three layers of gzip"][0],
    "a gzip bomb": ANSWERS["a gzip bomb"][0],
    "two lengths": ANSWERS["two lengths"][0],
    "no status line": ANSWERS["no status line"][0],
    "a bad chunk size": ANSWERS["a bad chunk size"][0],
    "a reason that is no text": ANSWERS["a reason that is no text"][0],
}
