"""Refuse metrics whose templates or scripts hold a text of a row of their test."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from datasets.models import Row, VersionState
from datasets.selectors import versions_of
from judging.core.leaks import first_leak, places_of_texts
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
from judging.records.row_texts import texts_of_rows
from judging.trust.answers import row_keys
from judging.trust.models import SealedTest
from judging.trust.services import rows_of_test

BEGINNING = 40  # characters of the stretch that the message quotes


def refuse_test_texts(metric: Metric, definition: MetricDefinition) -> None:
    """Raise ValidationError with the place if a text of a test row of the metric stands in its texts."""
    rows: list[str] | None = None
    for place, number, text in places_of_texts(definition):
        if not text.strip():
            continue
        rows = list(_texts_of_tests(metric)) if rows is None else rows
        if stretch := first_leak(text, rows):
            raise ValidationError(_sentence(place, number) % {"n": number, "text": stretch[:BEGINNING]})


def _sentence(place: str, number: int) -> str:
    sentences = {
        "template": _(
            "The prompt template of judge %(n)s holds a text of a test row: “%(text)s…”. Take it out."
        ),
        "system_prompt": _(
            "The system prompt of judge %(n)s holds a text of a test row: “%(text)s…”. Take it out."
        ),
        "script": _("Script %(n)s holds a text of a test row: “%(text)s…”. Take it out."),
        "rules": _("The rule program holds a text of a test row: “%(text)s…”. Take it out."),
    }
    return sentences[place]


def _texts_of_tests(metric: Metric) -> Iterator[str]:
    """Questions, references and answers of the rows of the metric's tests, in every version of the data: a new version
    keeps the test, and may change a row's texts."""
    tests = SealedTest.objects.filter(split__metric=metric).select_related("split__dataset")
    for test in tests:
        tested = rows_of_test(test)
        for version in versions_of(test.split.dataset).filter(state=VersionState.READY):
            keys = row_keys(version, by_id=test.split.by_id)[0]
            lines = [line for line, key in keys.items() if key in tested]
            yield from texts_of_rows(Row.objects.filter(version=version, line__in=lines), version.format)
