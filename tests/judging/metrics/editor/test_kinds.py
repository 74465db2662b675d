"""The metric editor asks first what the judge gives."""

from __future__ import annotations

import re

import pytest

from evalsite.accounts.models import Project, User
from judging.core.metric_definition import Label, MetricDefinition
from judging.endpoints.models import Endpoint
from judging.metrics.editor.kind_fields import check_labels
from judging.metrics.models import Metric
from judging.metrics.selectors import newest_version
from tests.conftest import ClientOf
from tests.judging.metrics.conftest import form_of

NEW = "/p/physics/metrics/new/"
LABELS = {
    "labels-label": ["faithful", "made up", ""],
    "labels-description": ["all is in the text", "", ""],
    "labels-value": ["1", "0", ""],
}


def saved() -> MetricDefinition:
    return MetricDefinition.from_json(newest_version(Metric.objects.get()).definition)


def checked(html: str) -> str:
    (value,) = re.findall(r'name="gives" value="(\w*)"[^>]* checked', html)
    return str(value)


def new(live: Endpoint, **more: object) -> dict[str, object]:
    return form_of(None, **{"judge-0-endpoint": live.pk, **more})


def test_pass_or_fail_is_chosen_for_a_new_metric(client_of: ClientOf, alice: User, project: Project) -> None:
    assert checked(client_of(alice).get(NEW, {"start": ""}).text) == "pass_fail"


def test_a_pass_fail_metric_is_saved_as_such(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    client_of(alice).post(NEW, new(live, gives="pass_fail"))
    assert (saved().gives, saved().structured) == ("pass_fail", "auto")


def test_a_category_is_saved_with_its_labels(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    client_of(alice).post(NEW, new(live, gives="category", **LABELS))
    assert saved().labels == (
        Label(label="faithful", description="all is in the text", value=1),
        Label(label="made up", value=0),
    )


def test_a_comparison_with_the_reference_is_on_five_steps(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    client_of(alice).post(NEW, new(live, gives="comparison", **{"judge-0-both_orders": "on"}))
    assert (saved().max_score, saved().judges[0].both_orders) == (5, True)


def test_what_was_typed_for_another_kind_is_shown_again(
    client_of: ClientOf, alice: User, live: Endpoint
) -> None:
    page = client_of(alice).post(NEW, new(live, gives="pass_fail", change="label", step="0.5", **LABELS))
    assert 'value="made up"' in page.text
    assert re.search(r'name="step" value="0.5"', page.text)


def test_a_category_without_labels_is_not_saved(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    page = client_of(alice).post(NEW, new(live, gives="category"))
    assert page.status_code == 422
    assert "at least two labels" in page.text


def test_without_a_script_something_must_be_chosen(client_of: ClientOf, alice: User, live: Endpoint) -> None:
    page = client_of(alice).post(NEW, new(live, gives=""))
    assert page.status_code == 422
    assert "No script returns a value" in page.text


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([("a", "1"), ("b", "")], 0),
        ([("a", ""), ("A", "")], 1),
        ([("a", "one"), ("b", "")], 1),
        ([("a", ""), ("b", ""), ("", "1")], 1),
    ],
)
def test_labels_are_distinct_and_their_values_numbers(rows: list[tuple[str, str]], count: int) -> None:
    typed = [{"label": label, "description": "", "value": value} for label, value in rows]
    assert len(check_labels(typed)) == count
