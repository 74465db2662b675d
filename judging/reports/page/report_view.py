"""A run's report for its pages: the document's figures, arranged around the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from datasets.messages import translated
from judging.core.reading.forms import FORMS
from judging.core.statistics.frame import ScaledMetric
from judging.core.statistics.ranking import corrected_under, rank_pairs, ranked, under
from judging.records.models import Run
from judging.records.row_fields import EVERY_ROW
from judging.reports import labels, selectors
from judging.reports.disagreements import strongest
from judging.reports.figures import Figures, RunFigures, for_page, slices_for_page
from judging.reports.guideline_notes import version_sentences
from judging.reports.licence_text import evidence_and_licences, licence_sentence
from judging.reports.links import Links
from judging.reports.page.agreement_view import AgreementView, JudgeAndPeople, agreement_view, points_table
from judging.reports.page.checklist_tables import ChecklistTables, checklist_tables
from judging.reports.page.drawing import agreement_chart, metrics_radar, spread_chart
from judging.reports.page.leaderboard import BoardData, Leaderboard, leaderboard
from judging.reports.page.order_view import OrderView, order_view
from judging.reports.page.pairs import (
    PairMatrix,
    WantedDifference,
    pair_matrix,
    pairs_table,
    wanted_difference,
)
from judging.reports.page.result_card import ResultCard, result_card
from judging.reports.page.side_by_side_view import SideView, side_views
from judging.reports.page.slices_view import SliceLinks, SlicesView, slices_of
from judging.reports.page.tables import (
    Table,
    distribution_table,
    kind_of,
    metrics_table,
    repeats_table,
    shares_table,
    uncertain,
    variance_table,
)
from judging.reports.people_result import CriterionResult, results_of
from judging.reports.rule_lines import left_out_lines, rule_table
from judging.reports.services import report_document
from judging.reports.slices import Slices, default_field

NO_SLICES = "-"
EVERY_METRIC = "all"  # all metrics in one table
EACH_METRIC = "each"  # all metrics below each other


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The reader's options: the number of a metric ("" for the first, "all" for a table of all, "each" for all below
    each other), columns, the field for slices ("" for one whose means differ), and the difference to detect between
    candidates."""

    metric: str = ""
    columns: Collection[str] = ()
    by: str = NO_SLICES
    difference: str = ""


@dataclass(frozen=True, slots=True)
class MetricView:
    """One metric over all candidates; `number` counts from 1 and is used in file names.

    `forms`: (how replies were read, number of judgements, URL of them). Charts without data are empty, tables without
    data are None.
    """

    number: int
    name: str
    low: float | None
    high: float | None
    kind: str
    card: ResultCard
    order: OrderView | None
    board: Leaderboard
    licences: list[str]
    notes: list[str]
    forms: list[tuple[str, int, str]]
    uncertain: bool
    matrix: PairMatrix | None
    pairs: Table | None
    pairs_summary: str
    wanted: WantedDifference | None
    side_by_side: Sequence[SideView]
    people: CriterionResult | None
    agreement: AgreementView
    slices: SlicesView | None
    spread: SafeString
    distribution: Table | None
    shares: Table | None
    repeats: Table | None
    variance: Table | None
    rule_lines: Table | None
    rule_lines_left_out: int
    checklist: ChecklistTables

    @property
    def compared(self) -> bool:
        """Whether it has only comparisons, so that their ratings are its leaderboard."""
        return bool(self.side_by_side) and self.kind == "category"


@dataclass(frozen=True, slots=True)
class ReportView:
    """The report page.

    `fields`: available for slices. `tabs`: (value, name, whether it is shown) for each metric; `metrics`: those shown;
    `every_metric`: the table of all. `texts`: what raters wrote, by criterion of free text; empty for readers who may
    not see items. `evidence`: sentences on the file that the run was opened from. `left_out`: sentences on rows and
    answers not included. `scored`: judgements with a value; `truncated`: judgements with a truncated judge's reply;
    `slices_due`: the field whose slices a worker computes, or ''; `made_at`: when the figures were computed, if the run
    has changed since.
    """

    document: Mapping[str, Any]
    fields: Sequence[str]
    series: Mapping[str, int]
    evidence: list[str]
    left_out: list[str]
    overridden: int
    tabs: Sequence[tuple[str, str, bool]]
    metrics: Sequence[MetricView]
    every_metric: Table | None
    texts: Sequence[CriterionResult]
    radar: SafeString
    slices_due: str
    scored: int
    responses: int
    truncated: int
    made_at: datetime | None

    @property
    def has_criteria(self) -> bool:
        """Whether raters can be compared on criteria of a checklist."""
        return any(checklist["agreement"] for checklist in self.document.get("checklists", ()))


