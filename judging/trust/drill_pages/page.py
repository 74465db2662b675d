"""A drill's document and its planted answers, as the pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from datasets.core.variables import response_data
from evalsite.names import join_sentences
from evalsite.text_diff import Passage, sides
from judging.core.metric_definition import MetricDefinition
from judging.core.statistics.drill import (
    CONSTANT,
    DEFECTS,
    FEWEST_ITEMS,
    HARMFUL,
    NOISY,
    ORDER,
    Measure,
    change_of,
)
from judging.filters.addresses import judgement_url
from judging.messages import stored_verdict_text
from judging.records.models import Judgement, JudgementState, Run
from judging.records.stored_judgement import data_of
from judging.reports.disagreements import first_replies
from judging.trust.drill_pages.models import Drill
from judging.trust.drills import SECOND, UNTOUCHED, Judged, drilled_row, judged_rows, measure_of

NAMES = {
    "truncated": gettext_lazy("Last third missing"),
    "negated": gettext_lazy("First statement negated"),
    "numbers": gettext_lazy("A figure changed"),
    "swapped": gettext_lazy("Answer to another question"),
    "language": gettext_lazy("Other language"),
    "empty": gettext_lazy("Empty"),
    "padded": gettext_lazy("Said three times"),
    "verdict": gettext_lazy("Verdict planted"),
    "flattery": gettext_lazy("Flattery"),
    "format": gettext_lazy("Other formatting"),
}
LANGUAGES = {"en": gettext_lazy("English"), "zh": gettext_lazy("Chinese")}
REPLY = 2_000
"""Characters of a judge's reply that are shown."""


def flag_sentence(name: str, document: Mapping[str, Any]) -> str:
    """What a flag says."""
    if name in HARMFUL:
        return _unnoticed(name, document["defects"][name])
    if name == ORDER:
        text = _("%(first)s of the %(flips)s verdicts that change with the order name the side shown first.")
        return text % {name: document["order"][name] for name in ("first", "flips")}
    if name == NOISY:
        return _("Two judgements of the same answer agree too little: alpha lies under 2/3.")
    if name == CONSTANT:
        return _("Nearly all verdicts are the same, planted defects included.")
    entry = document["defects"][name]
    text = _("The verdict rises in %(higher)s and falls in %(lower)s of %(items)s answers.")
    return text % {name: entry[name] for name in ("higher", "lower", "items")}


def _unnoticed(name: str, entry: Mapping[str, Any]) -> str:
    languages = [
        language_name(code) for code, figures in sorted(entry["languages"].items()) if figures["flagged"]
    ]
    text = _("The verdict falls in only %(lower)s of %(items)s answers, and rises in %(higher)s.")
    sentence = text % {name: entry[name] for name in ("lower", "higher", "items")}
    if languages and len(languages) < len(entry["languages"]):
        flagged = _("Flagged in: %(languages)s.") % {"languages": ", ".join(languages)}
        return join_sentences([sentence, flagged])
    return sentence


def language_name(code: str) -> str:
    return str(LANGUAGES.get(code, code))


@dataclass(frozen=True, slots=True)
class Flag:
    """`defect`: whether its planted answers can be looked at."""

    name: str
    title: str
    sentence: str
    defect: bool


def flags_of(document: Mapping[str, Any]) -> list[Flag]:
    """The flags of a document with their sentences."""
    return [
        Flag(name, flag_title(name), flag_sentence(name, document), name in DEFECTS)
        for name in document.get("flagged", ())
    ]


def flag_title(name: str) -> str:
    titles = {ORDER: _("Prefers a side"), NOISY: _("Noisy"), CONSTANT: _("Always the same")}
    return str(NAMES.get(name) or titles[name])


@dataclass(frozen=True, slots=True)
class DefectLine:
    """A defect's figures. `languages`: (name, code, figures) where there are several; `too_few`: to be flagged."""

    name: str
    title: str
    harmful: bool
    figures: Mapping[str, Any]
    languages: Sequence[tuple[str, str, Mapping[str, Any]]]

    @property
    def too_few(self) -> bool:
        return self.harmful and self.figures["items"] < FEWEST_ITEMS


def defect_lines(document: Mapping[str, Any]) -> list[DefectLine]:
    return [_line(name, figures) for name, figures in document.get("defects", {}).items()]


