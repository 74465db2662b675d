"""The web server over real sockets: slow clients occupy no thread and get only their share of resources."""

from __future__ import annotations

import json
import time

import pytest

from evalsite.web.server import Phase
from tests.deadlines import wait_until
from tests.evalsite.web.serving import MEGABYTE, answer_on, everything, served

HURRY = {"idle_seconds": 0.3, "grace_seconds": 0.3}
LARGE = f"Content-Length: {10 * 2**20}\r\n"
ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
ENDLESS = b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n"


def post(path: str, head: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode()


class TestWhatTheApplicationGetsAndGives:
    def test_a_page_has_its_length_and_the_connection_stays_open(self) -> None:
        with served() as server, server.connect() as connection:
            for _ in range(2):
                connection.sendall(ASK)
                assert answer_on(connection) == (200, b"a page")

    def test_the_environment_is_that_of_the_request(self) -> None:
        with served() as server:
            head = "X-One: 1\r\nX-One: 2\r\nX_Two: no\r\nCookie: a=1\r\nCookie: b=2\r\n"
            result = json.loads(server.ask("/environ?q=%20x", head).partition(b"\r\n\r\n")[2])
        assert result["REQUEST_METHOD"] == "POST"
        assert (result["PATH_INFO"], result["QUERY_STRING"]) == ("/environ", "q=%20x")
        assert result["HTTP_X_ONE"] == "1,2"
        assert result["HTTP_COOKIE"] == "a=1; b=2"
        assert "HTTP_X_TWO" not in result
        assert (result["REMOTE_ADDR"], result["SERVER_PORT"]) == ("127.0.0.1", str(server.port))

    def test_it_listens_on_ipv6(self) -> None:
        with served("::1") as server:
            assert json.loads(server.ask("/environ").partition(b"\r\n\r\n")[2])["REMOTE_ADDR"] == "::1"

    @pytest.mark.parametrize("size", [0, 5, 65_536, 65_537, 3_000_000])
    def test_a_body_arrives_whole(self, size: int) -> None:
        with served() as server:
            answer = server.ask("/body", f"Content-Length: {size}\r\n", b"x" * size)
        assert answer.endswith(f"\r\n\r\n{size}".encode())

    def test_a_small_body_in_chunks_gets_a_length(self) -> None:
        with served() as server:
            answer = server.ask(
                "/body", "Transfer-Encoding: chunked\r\n", b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            )
        assert answer.endswith(b"\r\n\r\n5")

    def test_a_client_that_waits_for_leave_gets_it(self) -> None:
        sent = post("/body", "Content-Length: 2\r\nExpect: 100-continue\r\n")
        with served() as server, server.connect(sent) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
            connection.sendall(b"ab")
            assert answer_on(connection) == (200, b"2")

    def test_an_answer_is_passed_on_while_it_is_made(self) -> None:
        with served() as server, server.connect(b"GET /halves HTTP/1.1\r\nHost: x\r\n\r\n") as connection:
            found = b""
            while b"first" not in found:
                found += connection.recv(1000)
            assert b"second" not in found
            server.application.go_on.set()
            while b"second" not in found:
                found += connection.recv(1000)

    def test_a_head_request_gets_no_body(self) -> None:
        sent = b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        with served() as server, server.connect(sent) as connection:
            assert everything(connection).endswith(b"\r\n\r\n")

    def test_a_head_request_makes_nothing_of_a_long_answer(self) -> None:
        with (
            served() as server,
            server.connect(b"HEAD /endless HTTP/1.1\r\nHost: x\r\n\r\n" + ASK) as connection,
        ):
            wait_until(lambda: server.application.closed == 1)
            found = b""
            while not found.endswith(b"a page"):
                found += connection.recv(1000)
            assert (found.count(b"HTTP/1.1 200 "), len(found) < 1000) == (2, True)

    def test_what_fails_is_answered_and_the_next_one_too(self) -> None:
        with served(pages=1) as server:
            assert server.ask("/fails").startswith(b"HTTP/1.1 500 ")
            assert server.ask().endswith(b"a page")

    @pytest.mark.parametrize(
        ("path", "status"), [("/api/fails", 500), ("/mcp/fails", 500), ("/api/body", 408)]
    )
    def test_programs_are_refused_in_json(self, path: str, status: int) -> None:
        head = "Accept-Language: zh-CN\r\n" + ("Content-Length: 9\r\n" if status == 408 else "")
        with served(**HURRY) as server, server.connect(post(path, head)) as connection:
            answer = everything(connection)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert error["code"] == {500: "server_error", 408: "timeout"}[status]
        assert "请" in error["message"]

    def test_what_is_not_http_is_refused(self) -> None:
        with served() as server, server.connect(b"\x16\x03\x01 what\r\n\r\n") as connection:
            answer = everything(connection)
        assert answer.startswith(b"HTTP/1.0 400 ")
        assert b"aiohttp" not in answer

    @pytest.mark.parametrize(
        "head",
        [
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 4\r\nContent-Length: 5\r\n",
            "Content-Length: +4\r\n",
            "Content-Length : 4\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "X: a\r\n b\r\n",
            "X: a\rY: b\r\n",
            "Host: y\r\n",
        ],
    )
    def test_what_a_proxy_may_understand_otherwise_is_refused(self, head: str) -> None:
        """Request smuggling: the rest of a body could be taken for the next request."""
        with served() as server, server.connect(post("/", head) + b"0\r\n\r\n" + ASK) as connection:
            answer = everything(connection)
        assert answer.startswith(b"HTTP/1.0 400 ")
        assert answer.count(b"HTTP/") == 1

    def test_it_opens_no_tunnel(self) -> None:
        with served() as server, server.connect(b"CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n") as connection:
            assert everything(connection).startswith(b"HTTP/1.1 405 ")

    def test_a_body_that_nobody_reads_does_not_keep_the_answer_back(self) -> None:
        with served(**HURRY) as server, server.connect(post("/unread", LARGE) + MEGABYTE) as connection:
            assert answer_on(connection) == (413, b"too large")


class TestSlowClients:
    """With a single page thread: a request that occupied it would block all others."""

    @pytest.mark.parametrize(
        "sent",
        [
            b"",
            b"GET / HT",
            b"GET / HTTP/1.1\r\nHost:",
            ASK,
            post("/body", "Content-Length: 9\r\n"),
            post("/body", "Content-Length: 9\r\n") + b"half",
            post("/body", "Transfer-Encoding: chunked\r\n") + b"3\r\nab",
            post("/unread", LARGE) + b"begun",
        ],
    )
    def test_what_has_not_arrived_takes_no_thread(self, sent: bytes) -> None:
        with served(pages=1, aside=0) as server:
            slow = [server.connect(sent) for _ in range(20)]
            assert server.ask().endswith(b"a page")
            for one in slow:
                one.close()

    def test_a_large_body_that_is_read_and_a_long_answer_leave_the_thread_to_pages(self) -> None:
        with (
            served(pages=1, aside=2) as server,
            server.connect(post("/body", LARGE)),
            server.connect(ENDLESS, receives=4096),
        ):
            assert server.ask().endswith(b"a page")

    def test_more_of_them_than_may_wait_are_refused(self) -> None:
        with served(pages=1, aside=1, ending_seconds=0.3) as server, server.connect(post("/body", LARGE)):
            wait_until(lambda: server.site.threads.aside == 1)
            assert server.ask("/body", LARGE).startswith(b"HTTP/1.1 503 ")
            assert server.ask().endswith(b"a page")

    def test_many_larger_bodies_at_once_leave_turns_to_pages(self) -> None:
        sent = f"POST /waits HTTP/1.1\r\nHost: x\r\n{LARGE}\r\n".encode()
        with served(pages=2, starting=1) as server:
            many = [server.connect(sent) for _ in range(10)]
            wait_until(lambda: any(one.phase is Phase.BUSY for one in server.site.connections))
            assert server.ask().endswith(b"a page")
            for one in many:
                one.close()

    def test_many_programs_at_once_leave_turns_to_pages(self) -> None:
        with served(pages=2, programs=1) as server:
            many = [server.connect(post("/api/waits", "")) for _ in range(4)]
            wait_until(lambda: all(one.phase is Phase.BUSY for one in server.site.connections))
            assert server.ask().endswith(b"a page")
            server.application.go_on.set()
            assert [answer_on(one) for one in many] == [(200, b"done")] * 4
            for one in many:
                one.close()

    def test_a_long_answer_to_a_program_leaves_its_turn_to_the_next(self) -> None:
        with (
            served(programs=1) as server,
            server.connect(b"GET /api/halves HTTP/1.1\r\nHost: x\r\n\r\n") as connection,
        ):
            received = b""
            while b"first" not in received:  # with the headers or after them
                received += connection.recv(1000)
            assert server.ask("/api/page").endswith(b"a page")
            server.application.go_on.set()

    def test_larger_bodies_that_were_answered_make_room_for_the_next(self) -> None:
        with served(starting=1, ending_seconds=0.1) as server:
            for _ in range(3):
                assert server.ask("/body", "Content-Length: 70000\r\n", b"x" * 70_000).endswith(b"70000")
                assert server.ask("/unread", LARGE).endswith(b"too large")

    def test_a_place_is_free_again_when_its_client_is_gone(self) -> None:
        with served(pages=1, aside=1) as server:
            for _ in range(3):
                with server.connect(ENDLESS, receives=4096):
                    wait_until(lambda: server.site.threads.aside == 1)
                wait_until(lambda: server.site.threads.aside == 0)
            assert server.application.closed == 3

    @pytest.mark.parametrize("sent", [b"", b"GET / HT", ASK, ENDLESS])
    def test_who_sends_or_takes_nothing_is_closed(self, sent: bytes) -> None:
        with served(**HURRY) as server, server.connect(sent, receives=4096):
            wait_until(lambda: len(server.site.connections) == 1)
            wait_until(lambda: not server.site.connections)
            assert not server.site.connections

    def test_a_small_body_that_does_not_arrive_is_reported(self) -> None:
        with served(**HURRY) as server, server.connect(post("/body", "Content-Length: 9\r\n")) as connection:
            assert everything(connection).startswith(b"HTTP/1.1 408 ")

    def test_a_large_body_that_stops_ends_its_reader(self) -> None:
        with served(**HURRY) as server, server.connect(post("/body", LARGE) + b"begun"):
            wait_until(lambda: server.application.broken)
            assert server.application.broken == 1

    def test_drops_are_not_enough(self) -> None:
        """Single bytes stay below the minimum rate and do not extend the deadline."""
        with served(**HURRY) as server, server.connect(post("/body", LARGE)) as connection:
            began = time.monotonic()
            while not server.application.broken and time.monotonic() - began < 60:
                try:
                    connection.sendall(b"x")
                except ConnectionError:
                    break
                time.sleep(0.05)
            wait_until(lambda: server.application.broken)
            assert server.application.broken == 1

    def test_a_steady_client_may_take_longer_than_the_grace_period(self) -> None:
        size = 100_000
        with (
            served(grace_seconds=1.0, bytes_per_second=10_000) as server,
            server.connect(post("/body", f"Content-Length: {size}\r\nConnection: close\r\n")) as connection,
        ):
            for _ in range(10):
                connection.sendall(b"x" * (size // 10))
                time.sleep(0.15)
            assert everything(connection).endswith(f"\r\n\r\n{size}".encode())

    def test_under_pressure_the_longest_idle_connection_makes_room(self) -> None:
        with served(connections=5) as server:
            idle = []
            for number in range(5):
                idle.append(server.connect())
                wait_until(lambda number=number: len(server.site.connections) == number + 1)
            assert server.ask().endswith(b"a page")
            assert everything(idle[0]) == b""
            idle[4].sendall(ASK)
            assert answer_on(idle[4]) == (200, b"a page")
            for one in idle:
                one.close()


class TestItsEnd:
    def test_what_is_worked_on_is_answered_and_idle_connections_are_closed(self) -> None:
        sent = b"GET /waits HTTP/1.1\r\nHost: x\r\n\r\n"
        with served() as server, server.connect() as idle, server.connect(sent) as busy:
            wait_until(lambda: any(one.phase is Phase.BUSY for one in server.site.connections))
            server.begin_to_stop()
            assert everything(idle) == b""
            server.application.go_on.set()
            assert answer_on(busy) == (200, b"done")

    def test_what_does_not_end_is_given_up(self) -> None:
        with served(ending_seconds=0.2) as server, server.connect(ENDLESS, receives=4096) as connection:
            assert connection.recv(100)
            server.stop()
            wait_until(lambda: server.application.closed == 1)
