"""Headlines as sentences, the same on pages, in lists and commands."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils.translation import override

from evalsite.accounts.models import Project
from judging.core.statistics.headline import Gap, Headline
from judging.reports.figures import for_page
from judging.reports.headline import sentence, sentence_html, short_sentence
from judging.reports.labels import ValueFormat
from judging.reports.outcomes import outcome_views
from judging.reports.page.report_view import report_view
from judging.reports.services import report_document
from judging.reports.text_report import plain_report
from tests.judging.reports.cast import a_judged_run, by_name
from tests.make import a_version

LEADS = Headline(
    "m", "leads", "leads", ["alpha"], kind="number", mean=7.0, low=6.0, high=8.0, others=["beta", "gamma"]
)
TIED = replace(LEADS, code="tied", standing="tied", candidates=["alpha", "beta"], others=["gamma"])
EQUAL = replace(TIED, code="equal", standing="equal", candidates=["a", "b", "c", "d"], others=[])
SINGLE = replace(LEADS, code="nothing", standing="nothing", others=[])
DENIED = replace(LEADS, code="contradicted", gap=Gap(-0.6, -1.0, -0.2, 40))
OVERRATED = replace(DENIED, gap=Gap(-0.6, -1.0, -0.2, 20, "alpha"))
WINS = replace(LEADS, by="people", mean=0.65, low=0.5, high=0.8)
WINS_OF_TWO = replace(WINS, others=["beta"])


@pytest.mark.parametrize(
    ("headline", "text"),
    [
        (LEADS, "alpha leads with 7.00 [6.00, 8.00]"),
        (
            replace(LEADS, value="corrected"),
            "alpha leads with 7.00 [6.00, 8.00], corrected by people's ratings",
        ),
        (
            replace(LEADS, value="corrected", corrected_by="licence"),
            "alpha leads with 7.00 [6.00, 8.00], corrected with the test of the judge's licence",
        ),
        (
            replace(DENIED, value="corrected", corrected_by="licence"),
            "People contradict the judge: they rate the same 40 answers 0.60 [0.20, 1.00] lower. Corrected with the "
            "test of its licence, alpha is first with 7.00 [6.00, 8.00]",
        ),
        (TIED, "alpha and beta can't be told apart; the highest value is 7.00 [6.00, 8.00]"),
        (EQUAL, "a, b and 2 others are equal with 7.00 [6.00, 8.00]"),
        (SINGLE, "alpha scores 7.00 [6.00, 8.00]"),
        (Headline("m", "nothing", "nothing", []), "No scores yet"),
        (
            DENIED,
            "People contradict the judge: they rate the same 40 answers 0.60 [0.20, 1.00] lower. By the judge "
            "alone, alpha is first with 7.00 [6.00, 8.00]",
        ),
        (
            replace(DENIED, value="corrected", gap=Gap(0.6, 0.2, 1.0, 40)),
            "People contradict the judge: they rate the same 40 answers 0.60 [0.20, 1.00] higher. Corrected by "
            "their ratings, alpha is first with 7.00 [6.00, 8.00]",
        ),
        (
            OVERRATED,
            "People contradict the judge: they rate the same 20 answers of alpha 0.60 [0.20, 1.00] lower. By the "
            "judge alone, alpha is first with 7.00 [6.00, 8.00]",
        ),
        (
            WINS,
            "alpha leads: it wins 65.0 % [50.0, 80.0] of its comparisons with all others, judged by people",
        ),
        (
            WINS_OF_TWO,
            "alpha leads: it wins 65.0 % [50.0, 80.0] of its comparisons with beta, judged by people",
        ),
        (
            replace(TIED, by="people", mean=0.65, low=0.5, high=0.8),
            "alpha and beta can't be told apart: alpha wins 65.0 % [50.0, 80.0] of its comparisons with all others, "
            "judged by people",
        ),
        (
            replace(WINS, by="qwen", code="contradicted", gap=Gap(0.5, 0.1, 0.9, 9)),
            "People contradict the judge on the 9 comparisons that both judged. By qwen alone, alpha is first: it "
            "wins 65.0 % [50.0, 80.0] of its comparisons",
        ),
    ],
)
def test_a_headline_is_a_sentence(headline: Headline, text: str) -> None:
    assert sentence(headline, ValueFormat(rate=bool(headline.by))) == text


def test_names_are_escaped_on_pages_and_only_there() -> None:
    headline = replace(LEADS, candidates=["<i>{x}"])
    assert sentence(headline, ValueFormat()).startswith("<i>{x} leads")
    assert '<b class="whole">&lt;i&gt;{x}</b> leads' in sentence_html(headline, ValueFormat(), {"<i>{x}": 1})


def test_a_value_without_an_interval_stands_alone() -> None:
    headline = Headline("Quality", "nothing", "nothing", ["llama3"], mean=5.0)
    assert sentence(headline, ValueFormat()) == "llama3 scores 5.00"


def test_lists_show_headlines_in_short() -> None:
    shown = [short_sentence(one) for one in (LEADS, TIED, EQUAL, SINGLE, DENIED)]
    assert shown == [
        "alpha leads",
        "alpha and beta can't be told apart",
        "a and 3 others are equal",
        "alpha",
        "People contradict the judge",
    ]


def test_it_is_in_the_reader_s_language() -> None:
    with override("zh-hans"):
        assert sentence(TIED, ValueFormat()) == "alpha 和 beta 无显著差异，最高为 7.00 [6.00, 8.00]"


@pytest.mark.django_db
def test_page_list_command_and_document_say_the_same(project: Project) -> None:
    run = a_judged_run(a_version(project, rows=4), by_name(alpha=5, beta=5))
    for_page(run)
    document, view = report_document(run), report_view(run)
    assert document["headline"] == [
        {
            "metric": "quality",
            "text": "alpha and beta are equal with 5.00 [2.39, 8.00]",
            "code": "equal",
            "candidates": ["alpha", "beta"],
            "value": "raw",
        }
    ]
    text = document["headline"][0]["text"]
    assert view is not None
    assert (
        view.metrics[0]
        .card.lead.replace("<b>", "")
        .replace("</b>", "")
        .startswith("alpha and beta are equal")
    )
    assert outcome_views([run])[run.pk].sentence == text
    assert f"\n{text}.\n" in plain_report(document)
