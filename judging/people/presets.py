"""The ways in which a version can be rated, the suggested one first, and a preview of the rating page.

They depend on the rows, not on the version's stored format. A version imported from legacy files starts side by side,
all others with one answer at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from datasets.core.kinds import CATEGORY, CHECKLIST, COMPARISON, PASS_FAIL
from datasets.models import Candidate, Response, Row, Version
from datasets.selectors import began_as_legacy, legacy_versions, usable_versions
from datasets.versions.references import reference_of, reference_response
from judging.core.metric_definition import MetricDefinition
from judging.core.people.criteria import MOST_CATEGORIES, Criterion, Scale
from judging.core.people.instructions import instruction_of
from judging.core.people.ranking import FEWEST_RANKED, MOST_RANKED
from judging.core.values import SCORED
from judging.people.item_view import ItemView, answer_of, conversation_of, shown
from judging.people.models import Item, Scheme
from judging.people.sampling import prompt_of
from judging.records.definitions import definitions_now
from judging.records.models import Judgement, Run, RunMetric
from judging.records.seal import unsealed

SINGLE, AS_IT_STANDS, MARK_SPANS = "single", "as_it_stands", "spans"
ONE_AT_A_TIME = (SINGLE, AS_IT_STANDS, MARK_SPANS)
_LOOKED_AT = 200
_OTHERS_LOOKED_AT = 20
_LOOKED_AT_FOR_REFERENCES = 1000
_VALUES_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Preset:
    """A way to rate: its code (a Scheme, or one of ONE_AT_A_TIME), name and explanation. `proposes`: the scale of the
    first criterion."""

    code: str
    name: str | Promise
    help: str | Promise
    proposes: Scale = "steps"


_PRESETS = {
    preset.code: preset
    for preset in (
        Preset(SINGLE, _("Score each answer"), _("Rate answers one at a time."), proposes="five"),
        Preset(
            AS_IT_STANDS,
            _("Score the references"),
            _("The reference of each row is scored as an answer."),
            proposes="five",
        ),
        Preset(
            Scheme.REFERENCE,
            _("Reference vs. answer"),
            _("The reference is compared with each candidate's answer."),
        ),
        Preset(
            Scheme.VERSIONS,
            _("Two legacy files side by side"),
            _("The answers of this file are compared with those of another file with the same prompts."),
        ),
        Preset(
            Scheme.EVERY_PAIR,
            _("All pairs of candidates"),
            _("All pairs of candidates are compared on each row."),
        ),
        Preset(
            Scheme.BALANCED,
            _("Some pairs of candidates"),
            _("A few pairs on each row. Every candidate appears equally often."),
        ),
        Preset(
            Scheme.BASELINE,
            _("Candidates vs. a baseline"),
            _("Each candidate is compared with the baseline."),
        ),
        Preset(
            Scheme.RANK,
            _("Rank the candidates"),
            _("The answers of three to six candidates to a row are put in order; ties are allowed."),
            proposes="rank",
        ),
        Preset(
            MARK_SPANS,
            _("Mark spans"),
            _("Errors are marked in the text of each answer, with a label and a severity (as in MQM)."),
            proposes="spans",
        ),
    )
}


def presets_of_run() -> list[Preset]:
    """Presets for a sample of a run's answers: one at a time."""
    return [_PRESETS[SINGLE], _PRESETS[MARK_SPANS]]


