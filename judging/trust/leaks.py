"""Refuse metrics whose templates or scripts hold a text of a row of their test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from datasets.core.formats import Format
from datasets.core.variables import messages_of, response_data
from datasets.models import Response, Row, Version, VersionState
from datasets.selectors import versions_of
from datasets.versions.references import reference_of
from judging.core.leaks import first_leak, places_of_texts
from judging.core.metric_definition import MetricDefinition
from judging.metrics.models import Metric
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
            yield from _texts_of_lines(version, lines)


def _texts_of_lines(version: Version, lines: list[int]) -> Iterator[str]:
    rows = Row.objects.filter(version=version, line__in=lines)
    for row in rows:
        yield from _texts_of_row(row, version.format)
    for raw in Response.objects.filter(row__in=rows.values("pk")).values_list("raw", flat=True):
        if raw:
            yield str(response_data(raw)["content"] or "")


def _texts_of_row(row: Row, fmt: str) -> Iterator[str]:
    messages = messages_of(json.loads(row.raw), cast(Format, fmt))
    yield from (str(message["content"] or "") for message in messages if message["role"] != "system")
    if reference := reference_of(row, fmt):
        yield reference
