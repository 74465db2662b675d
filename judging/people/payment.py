"""The payment sheet of a study: a row for each rater and day, as CSV or Excel."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from django.utils.translation import gettext as _

from evalsite.rounding import rounded
from evalsite.table_files import Sheet, csv_of, xlsx_of
from judging.core.people.work import Category, WorkDay
from judging.people.models import Evaluation, EvaluationRater
from judging.people.work import work_of

COUNTED: tuple[Category, ...] = ("items", "extra", "set_aside", "gold", "training", "repeats")
FURTHER: tuple[Category, ...] = ("skips", "changes", "undone", "imported")
COLUMNS = (
    *("rater", "day", "rated", *COUNTED, "gold_hits", *FURTHER),
    *("active_minutes", "sessions"),
)
"""`rated` is the sum of the columns after it up to `repeats`."""
FORMS = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def rater_days(evaluation: Evaluation) -> list[tuple[EvaluationRater, WorkDay]]:
    """Each rater's days of work in the site's time zone, former raters too."""
    work = work_of(evaluation)
    raters = EvaluationRater.objects.filter(evaluation=evaluation).select_related("user").order_by("pk")
    return [(rater, day) for rater in raters for day in work.get(rater.pk, ())]


def payment_row(rater: EvaluationRater, day: WorkDay, *, names: bool = False) -> list[Any]:
    """The cells as in COLUMNS. `names`: the user name instead of the pseudonym."""
    name = rater.user.username if names else rater.pseudonym
    counts = [day.counts[category] for category in COUNTED]
    further = [day.counts[category] for category in FURTHER]
    minutes = float(rounded(day.active / 60, 1))
    return [name, day.day.isoformat(), day.rated, *counts, day.gold_hits, *further, minutes, day.sessions]


def payment_file(evaluation: Evaluation, form: str, *, names: bool = False) -> Iterator[bytes]:
    """The sheet as `csv` or `xlsx`; a cell that a spreadsheet would take for a formula is text."""
    rows = [payment_row(*rater_day, names=names) for rater_day in rater_days(evaluation)]
    if form == "csv":
        return csv_of(COLUMNS, rows)
    dated = [[name, date.fromisoformat(day), *counts] for name, day, *counts in rows]
    return xlsx_of(Sheet(_("Payment"), COLUMNS, dated))