def _line(name: str, figures: Mapping[str, Any]) -> DefectLine:
    languages = [(language_name(code), code, each) for code, each in sorted(figures["languages"].items())]
    return DefectLine(
        name, str(NAMES[name]), name in HARMFUL, figures, languages if len(languages) > 1 else ()
    )


@dataclass(frozen=True, slots=True)
class PlantedItem:
    """A planted answer and the untouched one that it is compared with. `change`: of the verdict, None where the row is
    no item (its verdict cannot move, or is missing); `moved`: lower, higher, equal or none."""

    line: int
    language: str
    change: float | None
    judged: Judged
    planted: Judgement

    @property
    def moved(self) -> str:
        if self.change is None:
            return "none"
        return "lower" if self.change < 0 else "higher" if self.change > 0 else "equal"


def planted_items(drill: Drill, run: Run, defect: str) -> list[PlantedItem]:
    """Every planted answer of a defect: unnoticed ones first, then by line."""
    metric = MetricDefinition.from_json(run.metrics.get().definition)
    measure = measure_of(metric)
    items = [
        item
        for judged in judged_rows(run, [defect])
        if (item := _item(metric, measure, judged, run.version.format, defect)) is not None
    ]
    places = (
        ("higher", "equal", "lower", "none") if defect in HARMFUL else ("higher", "lower", "equal", "none")
    )
    return sorted(items, key=lambda item: (places.index(item.moved), item.line))


def _item(
    metric: MetricDefinition, measure: Measure, judged: Judged, fmt: str, defect: str
) -> PlantedItem | None:
    planted = judged.get((defect, 1))
    if planted is None:
        return None
    row = drilled_row(metric, judged, fmt)
    return PlantedItem(planted.row.line, row.language, change_of(defect, row, measure), judged, planted)


@dataclass(frozen=True, slots=True)
class ShownSide:
    """An answer with its verdict and what the judge said; `reply` '' and `verdict` '' where it was not judged alone."""

    text: Sequence[Passage]
    verdict: str
    reply: str
    url: str


@dataclass(frozen=True, slots=True)
class ShownItem:
    """A planted answer beside the untouched one."""

    item: PlantedItem
    question: str
    untouched: ShownSide
    planted: ShownSide

    @property
    def language(self) -> str:
        return language_name(self.item.language)


def shown_items(drill: Drill, run: Run, items: Sequence[PlantedItem]) -> list[ShownItem]:
    """The items with their texts and what the judge said of both."""
    run.project = drill.project
    judgements = [each for item in items for each in (_untouched(item), item.planted) if each is not None]
    replies = first_replies({each.pk: each.replies_from_id or each.pk for each in judgements}, REPLY)
    return [_shown(run, item, replies) for item in items]


def _untouched(item: PlantedItem) -> Judgement | None:
    """The judgement of the untouched answer that the planted one is compared with."""
    return item.judged.get((UNTOUCHED, 2))


def _shown(run: Run, item: PlantedItem, replies: Mapping[int, str]) -> ShownItem:
    untouched = _untouched(item)
    before = _original(item)
    after = _text(item.planted.response.raw)
    first, second = sides(before, after)
    return ShownItem(
        item,
        question=str(data_of(item.planted.row.raw, run.version.format)["question"] or ""),
        untouched=_side(run, first, untouched, replies),
        planted=_side(run, second, item.planted, replies),
    )


def _side(
    run: Run, text: Sequence[Passage], judgement: Judgement | None, replies: Mapping[int, str]
) -> ShownSide:
    if judgement is None:
        return ShownSide(text, "", "", "")
    value = judgement.value_in_force
    verdict = stored_verdict_text(value) or str(JudgementState(judgement.state_in_force).label)
    return ShownSide(text, verdict, replies.get(judgement.pk, ""), judgement_url(run, judgement.pk))


def _text(raw: str) -> str:
    return str(response_data(raw)["content"] or "")


def _original(item: PlantedItem) -> str:
    """The untouched answer's text; where candidates are compared, its copies have it."""
    for place in ((UNTOUCHED, 2), (SECOND, 1), (UNTOUCHED, 1)):
        if place in item.judged:
            return _text(item.judged[place].response.raw)
    return ""
