"""Estimates shown before a run starts."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evalsite.accounts.models import Project
from judging.core.builtin import builtin
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.models import Endpoint
from judging.runs.preflight import CallCost, calls_a_second, difference, lint_notes, preflight
from judging.runs.selectors import MetricChoice, cost_of
from tests.make import a_metric, a_version

pytestmark = pytest.mark.django_db
FIELDS = "# DSL\n@all:exact_match\n@aggregate:mean\n@format:JSON"


@pytest.fixture
def endpoint(project: Project) -> Endpoint:
    prices = {"input_price": Decimal(2), "output_price": Decimal(8), "currency": "CNY"}
    return Endpoint.objects.create(
        project=project, name="j", url="http://h/v1", model="m", concurrency=10, **prices
    )


def test_cost_time_and_power_follow_from_the_rows(project: Project, endpoint: Endpoint) -> None:
    version = a_version(project, rows=100)
    version.candidates.update(rows=100, responses=100)
    choice = MetricChoice(None, a_metric("", endpoint=endpoint.pk), [])
    found = preflight(version, [choice], cost_of(version, list(version.candidates.all()), [choice], None))
    assert found is not None
    assert (found.written, found.seconds, found.currency) == (200 * 300, 200 / (10 / 5), "CNY")
    assert found.money == pytest.approx((found.read * 2 + found.written * 8) / 1e6)
    half = preflight(
        version, [choice], cost_of(version, list(version.candidates.all()), [choice], None), batched=True
    )
    assert half is not None
    assert half.money == pytest.approx(found.money / 2)
    ((name, points),) = found.differences  # (t + t) × 9/4 / √100
    assert (name, round(points, 2)) == ("quality", 0.64)


def test_passes_have_no_difference_in_points() -> None:
    assert difference(MetricChoice(None, a_metric("", gives="pass_fail", parse="bool"), []), 100) is None


@pytest.mark.parametrize("missing", ["input_price", "output_price"])
def test_an_unknown_price_is_unknown_and_not_0(project: Project, endpoint: Endpoint, missing: str) -> None:
    Endpoint.objects.update(**{missing: None})
    version = a_version(project)
    version.candidates.update(rows=3, responses=3)
    choice = MetricChoice(None, a_metric("", endpoint=endpoint.pk), [])
    found = preflight(version, [choice], cost_of(version, list(version.candidates.all()), [choice], None))
    assert found is not None
    assert found.money is None


def test_the_strictest_limit_decides_how_long_it_takes(endpoint: Endpoint) -> None:
    taken = CallCost(900, 100, 2.0, True)
    assert calls_a_second(endpoint, taken) == 5
    endpoint.requests_per_minute = 120
    assert calls_a_second(endpoint, taken) == 2
    endpoint.tokens_per_minute = 60_000
    assert calls_a_second(endpoint, taken) == 1


def test_nothing_chosen_takes_nothing(project: Project) -> None:
    version = a_version(project)
    assert preflight(version, [], cost_of(version, [], [], None)) is None


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        (
            a_metric("http://h/v1", template=builtin("single_turn_reference.en").source),
            "3 rows have no reference, but the template uses one. The judge may give no score there.",
        ),
        (
            MetricDefinition(name="fields", max_score=5, rules=FIELDS),
            "3 rows have no reference to compare with, so their answers can't be scored.",
        ),
    ],
)
def test_a_metric_that_needs_references_warns_where_rows_have_none(
    project: Project, metric: MetricDefinition, sentence: str
) -> None:
    (note,) = lint_notes(a_version(project), [MetricChoice(None, metric, [])])
    assert (note.errors, note.warnings, note.sentences) == (0, 1, (sentence,))


def test_rules_that_compare_with_constants_need_no_references(project: Project) -> None:
    metric = MetricDefinition(name="length", max_score=5, rules="# DSL\n_:length[..100]\n@format:text")
    assert lint_notes(a_version(project), [MetricChoice(None, metric, [])]) == []
