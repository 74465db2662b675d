"""One way to round what people read, and nothing beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from evalsite.rounding import adding_up, fixed, fixed_percent, rounded, shortest, significant
from evalsite.templatetags.show import money, percent, score, share
from judging.core.charts.axis import tick_text
from judging.core.values import value_texts
from judging.reports.labels import ValueFormat, decimal, interval, kappa

HERE = Path(settings.BASE_DIR)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.475, "5.48"), (5.465, "5.46"), (0.125, "0.12"), (0.135, "0.14"), (-5.475, "-5.48"), (2.675, "2.68"),
        (-0.001, "0.00"), (7, "7.00"), (1e22, "10000000000000000000000.00"), (1e-300, "0.00"),
    ],
)  # fmt: skip
def test_a_number_is_rounded_as_it_is_written(value: float, text: str) -> None:
    assert fixed(value, 2) == text


@pytest.mark.parametrize(
    ("share_of", "text"), [(0.5475, "54.8"), (0.5465, "54.6"), (0.285, "28.5"), (1, "100.0"), (0.0005, "0.0")]
)
def test_a_share_is_rounded_as_it_is_written(share_of: float, text: str) -> None:
    assert fixed_percent(share_of, 1) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1234"), (1235.5, "1236"), (0.00012345, "0.0001234"), (9.9996, "10"), (5, "5"), (0, "0"),
     (1.25e10, "1.25e+10"), (3.2e-7, "3.2e-07"), (-0.5, "-0.5")],
)  # fmt: skip
def test_significant_digits_are_rounded_alike(value: float, text: str) -> None:
    assert significant(value, 4) == text


def test_trailing_zeros_go_only_where_they_may() -> None:
    assert (shortest(7.5, 3), shortest(100, 1), fixed(7.5, 3)) == ("7.5", "100", "7.500")


def test_pages_charts_and_commands_round_alike() -> None:
    texts = (decimal(5.475, 2), ValueFormat().text(5.475), kappa(5.475), score(5.475, 2), tick_text(5.475))
    assert texts == ("5.48", "5.48", "5.48", "5.48", "5.475")
    assert interval(5.465, 5.475, 2) == "[5.46, 5.48]"
    assert (ValueFormat(rate=True).text(0.5475), percent(0.5475), share(0.5475)) == ("54.8 %",) * 3


def test_shares_of_a_column_have_equal_decimals() -> None:
    assert [share(one) for one in (1, 0.9999, 0.5, 0.0001)] == ["100.0 %", "> 99.9 %", "50.0 %", "< 0.1 %"]


@pytest.mark.parametrize(
    ("parts", "total", "texts"),
    [
        ((1 / 3, 1 / 3, 1 / 3), 1, ["0.34", "0.33", "0.33"]),
        ((0.005, 0.005), 0.01, ["0.01", "0.00"]),
        ((-0.004, -0.004, 0.5), 0.492, ["0.00", "-0.01", "0.50"]),
        ((-0.125, -0.125), -0.25, ["-0.12", "-0.13"]),
        ((0.125,), 0.125, ["0.12"]),
        ((), 0, []),
    ],
)
def test_parts_are_rounded_so_that_they_add_up(
    parts: tuple[float, ...], total: float, texts: list[str]
) -> None:
    found = adding_up(parts, total, 2)
    assert [str(one) for one in found] == texts
    assert sum(found) == rounded(total, 2)


def test_a_large_number_keeps_its_thousands() -> None:
    assert fixed(1234567.895, 2, thousands=True) == "1,234,567.90"
    assert rounded(1e300) == 10**300


# —— nothing else rounds

MAY_ROUND = {
    "evalsite/rounding.py": "this is it",
    "datasets/views/version.py": "a moment in an address",
    "judging/core/judges/demo.py": "a demo judge makes up whole scores",
    "judging/core/judges/probe.py": "seconds of a call, stored",
    "judging/core/metric_definition.py": "a number of calls",
    "judging/core/people/assignment.py": "a number of items",
    "judging/core/people/criteria.py": "steps of a scale",
    "judging/core/sandbox/session.py": "seconds of a limit",
    "judging/core/sandbox/worker.py": "seconds of a limit",
    "judging/core/statistics/carried_over.py": "a number of answers",
    "judging/core/statistics/licence.py": "a number of items",
    "judging/core/statistics/means.py": "a number of rows",
    "judging/core/statistics/numeric.py": "multiples of a round step",
    "judging/endpoints/connection_test.py": "seconds of a call, stored",
    "evalsite/webhooks/sending.py": "seconds of a delivery, stored",
    "judging/people/services.py": "a number of repeats",
    "judging/people/views/gold.py": "a number in a form",
    "judging/core/people/promise.py": "a number of items",
    "judging/core/statistics/watch.py": "numbers of sentinels",
    "judging/people/inviting/links.py": "minutes to wait",
    "judging/people/change_api.py": "a percentage that is stored as a share",
    "judging/people/qualification/views.py": "numbers in a form, and of raters",
    "judging/people/views/change.py": "a number in a form",
    "judging/trust/drill_pages/sources.py": "a number of calls",
    "judging/trust/succession/forms.py": "a number in a form",
    "judging/trust/succession/services.py": "a number of calls",
    "judging/trust/promise.py": "a number of verdicts",
    "judging/trust/suggestions.py": "a number of calls",
    "judging/people/views/adjudication.py": "a number in a form",
    "judging/reports/services.py": "millionths of money as a number",
    "judging/engine/budget.py": "a number of tokens",
    "judging/runs/rerun/views.py": "numbers of calls and tokens",
    "judging/engine/batches.py": "millionths of money",
    "judging/engine/write_buffer.py": "millionths of money",
    "judging/status/prometheus.py": "all digits",
    **dict.fromkeys(
        (
            "judging/core/charts/histograms.py",
            "judging/core/charts/intervals.py",
            "judging/core/charts/scatter.py",
            "judging/core/charts/series.py",
            "judging/core/charts/svg.py",
            "judging/reports/comparison/views.py",
            "judging/reports/people_result.py",
            "judging/reports/page/side_by_side_view.py",
        ),
        "places in a drawing",
    ),
}
PRECISION = re.compile(r"^[-+ #0-9,_]*(?:[.][0-9{].*)?[fFgGeE%]$|[.]\{")
FORMAT = re.compile(r"%[-+ 0-9]*(?:[.][0-9]+[fge]|g\b)|\{[^{}]*:[-+,0-9]*(?:[.][0-9]+)?[fge%]\}")


def rounding_in(tree: ast.AST) -> Iterator[int]:
    """The lines that round a number in another way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            spec = "".join(
                part.value if isinstance(part, ast.Constant) else "{"
                for part in node.format_spec.values  # type: ignore[attr-defined]
            )
            if PRECISION.search(spec):
                yield node.lineno
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and FORMAT.search(node.value)
        ) or (
            isinstance(node, ast.Call)
            and (
                (isinstance(node.func, ast.Name) and node.func.id in ("round", "floatformat"))
                or (isinstance(node.func, ast.Attribute) and node.func.attr == "quantize")
            )
        ):
            yield node.lineno


