"""The metric form: one part for the metric and one for each judge model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from datasets.core.kinds import PASS_FAIL
from evalsite.accounts.models import Project
from judging.core.gallery import start_of
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.scripts import KINDS, ScriptKind
from judging.messages import reason_sentence
from judging.metrics.editor.asking_fields import AskingForm, asking_values
from judging.metrics.editor.end_scripts import source_of
from judging.metrics.editor.judge_forms import CodeField, JudgeForm, unified
from judging.metrics.editor.kind_fields import (
    CANDIDATES,
    KIND_FLAGS,
    KindForm,
    kind_initial,
    kind_values,
    typed_kind,
    typed_labels,
)
from judging.metrics.editor.scripts import (
    RecommendedScripts,
    recommended_scripts,
    script_failure,
    script_sentence,
)
from judging.metrics.editor.step_forms import (
    MAX_SCRIPT,
    ScriptForm,
    judge_numbers,
    ordered_scripts,
    script_numbers,
    step_order,
    typed_scripts,
)


class MetricForm(KindForm, AskingForm):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    undefined = forms.ChoiceField(
        label=gettext_lazy("Undefined variables"),
        choices=[
            ("strict", gettext_lazy("error (strict)")),
            ("lenient", gettext_lazy("empty (lenient)")),
        ],
    )
    sandbox = forms.ChoiceField(
        label=gettext_lazy("Scripts run"),
        required=False,
        choices=[
            ("batch", gettext_lazy("in batches (fast)")),
            ("item", gettext_lazy("one process per item")),
        ],
    )
    jury = forms.ChoiceField(
        label=gettext_lazy("Combine multiple judgements by"),
        required=False,
        choices=[
            ("mean", gettext_lazy("the mean of their scores")),
            ("median", gettext_lazy("the median")),
            ("majority", gettext_lazy("the majority")),
        ],
        help_text=gettext_lazy("Used when there is no postprocess. A tied majority has no score."),
    )
    quorum = forms.IntegerField(
        label=gettext_lazy("Minimum valid votes"),
        required=False,
        min_value=1,
        max_value=10_000,
        help_text=gettext_lazy("With fewer valid votes there is no score. Enter 1 to accept any vote."),
    )
    preprocess = CodeField(
        rows=8,
        label=gettext_lazy("Before: preprocess"),
        required=False,
        max_length=MAX_SCRIPT,
        help_text=gettext_lazy(
            "def preprocess(data, resp): called for each response. The template sees what it adds to data and resp."
        ),
    )
    postprocess = CodeField(
        rows=8,
        label=gettext_lazy("After: postprocess"),
        required=False,
        max_length=MAX_SCRIPT,
        help_text=gettext_lazy(
            "def postprocess(judge_reqs, judge_resps, judge_models, data, resp, **kwargs): "
            "its return value is the score."
        ),
    )

    @property
    def recommended(self) -> RecommendedScripts:
        """Recommended scripts, by kind."""
        return recommended_scripts()

    def clean_preprocess(self) -> str:
        return self._script("preprocess")

    def clean_postprocess(self) -> str:
        return self._script("postprocess")

    def _script(self, kind: ScriptKind) -> str:
        source: str = self.cleaned_data[kind]
        if not source.strip():
            return ""
        failure = script_failure(kind, source)
        if failure is not None:
            raise forms.ValidationError(script_sentence(kind, failure))
        return source


@dataclass(slots=True)
class MetricForms:
    """All parts of the form, and the `order` of the judge models and the scripts among them. `before`: the definition
    that it started from."""

    metric: MetricForm
    judges: list[JudgeForm]
    scripts: list[ScriptForm]
    order: list[str]
    before: MetricDefinition

    def is_valid(self) -> bool:
        valid = all(part.is_valid() for part in [self.metric, *self.judges, *self.scripts])
        if valid and not self.judges and not self.result().scripts and not self.before.rules:
            self.metric.add_error(None, reason_sentence("no_judge"))
            return False
        if valid and not self.metric.cleaned_data["gives"] and not self.result().scored_by_script:
            self.metric.add_error("gives", _("No script returns a value. Choose what the judge gives."))
            return False
        if valid and self._reads_pairs_by_pattern():
            return False
        votes = self.result().votes if valid else 0
        if valid and self.judges and self.result().quorum > votes:
            sentence = ngettext(
                "There is only %(votes)s vote: one of each judge model and repeat.",
                "There are only %(votes)s votes: one of each judge model and repeat.",
                votes,
            )
            self.metric.add_error("quorum", sentence % {"votes": votes})
            return False
        return valid

    def _reads_pairs_by_pattern(self) -> bool:
        """Whether a judge's verdicts on two candidates would be read with a pattern, which is an error."""
        if self.metric.cleaned_data["gives"] != CANDIDATES:
            return False
        judges = [judge for judge in self.judges if judge.cleaned_data["parse"]]
        for judge in judges:
            judge.add_error(
                "parse", _("Verdicts on two candidates can't be read with a pattern or a JSON path.")
            )
        return bool(judges)

    @property
    def errors(self) -> bool:
        return any(part.errors for part in (self.metric, *self.judges, *self.scripts))

    def add_error(self, field: str | None, error: Any) -> None:
        self.metric.add_error(field, error)

    @property
    def chain(self) -> list[JudgeForm | ScriptForm]:
        """The judge models and the scripts among them, in order."""
        steps: list[JudgeForm | ScriptForm] = [*self.judges, *self.scripts]
        return sorted(steps, key=lambda step: self.order.index(step.token))

    def result(self) -> MetricDefinition:
        """The definition. Call only after is_valid."""
        values = self.metric.cleaned_data
        kind = kind_values(values, self.before)
        return msgspec.structs.replace(
            self.before,
            name=values["name"],
            **kind,
            undefined=values["undefined"],
            sandbox=values["sandbox"] or "batch",
            jury=values["jury"] or self.before.jury,
            quorum=values["quorum"] or self.before.quorum,
            judges=tuple(judge.result(values["gives"], kind["gives"]) for judge in self.judges),
            scripts=ordered_scripts(self.order, values, self.scripts),
            **asking_values(values, self.before),
        )


