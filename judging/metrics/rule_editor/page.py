"""The editor of a rule metric, and the guided form that it can start from."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _

from judging.core.metric_definition import MetricDefinition
from judging.core.rules.functions import FUNCTIONS
from judging.metrics.editor.page import EditorPage
from judging.metrics.editor.scripts import with_script_change
from judging.metrics.rule_editor.forms import RuleForm, new_rules
from judging.metrics.rule_editor.preview import rule_preview
from judging.metrics.rule_editor.try_line import try_line
from judging.rule_messages import ARGUMENTS, HELP, spoken

BLANK = {
    "zh": "# DSL\n@全部字段:精确匹配\n@聚合方式:mean\n@格式限制:JSON\n",
    "en": "# DSL\n@all:exact_match\n@aggregate:mean\n@format:JSON\n",
}


class RuleEditor(EditorPage[RuleForm]):
    draft_form = "rules"
    template = "metrics/rules_edit.html"
    previewing = ("go", "look", "change", "try")

    def changed(self, typed: QueryDict) -> QueryDict:
        return with_script_change(typed)

    @property
    def wants_saving(self) -> bool:
        """The guided form's request has no program yet."""
        return "rules" in self.typed and super().wants_saving

    def make_form(self) -> RuleForm:
        typed = self.typed if "rules" in self.typed else None
        form = RuleForm(typed, project=self.project, before=self.before)
        if self.request.method != "POST":
            form.errors.clear()  # a draft is not finished
        return form

    def context(self) -> dict[str, Any]:
        preview = rule_preview(self.project, self.before, self.typed)
        return {
            "preview": preview,
            "tried": try_line(preview, self.form, self.typed.get("try", "")) if "try" in self.typed else None,
            "functions": [(one, HELP[one.code], ARGUMENTS[one.argument]) for one in FUNCTIONS],
            "spoken": spoken(),
        }

    def preview(self) -> HttpResponse:
        context = {"preview": rule_preview(self.project, self.before, self.typed)}
        return render(self.request, "metrics/_rules_preview.html", context)

    def try_on_row(self) -> HttpResponse:
        preview = rule_preview(self.project, self.before, self.typed)
        tried = try_line(preview, self.form, self.typed.get("try", ""))
        return render(self.request, "metrics/_try_result.html", {"tried": tried})


def new_rule_metric(program: str = "") -> MetricDefinition:
    """A new rule metric with this program, or with a first line to go on from."""
    return new_rules(program or BLANK[spoken()], _("Fields"))