def test_only_one_module_rounds_what_people_read() -> None:
    found = {
        f"{path.relative_to(HERE)}:{line}"
        for app in ("evalsite", "datasets", "judging")
        for path in sorted((HERE / app).rglob("*.py"))
        if str(path.relative_to(HERE)) not in MAY_ROUND and "migrations" not in path.parts
        for line in rounding_in(ast.parse(path.read_text()))
    }
    assert found == set()


def test_every_exception_is_still_one() -> None:
    rounding = {name for name in MAY_ROUND if any(rounding_in(ast.parse((HERE / name).read_text())))}
    assert rounding == set(MAY_ROUND)


@pytest.mark.parametrize(
    "source",
    ["f'{x:.2f}'", "f'{x:+.3g}'", "f'{x:g}'", "f'{x:.0%}'", "f'{x:.{n}f}'", "'{:g}'.format(x)",
     "round(x)", "'%.2f' % x", "'{:.1f}'.format(x)", "x.quantize(y)"],
)  # fmt: skip
def test_other_ways_are_seen(source: str) -> None:
    assert list(rounding_in(ast.parse(source))) == [1]


def test_amounts_of_money_have_the_same_decimals_everywhere() -> None:
    assert [money(one) for one in (0, 0.01235, 7, 1234.5)] == ["0.0000", "0.0124", "7.0000", "1,234.5000"]
    other = re.compile(r"(money|spent|budget|price\w*)\|(score|number)")
    pages = (HERE / "templates").rglob("*.html")
    assert [page.name for page in pages if other.search(page.read_text())] == []


def test_single_scores_of_a_column_have_equal_decimals() -> None:
    assert value_texts([4, 4.5, 13 / 3]) == ["4.000", "4.500", "4.333"]
    assert value_texts([4, 5.0, True, "fact", None]) == ["4", "5", "true", "fact", ""]


def test_a_small_score_of_a_declared_scale_has_the_decimals_of_its_column() -> None:
    values = ValueFormat.of("number", 1, 5)
    assert [values.text(0.004), values.signed(-0.004), values.interval(-0.004, 0.126)] == [
        "0.00", "0.00", "[0.00, 0.13]",
    ]  # fmt: skip
    assert ValueFormat.of("number", None, None).text(0.004) == "0.004"


def test_templates_round_by_the_filters_of_show_only() -> None:
    other = re.compile(r"\|\s*(floatformat|widthratio|stringformat:['\"][^'\"]*\.[0-9]+[fge])")
    found = [
        path.name
        for path in (HERE / "templates").rglob("*.html")
        for line in path.read_text().splitlines()
        if other.search(line) and "hx-get" not in line  # a moment in an address
    ]
    assert found == []


def test_scripts_of_pages_get_their_figures_as_texts() -> None:
    """But for the size of a file that is not sent yet, and for what is left of an upload."""
    other = re.compile(r"toFixed|toPrecision|NumberFormat|Math\.round")
    found = {path.name for path in (HERE / "static/js").rglob("*.js") if other.search(path.read_text())}
    assert found == {"drop.js", "upload.js", "reading.js"}
