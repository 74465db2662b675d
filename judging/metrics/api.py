"""Metrics, as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from ninja import Field, Router, Schema

from datasets.core.variables import row_and_response, row_data
from datasets.models import Response, Row, Version
from datasets.selectors import exact_reference, format_of
from evalsite import access
from evalsite.access import May
from evalsite.api.errors import ApiError
from evalsite.api.lists import Cursor, Id, Limit, Page, cursor_of, text_at
from evalsite.names import join_sentences
from judging.core.metric_definition import MetricDefinition
from judging.core.metrics_file import MAX_FILE_BYTES, MetricsFileError, metric_entry
from judging.core.prompts import names_of
from judging.core.results import JudgedItem
from judging.core.rules.values import exact_json
from judging.metrics import selectors, transfer
from judging.metrics.access import get_metric
from judging.metrics.editor.preview import Prompt, preview_prompt
from judging.metrics.models import Metric, MetricVersion
from judging.sandboxes import preview_sandbox

router = Router()
BODY = {
    "requestBody": {
        "required": True,
        "description": "A metrics file: one mapping `{metrics: […]}` or a list of them.",
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "application/yaml": {"schema": {"type": "string"}},
        },
    }
}


class MetricOut(Schema):
    """`definition`: an entry of `metrics` in a metrics file."""

    id: int
    name: str
    version: int
    created_at: datetime
    definition: dict[str, Any]


class SavedOut(Schema):
    """`done` is `new`, `changed` or `unchanged`; `valid` if nothing was stored (`dry`). `variables`: names that its
    templates use."""

    id: int | None
    name: str
    version: int | None
    done: str
    variables: list[str]


class Saved(Schema):
    metrics: list[SavedOut]


class PreviewIn(Schema):
    """`version`: the id of a version of a data set. Responses count from 1."""

    version: int = Field(ge=0, lt=2**63)
    line: int = Field(ge=1, lt=2**31)
    model: str
    response: int = Field(1, ge=1, lt=2**15)


class PreviewOut(Schema):
    """`prompt` is null where it could not be rendered; `error` says why."""

    prompt: str | None
    undefined: list[str]
    preprocess_result: Any
    error: str | None


@router.get("projects/{slug}/metrics", response=Page[MetricOut], summary="Metrics")
def metrics(request: HttpRequest, slug: str, limit: Limit = 100, cursor: Cursor = "") -> dict[str, Any]:
    """By name, in their newest version."""
    project = access.get_project(request, slug, May.METRICS)
    after = text_at(cursor)
    lines = [line for line in selectors.metrics_of(project) if line.metric.name > after]
    page = sorted(lines, key=lambda line: line.metric.name)[: limit + 1]
    definitions = transfer.definitions_with_addresses([line.version for line in page[:limit]])
    items = [
        metric_out(line.metric, line.version, definition)
        for line, definition in zip(page, definitions, strict=False)
    ]
    return {"items": items, "next": cursor_of(items[-1]["name"] if len(page) > limit else None)}


@router.post(
    "projects/{slug}/metrics", response={200: Saved}, summary="Save or check metrics", openapi_extra=BODY
)
def save(request: HttpRequest, slug: str, dry: bool = False) -> dict[str, Any]:
    """A metric of the same name gets a new version. `dry=1` checks and stores nothing."""
    project = access.get_project(request, slug, May.METRICS)
    definitions = _read(request.body)
    placed, unplaced = transfer.with_endpoints(project, definitions)
    if unplaced:
        texts = {f"metrics.{entry.metric}": transfer.no_endpoint_sentence(entry) for entry in unplaced}
        raise ApiError(422, "no_endpoint", join_sentences(texts.values()), fields=texts)
    if dry:
        return {"metrics": [_checked(definition) for definition in placed]}
    imported = transfer.metrics_import(project=project, metrics=placed, user=access.signed_in(request))
    return {
        "metrics": [
            _checked(MetricDefinition.from_json(entry.version.definition))
            | {"id": entry.version.metric_id, "version": entry.version.number, "done": entry.done}
            for entry in imported
        ]
    }


def _read(body: bytes) -> tuple[MetricDefinition, ...]:
    """The metrics of a body. Raises ApiError with all problems by line."""
    if len(body) > MAX_FILE_BYTES:
        raise ApiError(413)
    try:
        return transfer.read_alone(body.decode()).metrics
    except UnicodeDecodeError:
        raise ApiError(400, message=_("The body is not UTF-8.")) from None
    except MetricsFileError as error:
        sentences = transfer.metrics_file_sentences(error)
        places = [
            {"line": problem.line, "message": sentence}
            for problem, sentence in zip(error.problems, sentences, strict=True)
        ]
        raise ApiError(422, message=join_sentences(sentences), fields={"body": places}) from None


def _checked(definition: MetricDefinition) -> dict[str, Any]:
    return {
        "id": None,
        "name": definition.name,
        "version": None,
        "done": "valid",
        "variables": _variables(definition),
    }


def _variables(definition: MetricDefinition) -> list[str]:
    """The names that the templates look up."""
    lookups = (names_of(preview_sandbox(), judge.template)[0].used for judge in definition.judges)
    return sorted({lookup.name for used in lookups for lookup in used})


@router.get("projects/{slug}/metrics/{metric}", response=MetricOut, summary="A metric")
def metric(request: HttpRequest, slug: str, metric: Id) -> dict[str, Any]:
    """In its newest version."""
    row = get_metric(request, slug, metric)
    version = selectors.newest_version(row)
    return metric_out(row, version, *transfer.definitions_with_addresses([version]))


@router.post("projects/{slug}/metrics/{metric}/preview", response=PreviewOut, summary="Preview a prompt")
def preview(
    request: HttpRequest,
    slug: str,
    metric: Id,
    body: PreviewIn,
    judge: Annotated[int, Field(ge=0, lt=100)] = 0,
) -> dict[str, Any]:
    """The prompt that a judge of the metric gets for an answer. Nothing is sent or stored."""
    row = get_metric(request, slug, metric)
    definition = MetricDefinition.from_json(selectors.newest_version(row).definition)
    if judge >= len(definition.judges):
        text = _("The metric has no judge model with this number; they count from 0.")
        raise ApiError(422, message=text, fields={"judge": text})
    versions = Version.objects.filter(dataset__project=row.project)
    version = get_object_or_404(versions, pk=body.version)
    stored = get_object_or_404(
        Row.objects.select_related("version"), version=version, line=body.line, valid=True
    )
    answers = Response.uploaded.filter(row=stored, candidate__name=body.model, number=body.response)
    data, response = row_and_response(
        row_data(stored.raw, format_of(version)), get_object_or_404(answers).raw
    )
    item = JudgedItem(data, response, exact_reference(stored, exact_json))
    return _preview_out(preview_prompt(definition, judge, item))


def _preview_out(prompt: Prompt | None) -> dict[str, Any]:
    if prompt is None:
        raise ApiError(422)
    error = prompt.shown.error.message if prompt.shown.error else prompt.script_error or None
    return {
        "prompt": None if error else prompt.text,
        "undefined": sorted({place.name for place in prompt.shown.undefined}),
        "preprocess_result": prompt.preprocess_result,
        "error": error,
    }


def metric_out(metric: Metric, version: MetricVersion, definition: MetricDefinition) -> dict[str, Any]:
    """A metric's version as the API shows it. `definition`: with addresses in place of endpoints."""
    return {
        "id": metric.pk,
        "name": metric.name,
        "version": version.number,
        "created_at": version.created_at,
        "definition": metric_entry(definition),
    }
