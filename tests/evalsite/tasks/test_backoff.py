"""Backoff between attempts."""

from evalsite.tasks.backoff import LONGEST_SECONDS, Backoff


def test_pauses_double_up_to_a_limit_and_start_again_after_a_success() -> None:
    backoff = Backoff()
    assert [backoff.failed() for _ in range(4)] == [1.0, 2.0, 4.0, LONGEST_SECONDS]
    backoff.succeeded()
    assert backoff.failed() == 1.0