def metric_forms(
    typed: QueryDict | None, project: Project, before: MetricDefinition, *, checked: bool = True
) -> MetricForms:
    """The forms for a definition, with the submitted data, if any. Unless `checked`, errors are not shown."""
    sources = {kind: source_of(before, kind) for kind in KINDS}
    initial = msgspec.structs.asdict(before) | kind_initial(before) | sources
    judges = [
        JudgeForm(typed, project=project, number=number, before=judge_before(before, number), checked=checked)
        for number in judge_numbers(typed, before)
    ]
    order = step_order(typed, before)
    scripts = [
        ScriptForm(typed, number=number, before=before, checked=checked) for number in script_numbers(order)
    ]
    if typed is not None and not checked:
        initial |= {name: typed[name] for name in MetricForm.base_fields if name in typed}
        if "gives" in typed:  # of a whole form: an unchecked box is not sent
            initial |= {name: name in typed for name in KIND_FLAGS} | {"labels": typed_labels(typed)}
    metric = MetricForm(typed if checked else None, initial=initial)
    return MetricForms(metric, judges, scripts, order, before)


def judge_before(before: MetricDefinition, number: int) -> JudgeModel | None:
    return before.judges[number] if number < len(before.judges) else None


def typed_definition(typed: QueryDict, before: MetricDefinition) -> MetricDefinition:
    """The current input for a preview. It is not validated; invalid values fall back to those in `before`."""
    judges = tuple(
        _typed_judge(typed, number, judge_before(before, number) or JudgeModel(name="", template=""))
        for number in judge_numbers(typed, before)
    )
    return msgspec.structs.replace(
        before,
        judges=judges,
        scripts=tuple(placed.script for placed in typed_scripts(typed, before)),
        undefined="lenient" if typed.get("undefined") == "lenient" else "strict",
        **typed_kind(typed, before),
    )


def _typed_judge(typed: QueryDict, number: int, before: JudgeModel) -> JudgeModel:
    prefix = f"judge-{number}-"
    return msgspec.structs.replace(
        before,
        name=typed.get(f"{prefix}name") or before.name,
        template=unified(typed.get(f"{prefix}template", before.template)),
        both_orders=f"{prefix}both_orders" in typed if f"{prefix}template" in typed else before.both_orders,
        system_prompt=typed.get(f"{prefix}system_prompt") or None,
    )


def starting_definition(start: str, name: str) -> MetricDefinition:
    """A new metric's definition, from the start in the gallery (`core.gallery.start_of`) or blank."""
    of_gallery = start_of(start)
    if of_gallery is not None:
        return msgspec.structs.replace(of_gallery.definition, name=name)
    return MetricDefinition(
        name=name,
        judges=(JudgeModel(name="", template=""),),
        gives=PASS_FAIL,
        ask_again=1,
        structured="auto",
    )