def presets_of(version: Version) -> list[Preset]:
    """Presets for this version, the suggested one first."""
    candidates = candidates_of(version).count()
    referred, legacy = has_references(version), began_as_legacy(version)
    possible = {
        Scheme.REFERENCE: bool(candidates and referred),
        SINGLE: bool(candidates),
        Scheme.EVERY_PAIR: candidates > 1,
        Scheme.BALANCED: candidates > 2,
        Scheme.BASELINE: candidates > 1,
        Scheme.RANK: candidates >= FEWEST_RANKED,
        Scheme.VERSIONS: legacy and referred and others(version).exists(),
        AS_IT_STANDS: referred,
        MARK_SPANS: bool(candidates),
    }
    codes = [code for code, available in possible.items() if available]
    if Scheme.VERSIONS in codes and not candidates and twin_of(version) is None:
        codes.sort(key=lambda code: code == Scheme.VERSIONS)
    else:
        codes.sort(key=lambda code: (code not in ONE_AT_A_TIME) != legacy)
    presets = [_PRESETS[code] for code in codes]
    return [_with_limit(preset, candidates) for preset in presets]


def _with_limit(preset: Preset, candidates: int) -> Preset:
    """Where there are more candidates than can be ranked, the preset says so before they are chosen."""
    if preset.code != Scheme.RANK or candidates <= MOST_RANKED:
        return preset
    text = _(
        "Choose at most six of the %(n)s candidates. Their answers to a row are put in order; ties are allowed."
    )
    return replace(preset, help=text % {"n": candidates})


def criteria_of_run(run: Run) -> list[Criterion]:
    """Criteria for people that match a run's metrics, on the same scales; metrics without a matching scale are
    skipped."""
    definitions = definitions_now(run)
    defined = [(metric, definitions[metric.pk]) for metric in run.metrics.order_by("number")]
    scored = [
        (metric, scale_of(metric, definition)) for metric, definition in defined if not _compares(definition)
    ]
    return [
        Criterion(name=metric.name, scale=scale, categories=categories if scale == "categories" else ())
        for metric, (scale, categories) in scored
        if scale
    ]


def instructions_of_run(run: Run) -> dict[str, str]:
    """{metric's name: its first judge's instruction}, to be offered as a criterion's guideline."""
    definitions = definitions_now(run)
    defined = [(metric.name, definitions[metric.pk]) for metric in run.metrics.all()]
    return {
        name: instruction_of(
            definition.judges[0].template,
            definition.min_score,
            definition.max_score,
            definition.judges[0].system_prompt,
        )
        for name, definition in defined
        if definition.judges
    }


def _compares(definition: MetricDefinition) -> bool:
    """Whether the metric compares answers instead of judging each by itself."""
    return definition.asks_for == COMPARISON


def scale_of(metric: RunMetric, definition: MetricDefinition) -> tuple[Scale | None, tuple[str, ...]]:
    """The scale for ratings that matches what a metric gives, or else its values, and its categories."""
    scale, names = scale_of_kind(definition)
    if scale:
        return scale, names
    judged = Judgement.objects.filter(
        run=metric.run_id, run_metric=metric, current=True, state_in_force=SCORED
    )
    texts = unsealed(metric.run, judged).values_list("value_in_force", flat=True)[:_VALUES_LOOKED_AT]
    values = [json.loads(text) for text in texts]
    if values and all(isinstance(value, str) for value in values):
        names = tuple(sorted(set(values)))
        return ("categories", names) if 1 < len(names) <= MOST_CATEGORIES else (None, ())
    if values and all(isinstance(value, bool) for value in values):
        return "yes_no", ()
    return scale_of_scores(definition), ()


def scale_of_kind(definition: MetricDefinition) -> tuple[Scale | None, tuple[str, ...]]:
    """The same by the kind of verdict alone; None where only values tell it."""
    if definition.gives == CHECKLIST:
        return "checklist", ()
    if definition.gives == PASS_FAIL:
        return "pass_fail", ()
    if definition.gives == CATEGORY and definition.labels:
        return "categories", definition.label_names
    return None, ()


def scale_of_scores(definition: MetricDefinition) -> Scale | None:
    """The scale for ratings with a metric's ends."""
    return _SCALES.get((definition.min_score, definition.max_score))


_SCALES: dict[tuple[float, float], Scale] = {(1, 5): "five", (1, 10): "ten", (0, 1): "yes_no"}


