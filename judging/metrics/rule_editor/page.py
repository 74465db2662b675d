"""The editor of a rule metric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _

from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.replies import Parsed
from judging.core.rules.ask import read_reply
from judging.core.rules.evaluate import LineQuestion, LineResult, evaluate
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.program import Reason, Scored
from judging.metrics.editor import try_prompt
from judging.metrics.editor.page import EditorPage
from judging.metrics.editor.scripts import with_script_change
from judging.metrics.editor.try_prompt import TryResult, TryView
from judging.metrics.rule_editor.forms import RuleForm, new_rules
from judging.metrics.rule_editor.preview import RulePreview, rule_preview
from judging.rule_messages import ARGUMENTS, HELP, reader_language, reason_sentence

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
        """Requests from the guided form have no program yet, so they don't save."""
        return "rules" in self.typed and super().wants_saving

    def make_form(self) -> RuleForm:
        typed = self.typed if "rules" in self.typed else None
        form = RuleForm(typed, project=self.project, before=self.before)
        if self.request.method != "POST":
            form.errors.clear()  # a draft is unfinished
        return form

    def context(self) -> dict[str, Any]:
        preview = rule_preview(self.project, self.before, self.typed)
        return {
            "preview": preview,
            "tried": try_line(preview, self.form, self.typed.get("try", "")) if "try" in self.typed else None,
            "functions": [(one, HELP[one.code], ARGUMENTS[one.argument]) for one in FUNCTIONS],
            "spoken": reader_language(),
        }

    def preview(self) -> HttpResponse:
        context = {"preview": rule_preview(self.project, self.before, self.typed)}
        return render(self.request, "metrics/_rules_preview.html", context)

    def try_on_row(self) -> HttpResponse:
        preview = rule_preview(self.project, self.before, self.typed)
        tried = try_line(preview, self.form, self.typed.get("try", ""))
        return render(self.request, "metrics/_try_result.html", {"tried": tried})


def new_rule_metric(program: str = "") -> MetricDefinition:
    """A new rule metric with this program, or with a first line to start from."""
    return new_rules(program or BLANK[reader_language()], _("Fields"))


def try_line(preview: RulePreview, form: RuleForm, which: str) -> TryView:
    """Call the form's judge model for the sample row's line with this index among the scored lines."""
    found = _question(preview, which)
    if found is None:
        return _view(preview, TryResult({}, code="no_prompt"))
    line, question = found
    about = f"{line.name} · {line.rule.word}"
    judge, code = _judge(form)
    if judge is None:
        return _view(preview, TryResult({}, code=code), about)
    settings, code, detail = try_prompt.settings_for(judge)
    if settings is None:
        return _view(preview, TryResult({}, code=code, detail=detail), about)
    *_waited, result = try_prompt.try_prompt(settings, preview.definition, judge, question.prompt)
    assert isinstance(result, TryResult)
    return _view(preview, read_as_line(result), about, judge.endpoint)


def read_as_line(result: TryResult) -> TryResult:
    """The result with its reply parsed as for a rule line: an integer from 1 to 5."""
    if result.asked is None or result.asked.reply is None or result.asked.error is not None:
        return result
    found = read_reply(result.asked.reply.content)
    if isinstance(found, Scored):
        return replace(result, parsed=Parsed(found.score), code="", detail="")
    return replace(result, parsed=Parsed(None, found.code), code=found.code, detail="")


def _question(preview: RulePreview, which: str) -> tuple[LineResult, LineQuestion] | None:
    item, program = preview.prepared[0], preview.reading.program
    if item is None or program is None or not which.isdecimal() or len(which) > 6:
        return None
    evaluation = evaluate(program, item)
    return next(
        ((evaluation.lines[one.line], one) for one in evaluation.questions if one.line == int(which)), None
    )


def _judge(form: RuleForm) -> tuple[JudgeModel | None, str]:
    """The form's judge model; or None with an error code."""
    form.is_valid()
    if any(name in form.errors for name in ("system_prompt", "params")):
        return None, "form_errors"
    judge = form.judge_typed()
    return judge, "" if judge else "no_endpoint"


def _view(preview: RulePreview, result: TryResult, about: str = "", endpoint: int | None = None) -> TryView:
    sentence = reason_sentence(Reason(result.code, {"detail": result.detail})) if result.code else ""
    money, currency = try_prompt.cost_of(result, endpoint)
    return TryView(result, preview.sample, sentence, money, currency, about)
