"""The form of a rule metric: program, judge model and scripts."""

from __future__ import annotations

from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.accounts.models import Project
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.rules.check import read_program
from judging.core.rules.program import Problem
from judging.core.scripts import KINDS
from judging.endpoints.models import Endpoint
from judging.metrics.editor.end_scripts import source_of
from judging.metrics.editor.forms import MetricForm
from judging.metrics.editor.judge_forms import (
    CodeField,
    EndpointField,
    JudgeForm,
    judge_initial,
    offer_endpoints,
    with_endpoint,
)
from judging.metrics.editor.step_forms import (
    ScriptForm,
    ordered_scripts,
    script_numbers,
    step_order,
)
from judging.rule_messages import problem_sentence

MAX_PROGRAM = 200_000  # characters


class RuleForm(MetricForm):
    """`before`: the definition that the form started from. Its judge model's URL is kept if no endpoint is selected.
    `order`: of the steps; `scripts`: the forms of those that are neither the first nor the last."""

    # A program scores from 1 to 5, and has no templates.
    gives = min_score = max_score = whole = step = labels = undefined = None  # type: ignore[assignment]

    rules = CodeField(rows=18, label=gettext_lazy("Rule program"), max_length=MAX_PROGRAM)
    endpoint = EndpointField(
        Endpoint.objects.none(),
        label=gettext_lazy("Judge model"),
        required=False,
        empty_label=gettext_lazy("none"),
        help_text=gettext_lazy(
            "Called only by rules such as fuzzy_match and rule. Other rules make no calls."
        ),
    )
    system_prompt = CodeField(
        rows=3, label=gettext_lazy("System prompt"), required=False, max_length=MAX_PROGRAM
    )
    params = JudgeForm.base_fields["params"]

    def __init__(self, data: Any, *, project: Project, before: MetricDefinition) -> None:
        self.before = before
        of_judge = judge_initial(self.judge) if self.judge else {}
        scripts = {kind: source_of(before, kind) for kind in KINDS}
        super().__init__(data, initial=of_judge | msgspec.structs.asdict(before) | scripts)
        self.fields["preprocess"].help_text = _(
            "def preprocess(data, resp): called for each answer before the rules, for example to remove code fences "
            "from resp['content']."
        )
        offer_endpoints(self, project, self.judge)
        self.order = step_order(data, before)
        self.scripts = [
            ScriptForm(data, number=number, before=before) for number in script_numbers(self.order)
        ]

    @property
    def judge(self) -> JudgeModel | None:
        return self.before.judges[0] if self.before.judges else None

    def clean_rules(self) -> str:
        source: str = self.cleaned_data["rules"]
        errors = read_program(source).errors
        if errors:
            raise ValidationError([placed_sentence(problem) for problem in errors])
        return source

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        program = read_program(values.get("rules", "")).program
        imported = self.judge is not None and self.judge.url
        if program and program.needs_judge and not values.get("endpoint") and not imported:
            self.add_error("endpoint", _("A rule needs a judge model: choose one."))
        if not all(script.is_valid() for script in self.scripts):
            self.add_error(None, _("A script among the steps has an error."))
        return values

    def result(self) -> MetricDefinition:
        """The definition. Call only after is_valid."""
        values = self.cleaned_data
        return msgspec.structs.replace(
            self.before,
            name=values["name"],
            sandbox=values["sandbox"] or "batch",
            rules=values["rules"],
            judges=(judge,) if (judge := self.judge_typed()) else (),
            scripts=ordered_scripts(self.order, values, self.scripts),
        )

    def judge_typed(self) -> JudgeModel | None:
        """The form's judge model; None without one. Call only if its fields are valid."""
        values, before = self.cleaned_data, self.judge
        endpoint = values.get("endpoint")
        if endpoint is None and not (before and before.url):
            return None
        judge = msgspec.structs.replace(
            before or JudgeModel(name="", template=""),
            system_prompt=values["system_prompt"] or None,
            params=values["params"],
        )
        return with_endpoint(judge, endpoint)


def placed_sentence(problem: Problem) -> str:
    """A problem with its place, as a sentence."""
    return _("line %(line)s, column %(column)s: %(sentence)s") % {
        "line": problem.place.line,
        "column": problem.place.column,
        "sentence": problem_sentence(problem),
    }