def report_view(run: Run, options: PageOptions | None = None) -> ReportView | None:
    """The report page of a run; None until a worker has computed its figures."""
    stored = for_page(run)
    return None if stored is None else view_of(run, stored, Links.of(run), options or PageOptions())


def view_of(run: Run, stored: RunFigures, links: Links, options: PageOptions) -> ReportView:
    """The page for given figures. `links`: empty if the reader may not see items."""
    figures, fields = stored.figures, fields_of(run)
    document = report_document(run, figures)
    by = options.by or default_field(run)
    sliced = slices_for_page(run, by, stored) if by in fields else Slices(None, due=False)
    document["breakdown"] = sliced.breakdown
    cells = [cell for metrics in document["candidates"].values() for cell in metrics.values()]
    metrics = list(selectors.metrics_of(run).values())
    shown = chosen_metrics(len(metrics), options.metric)
    series = selectors.series_of([run.project_id])[run.project_id]
    results = results_of(run, document, series)
    people = {result.criterion.name: result for result in results if result.rated}
    maker = _Maker(run, figures, document, links, series, options, people)
    return ReportView(
        document=document,
        fields=fields,
        series=series,
        evidence=evidence_and_licences(document["evidence"]) if document["evidence"] else [],
        left_out=labels.left_out_sentences(document["left_out"], named=bool(links.judgements)),
        overridden=labels.overridden(document),
        tabs=_tabs(metrics, options.metric, shown),
        metrics=[maker.metric(place, metrics[place - 1]) for place in shown],
        every_metric=None if shown else metrics_table(document, metrics, series),
        texts=[result for result in results if result.texts] if links.judgements else [],
        radar=_svg("" if shown else metrics_radar(document, metrics, series)),
        slices_due=by if sliced.due else "",
        scored=sum(cell["scored"] for cell in cells),
        responses=sum(cell["responses"] for cell in cells),
        truncated=figures.truncated,
        made_at=stored.outdated_since(run),
    )


def fields_of(run: Run) -> list[str]:
    """The fields of rows available for slices."""
    return [*run.version.fields_found, *(name for name in EVERY_ROW if name not in run.version.fields_found)]


def chosen_metrics(count: int, wanted: str) -> list[int]:
    """The numbers of the metrics to show: the wanted one, all for "each", none for "all", else the first."""
    if wanted == EVERY_METRIC and count > 1:
        return []
    if wanted == EACH_METRIC:
        return list(range(1, count + 1))
    number = int(wanted) if wanted.isdecimal() and len(wanted) < 6 else 1
    return [number if 0 < number <= count else 1] if count else []


def _tabs(metrics: Sequence[ScaledMetric], wanted: str, shown: list[int]) -> list[tuple[str, str, bool]]:
    tabs = [(str(place), metric.name, place in shown) for place, metric in enumerate(metrics, 1)]
    return [*tabs, (EVERY_METRIC, "", not shown)] if len(metrics) > 1 and wanted != EACH_METRIC else []