def has_references(version: Version) -> bool:
    """Whether one of the first thousand rows has a reference."""
    rows = _first_rows(version, _LOOKED_AT_FOR_REFERENCES)
    return any(reference_of(row, version.format) for row in rows.iterator(_LOOKED_AT))


def candidates_of(version: Version) -> QuerySet[Candidate]:
    """The models with answers in this version, by name."""
    return Candidate.uploaded.filter(version=version, responses__gt=0).order_by("name")


def others(version: Version) -> QuerySet[Version]:
    """Versions of legacy origin whose answers can be compared with this one's, newest first."""
    origins = legacy_versions(version.dataset.project)
    began = origins.get(version.pk)
    ids = [pk for pk, of in origins.items() if of != began]
    return usable_versions(version.dataset.project).filter(pk__in=ids)


def twin_of(version: Version) -> Version | None:
    """The newest other version with the same prompts in its first rows."""
    prompts = set(_prompts(version))
    return next(
        (other for other in others(version)[:_OTHERS_LOOKED_AT] if not prompts.isdisjoint(_prompts(other))),
        None,
    )


def preview(
    version: Version,
    code: str,
    candidates: Sequence[Candidate],
    *,
    baseline: Candidate | None = None,
    other: Version | None = None,
    with_reference: bool = False,
    hides: Sequence[str] = (),
) -> ItemView | None:
    """The first item as a rater would see it; None if none of the first rows has the required answers. Stores
    nothing."""
    theirs = _prompts(other) if other and code == Scheme.VERSIONS else {}
    for row in _first_rows(version):
        beside = theirs.get(prompt_of(row, version.format)) if theirs else None
        sides = _sides(version, row, code, candidates, baseline, beside)
        if sides:
            messages, reference = conversation_of(row, version.format)
            item = Item(row=row, response=sides[0], other_response=sides[1] if len(sides) > 1 else None)
            view = shown(item, messages, (), reference if with_reference else None, hides)
            further = [answer_of(answer) for answer in sides[2:]]
            return replace(view, further=further, marks_spans=code == MARK_SPANS)
    return None


def _sides(
    version: Version,
    row: Row,
    code: str,
    candidates: Sequence[Candidate],
    baseline: Candidate | None,
    beside: Row | None,
) -> list[Response]:
    """The answers that would be shown for a row; empty if one is missing."""
    reference = reference_response(row, version.format)
    if code == AS_IT_STANDS:
        return [_as_response(reference)] if reference else []
    if code == Scheme.VERSIONS:
        theirs = reference_response(beside, beside.version.format) if beside else None
        return [_as_response(reference), _as_response(theirs)] if reference and theirs else []
    compared = [candidate for candidate in candidates if candidate != baseline]
    answers = _first_answers(row, compared)
    if code == Scheme.REFERENCE:
        return [answers[0], _as_response(reference)] if answers and reference else []
    if code == Scheme.BASELINE:
        answers = answers[:1] + (_first_answers(row, [baseline]) if baseline else [])
    if code == Scheme.RANK:
        return answers if FEWEST_RANKED <= len(answers) <= MOST_RANKED else []
    return answers[:1] if code in (SINGLE, MARK_SPANS) else answers[:2] if len(answers) > 1 else []


def _first_answers(row: Row, candidates: Sequence[Candidate]) -> list[Response]:
    answers = Response.objects.filter(row=row, candidate__in=candidates, number=1)
    return list(answers.order_by("candidate__name"))


def _as_response(reference: dict[str, Any]) -> Response:
    return Response(raw=json.dumps(reference))


def _first_rows(version: Version, count: int = _LOOKED_AT) -> QuerySet[Row]:
    return Row.objects.filter(version=version, valid=True).order_by("line")[:count]


def _prompts(version: Version) -> dict[str, Row]:
    """{prompt: row} for the first rows."""
    return {prompt_of(row, version.format): row for row in _first_rows(version)}
