"""The body of a new evaluation in the API, as the page's forms check it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, QueryDict
from django.utils.translation import gettext as _
from ninja import Field, Schema

from datasets.models import Version
from evalsite.accounts.models import Project
from evalsite.api.errors import ApiError, form_refused
from judging.filters.filter_form import FilterForm
from judging.filters.judgement_filter import ANYTHING, Filters
from judging.people.forms import CriterionForm, EvaluationForm, refuse_model_names
from judging.people.models import Order
from judging.people.presets import presets_of, presets_of_run
from judging.people.selectors import possible_raters
from judging.records.access import get_run
from judging.records.models import Run
from judging.runs.api import NumberedVersion, refuse_unknown, unknown, version_named


class Confirmable(Schema):
    """Without `confirmed` an evaluation whose raters rate stays as it is, and the answer says what the change would
    do."""

    confirmed: bool = False


class Changed(Schema):
    """`effects`: what the change does, also to the ratings so far, as sentences; none where nobody rates, or nothing
    would change."""

    changed: bool
    effects: list[str]


class CriterionIn(Schema):
    """`scale`: five, ten, pass_fail, yes_no, categories, text, checklist; of comparisons steps or gsb; rank;
    spans, of which `categories` are the labels."""

    name: str = Field(min_length=1, max_length=100)
    scale: str = "five"
    categories: list[str] = Field([], max_length=50)
    both_bad: bool = False
    required: bool = True
    guideline: str = Field("", max_length=50_000)


class EvaluationIn(Schema):
    """What is rated: `version` (its id, or {dataset, number}) or answers of a `run`, of those that match `filter` (a
    query string of its list). `kind`: single, as_it_stands, reference, versions, every_pair, balanced, baseline,
    rank or spans; empty: the page's first proposal. `candidates`, `baseline`: names; null: all. `raters`: user names.
    Shares in percent. `draft`: raters see nothing of it until it is opened."""

    name: str = Field(min_length=1, max_length=200)
    version: int | NumberedVersion | None = None
    run: int | None = Field(None, ge=0, lt=2**63)
    filter: str = Field("", max_length=4000)
    kind: str = ""
    candidates: list[str] | None = Field(None, max_length=1000)
    baseline: str = ""
    other_version: int | None = Field(None, ge=0, lt=2**63)
    name_here: str = ""
    name_there: str = ""
    pairs_per_item: int = 1
    sample_size: int | None = None
    stratify_by: str = ""
    overlap: int = 1
    order: str = Order.RANDOM.value
    repeat_share: int = 0
    gold_share: int = 0
    lease_minutes: int = 30
    shows_reference: bool = False
    hidden_roles: list[str] = Field([], max_length=10)
    raters: list[str] = Field([], max_length=1000)
    guideline: str = Field("", max_length=50_000)
    draft: bool = False
    seed: int | None = None
    criteria: list[CriterionIn] = Field(min_length=1, max_length=10)


def filled_forms(
    request: HttpRequest, project: Project, body: EvaluationIn
) -> tuple[EvaluationForm, list[CriterionForm]]:
    """The page's forms, filled and valid. Raises ApiError and Http404."""
    about = _run(request, project, body.run)
    version = about.version if about else _version(project, body)
    version.dataset.project = project
    offered = presets_of_run() if about else presets_of(version)
    if not offered:
        raise unknown("version", _("Nothing to rate: none of the selected rows has the required answers."))
    filters = _filters(about, body.filter)
    empty = EvaluationForm(version=version, offered=offered, about=about, filters=filters)
    sent = _form_data(body, empty, offered[0].code, project)
    form = EvaluationForm(sent, version=version, offered=offered, about=about, filters=filters)
    if not form.is_valid():
        raise form_refused(form)
    return form, [_criterion(criterion, form.names()) for criterion in body.criteria]


def _run(request: HttpRequest, project: Project, pk: int | None) -> Run | None:
    run = get_run(request, project.slug, pk) if pk is not None else None
    if run is not None and run.by_people:
        raise Http404
    return run


def _version(project: Project, body: EvaluationIn) -> Version:
    if body.version is None:
        raise unknown("version", _("Name a version or a run."))
    return version_named(project, body.version)


def _filters(about: Run | None, query: str) -> Filters:
    return FilterForm(QueryDict(query), about).filters if about and query else ANYTHING


def _form_data(body: EvaluationIn, empty: EvaluationForm, kind: str, project: Project) -> QueryDict:
    """The body as a browser sends it: names of candidates and people as ids, no field for what is not set."""
    candidates = {row.name: row.pk for row in empty.fields["candidates"].queryset}  # type: ignore[attr-defined]
    raters = {user.username: user.pk for user in possible_raters(project)}
    chosen = list(candidates) if body.candidates is None else body.candidates
    sent: dict[str, Any] = body.dict(exclude={"version", "run", "filter", "criteria"})
    sent["kind"] = body.kind or kind
    sent["candidates"] = [_id("candidates", name, candidates) for name in chosen]
    sent["baseline"] = _id("baseline", body.baseline, candidates) if body.baseline else None
    sent["raters"] = [_id("raters", name, raters) for name in body.raters]
    data = QueryDict(mutable=True)
    for name, value in sent.items():
        if isinstance(value, list):
            data.setlist(name, list(map(str, value)))
        elif not (value is None or value is False or value == ""):
            data[name] = str(value)
    return data


def _id(field: str, name: str, ids: dict[str, int]) -> int:
    refuse_unknown(field, [name], ids)
    return ids[name]


def _criterion(sent: CriterionIn, names: list[str]) -> CriterionForm:
    data = sent.dict() | {"categories": "\n".join(sent.categories)}
    form = CriterionForm(data)
    if form.is_valid():
        refuse_model_names(form, names)
    if not form.is_valid():
        error = form_refused(form)
        fields = {f"criteria.{name}": text for name, text in (error.fields or {}).items()}
        raise ApiError(422, message=error.message, fields=fields)
    return form