@dataclass(frozen=True, slots=True)
class _Maker:
    """Builds the view of a metric from a document."""

    run: Run
    figures: Figures
    document: Mapping[str, Any]
    links: Links
    series: Mapping[str, int]
    options: PageOptions
    people: Mapping[str, CriterionResult]

    def metric(self, place: int, metric: ScaledMetric) -> MetricView:
        links, cells = self.links, ranked(self.document, metric.name)
        pairs = under(self.document, "pairs", metric.name)
        kind = kind_of(cells)
        values = labels.ValueFormat.of(kind, metric.low, metric.high)
        lines, scale = self.figures.rule_lines.get(metric.name), (metric.low, metric.high)
        wanted = wanted_difference(self.options.difference, pairs, scale, rate=values.rate)
        return MetricView(
            number=place,
            name=metric.name,
            low=metric.low,
            high=metric.high,
            kind=kind or "",
            card=result_card(self.document, metric.name, cells, values, self.series),
            order=order_view(
                self.document, metric.name, self.series, with_versions=bool(self.links.judgements)
            ),
            board=leaderboard(self._board(metric, cells, pairs, values), self.options.columns),
            licences=[licence_sentence(entry) for entry in under(self.document, "licences", metric.name)],
            notes=[
                *labels.note_sentences(cells, under(self.document, "side_by_side", metric.name)),
                *labels.cluster_sentences(cells),
                *version_sentences(self.document, metric.name),
            ],
            forms=[
                (translated(FORMS[form].name), count, links.to_form(metric.name, form))
                for form, count in self.figures.forms.get(metric.name, {}).items()
                if form in FORMS
            ],
            uncertain=any(map(uncertain, cells.values())),
            matrix=pair_matrix([*cells], pairs, values, links),
            checklist=checklist_tables(self.document, metric.name, cells, links),
            pairs=pairs_table(pairs, values, links, wanted.needed if wanted else ()),
            pairs_summary=labels.pair_summary(pairs),
            wanted=wanted,
            side_by_side=side_views(self.document, metric.name, self.series, links),
            people=self.people.get(metric.name),
            agreement=agreement_view(
                self.document, metric.name, values, self.series, links, self._human_ratings(place, metric)
            ),
            slices=self._slices(metric, list(cells), values),
            spread=_svg(spread_chart(f"spread-{place}", cells, metric)),
            distribution=distribution_table(cells, metric.name, links, compares=metric.compares),
            shares=shares_table(cells, metric.name, links),
            repeats=repeats_table(cells, metric.name, values, links),
            variance=variance_table(cells),
            rule_lines=rule_table(lines, metric.name, list(cells), links) if lines else None,
            rule_lines_left_out=left_out_lines(lines) if lines else 0,
        )

    def _slices(
        self, metric: ScaledMetric, names: Sequence[str], values: labels.ValueFormat
    ) -> SlicesView | None:
        breakdown, scale = self.document.get("breakdown"), (metric.low, metric.high)
        field = breakdown["field"] if breakdown else ""
        links = SliceLinks(self.links, metric.name, field)
        return slices_of(breakdown, metric.name, names, values, scale, links)

    def _human_ratings(self, place: int, metric: ScaledMetric) -> dict[str, JudgeAndPeople]:
        """Data for each judge against people, without answers for readers who may not see items."""
        ratings, links = {}, self.links
        for judge, (name, paired) in enumerate(self.figures.paired.get(metric.name, {}).items(), 1):
            chart = agreement_chart(f"scatter-{place}-{judge}", paired, metric, name, links)
            ratings[name] = JudgeAndPeople(
                number=judge,
                paired=paired,
                strongest=strongest(self.run, metric, name, paired) if links.judgements else [],
                chart=_svg(chart),
                points=points_table(paired, metric.name, name, links) if chart else None,
                all=links.to_agreement(metric.name, name),
            )
        return ratings

    def _board(
        self,
        metric: ScaledMetric,
        cells: Mapping[str, Any],
        pairs: Sequence[Mapping[str, Any]],
        values: labels.ValueFormat,
    ) -> BoardData:
        corrected = {
            correction["candidate"]: correction
            for correction in reversed(under(self.document, "corrected", metric.name))
            if correction["value"] is not None
        }
        if corrected_under(self.document, metric.name):
            corrected = {}  # they are the means
        return BoardData(
            metric=metric.name,
            cells=cells,
            pairs=pairs,
            rank_pairs=rank_pairs(self.document, metric.name),
            corrected=corrected,
            values=values,
            series=self.series,
            links=self.links,
            top=metric.high or 0,
            compares=metric.compares,
        )


def _svg(chart: str) -> SafeString:
    return mark_safe(chart)  # noqa: S308 (core.charts escapes every text that it draws)
