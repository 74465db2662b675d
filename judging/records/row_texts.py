"""What of a row may stand in no prompt: its question, its reference and the answers to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from django.db.models import QuerySet

from datasets.core.formats import Format
from datasets.core.variables import messages_of, response_data
from datasets.models import Response, Row
from datasets.versions.references import reference_of


def texts_of_rows(rows: QuerySet[Row], fmt: str) -> Iterator[str]:
    """The texts of rows of one version."""
    for row in rows:
        messages = messages_of(json.loads(row.raw), cast(Format, fmt))
        yield from (str(message["content"] or "") for message in messages if message["role"] != "system")
        if reference := reference_of(row, fmt):
            yield reference
    for raw in Response.objects.filter(row__in=rows.values("pk")).values_list("raw", flat=True):
        if raw:
            yield str(response_data(raw)["content"] or "")
