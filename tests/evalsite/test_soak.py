"""The soak test's form handling, and what it reports as growth or an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.soak.browser import Unexpected, form_in
from tools.soak.measure import growth, log_errors
from tools.soak.people import PEOPLE

PAGE = """
<form id="other" action="/other/"><input name="q" type="search"></form>
<form id="run" action="/runs/new/">
  <input type="hidden" name="csrfmiddlewaretoken" value="token"><input type="submit" name="go" value="Go">
  <select name="version" form="other"><option value="9" selected>nine</option></select>
  <select name="priority"><option value="1">low</option><option value="2" selected>normal</option></select>
  <input type="checkbox" name="candidates" value="3" checked><input type="checkbox" name="candidates" value="4" checked>
  <input type="checkbox" name="unused">
  <input type="radio" name="rows" value="few"><input type="radio" name="rows" value="all" checked>
  <textarea name="note">two
lines</textarea>
</form>
<form method="dialog"><button>Close</button></form>
"""


def test_a_form_is_sent_with_what_a_browser_would_send() -> None:
    form = form_in(PAGE, "run")
    assert form.action == "/runs/new/"
    assert form.fields == {
        "csrfmiddlewaretoken": ["token"],
        "priority": ["2"],
        "candidates": ["3", "4"],
        "rows": ["all"],
        "note": ["two\nlines"],
    }
    assert form.choices == {"rows": ["few", "all"]}


def test_a_page_without_the_form_is_an_error() -> None:
    with pytest.raises(Unexpected, match="there is no form 'verdict', only other, run"):
        form_in(PAGE, "verdict")


@pytest.mark.parametrize(
    ("memory", "grows"),
    [(lambda minute: 100 + minute, 40), (lambda minute: 100 + min(minute, 10), 0), (lambda minute: 100, 0)],
    ids=["all the time", "while it warms up", "not at all"],
)
def test_growth_is_what_is_left_after_the_warm_up(memory, grows) -> None:  # type: ignore[no-untyped-def]
    samples = [{"at": minute * 60.0, "memory": {"web": memory(minute)}} for minute in range(61)]
    assert growth(samples, "memory", "web") == pytest.approx(grows)


def test_errors_in_the_log_are_found_whatever_wrote_them(tmp_path: Path) -> None:
    lines = [
        json.dumps({"time": "t", "level": level, "logger": "judging", "message": level.lower()})
        for level in ("INFO", "WARNING", "ERROR")
    ]
    log = tmp_path / "site.log"
    log.write_text("\n".join([*lines, "  evalsite is ready", "Traceback (most recent call last):"]))
    assert list(log_errors(log)) == ["t judging: error", "Traceback (most recent call last):"]


def test_the_documented_capacity_is_what_the_soak_does() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text()
    people = [f"| {count} {kind.__name__.lower()}s |" for kind, (count, _pause) in PEOPLE.items()]
    assert [line for line in people if line not in guide] == []
