"""The draft of a metric's editor, changed from elsewhere: what somebody typed, or what the form holds when it opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from django import forms
from django.http import QueryDict

from evalsite.accounts.drafts import draft_save, stored_draft
from evalsite.accounts.models import User
from judging.core.metric_definition import MetricDefinition
from judging.metrics.editor.forms import MetricForms, metric_forms
from judging.metrics.editor.kind_fields import LabelsField
from judging.metrics.editor.step_forms import ORDER
from judging.metrics.models import Metric, MetricVersion
from judging.metrics.selectors import newest_version

FORM = "metric"


class DraftedPrompt(NamedTuple):
    """A judge's template, and the judge's name; '' if it has none."""

    name: str
    template: str


def drafted_prompts(*, metric: Metric, user: User) -> list[DraftedPrompt]:
    """The judges' prompts, in their order, in the user's draft, or in the newest version."""
    judges = MetricDefinition.from_json(newest_version(metric).definition).judges
    typed = stored_draft(user, metric.project, FORM, str(metric.pk))
    if typed is None or not (fields := _template_fields(typed)):
        return [DraftedPrompt(judge.name, judge.template) for judge in judges]
    stored = {judge.template: judge.name for judge in judges}
    names = [typed.get(field.replace("-template", "-name"), "") for field in fields]
    templates = [typed.get(field, "") for field in fields]
    return [
        DraftedPrompt(name or stored.get(template, ""), template)
        for name, template in zip(names, templates, strict=True)
    ]


def template_draft(*, metric: Metric, user: User, change: Callable[[str], str], judge: int = 0) -> bool:
    """Store a judge's template, changed, in the user's draft of the editor. Returns whether it is another one.
    `judge`: its place among the metric's judges, from 0.

    The rest of the draft stays; without a draft it is made from the newest version.
    """
    typed = stored_draft(user, metric.project, FORM, str(metric.pk))
    typed = typed.copy() if typed is not None else form_data(metric, newest_version(metric))
    fields = _template_fields(typed)
    field = fields[judge] if judge < len(fields) else ""
    before = typed.get(field, "") if field else ""
    after = change(before)
    if not field or after == before:
        return False
    typed[field] = after
    draft_save(user=user, project=metric.project, form=FORM, key=str(metric.pk), typed=typed)
    return True


def _template_fields(typed: QueryDict) -> list[str]:
    return [f"judge-{token}-template" for token in typed.getlist(ORDER) if token.isdecimal()]


def form_data(metric: Metric, version: MetricVersion) -> QueryDict:
    """What the editor's form would send for a version of a metric without a change."""
    definition = MetricDefinition.from_json(version.definition)
    parts = metric_forms(None, metric.project, definition)
    data = QueryDict(mutable=True)
    data.update({"metric": str(metric.pk), "began": str(version.number), "seen": str(version.number)})
    data["judges"] = "1"
    data.setlist(ORDER, parts.order)
    for name, text in _inputs(parts):
        data.appendlist(name, text)
    return data


def _inputs(parts: MetricForms) -> Iterator[tuple[str, str]]:
    for form in (parts.metric, *parts.judges, *parts.scripts):
        for field in form:
            yield from _inputs_of(field)


def _inputs_of(field: forms.BoundField) -> Iterator[tuple[str, str]]:
    value = field.value()
    if isinstance(field.field, LabelsField):
        for row in value or ():
            for part, text in row.items():
                yield f"{field.html_name}-{part}", text
    elif isinstance(field.field, forms.BooleanField):
        if value:
            yield field.html_name, "on"
    elif value is not None:
        yield field.html_name, str(value)
