from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone, translation

from evalsite.templatetags import show


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (7.5, "7.5"),
        (7.0, "7"),
        (6.66666, "6.667"),
        (0, "0"),
        (-0.0001, "0"),
        (-1.5, "−1.5"),
        (None, "–"),
        (float("nan"), "–"),
        (100, "100"),
    ],
)
def test_a_score_has_no_needless_zeros(value: float | None, shown: str) -> None:
    assert show.score(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.953, "95.3 %"), (1, "100 %"), (0, "0 %"), (0.99999, "> 99.9 %"), (0.00001, "< 0.1 %"), (None, "–")],
)
def test_a_share_never_rounds_to_all_or_none(value: float | None, shown: str) -> None:
    assert show.percent(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(451_515, "452,000"), (77.5, "78"), (7, "7"), (None, "–")])
def test_an_estimate_is_whole_and_has_three_digits(value: float | None, shown: str) -> None:
    assert show.approximate(value) == shown


def test_chinese_writes_percentages_without_a_blank() -> None:
    with translation.override("zh-hans"):
        assert [show.percent(one) for one in (0.953, 0.00001)] == ["95.3%", "< 0.1%"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.042, "42 ms"),
        (0.675, "0.7 s"),
        (3.21, "3.2 s"),
        (39.4, "39 s"),
        (65, "1 min 5 s"),
        (3725, "1 h 2 min"),
        (200_000, "2 d 7 h"),
        (None, "–"),
        (59.99, "1 min"),
        (3600, "1 h"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(seconds: float | None, shown: str) -> None:
    assert show.duration(seconds) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (999, "999 B"), (1234, "1.2 kB"), (1_234_567, "1.2 MB"), (999_960, "1 MB"), (4e12, "4 TB")],
)
def test_bytes_are_shown_in_decimal_units(size: float, shown: str) -> None:
    assert show.filesize(size) == shown


@pytest.mark.parametrize(("language", "shown"), [("en", "12,345"), ("zh-hans", "12,345")])
def test_thousands_are_divided(language: str, shown: str) -> None:
    with translation.override(language):
        assert show.number(12345) == shown


def test_a_moment_is_utc_for_the_browser_to_localise() -> None:
    when = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
    assert (
        show.moment(when)
        == '<time datetime="2026-05-04T03:02:01+00:00" data-local>2026-05-04 03:02 UTC</time>'
    )


@pytest.mark.parametrize(
    ("ago", "words"), [(5, "just now"), (60, "1 minute ago"), (7300, "2 hours ago"), (200_000, "2 days ago")]
)
def test_how_long_ago_is_reported_in_one_unit(ago: int, words: str) -> None:
    assert words in show.since(timezone.now() - timedelta(seconds=ago))


def test_a_state_keeps_its_code_for_the_shape_and_shows_a_word() -> None:
    badge = show.state_badge("no_score")
    assert badge.startswith('<span class="state" data-state="no_score"><svg class="icon"')
    assert badge.endswith("</svg>no score</span>")


def test_a_states_word_is_escaped() -> None:
    assert "&lt;b&gt;" in show.state_badge("error", "<b>")
