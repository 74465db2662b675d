"""The editor of a rule metric."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext as _

from datasets.messages import translated
from evalsite.web.numbers import whole
from judging.core.metric_definition import JudgeModel, MetricDefinition
from judging.core.replies import Parsed
from judging.core.rules.ask import read_reply
from judging.core.rules.evaluate import LineQuestion, LineResult, evaluate
from judging.core.rules.functions import FUNCTIONS
from judging.core.rules.program import ARGUMENTS, Reason, Scored
from judging.metrics.editor import try_prompt
from judging.metrics.editor.page import EditorPage
from judging.metrics.editor.scripts import ScriptRun, with_script_change
from judging.metrics.editor.step_forms import ScriptForm, with_step_change
from judging.metrics.editor.try_prompt import CannotTry, TryResult, TryView
from judging.metrics.rule_editor.forms import RuleForm
from judging.metrics.rule_editor.preview import RulePreview, rule_preview
from judging.rule_messages import reader_language, reason_sentence

BLANK = {
    "zh": "# DSL\n@全部字段:精确匹配\n@聚合方式:mean\n@格式限制:JSON\n",
    "en": "# DSL\n@all:exact_match\n@aggregate:mean\n@format:JSON\n",
}


class RuleEditor(EditorPage[RuleForm]):
    draft_form = "rules"
    template = "metrics/rules_edit.html"
    previewing = ("go", "look", "change", "try")

    def changed(self, typed: QueryDict) -> QueryDict:
        if "change" not in typed or "rules" not in typed:
            return typed
        return with_script_change(with_step_change(typed, self.before))

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
        preview = rule_preview(self.project, self.before, self.typed, self.last_version)
        return {
            "preview": preview,
            "steps": shown_steps(self.form, preview),
            "tried": try_line(preview, self.form, self.typed.get("try", "")) if "try" in self.typed else None,
            "functions": [
                (function, translated(function.help), translated(ARGUMENTS[function.argument]))
                for function in FUNCTIONS
            ],
            "spoken": reader_language(),
        }

    def preview(self) -> HttpResponse:
        preview = rule_preview(self.project, self.before, self.typed, self.last_version)
        context = {"preview": preview, "steps": shown_steps(self.form, preview)}
        return render(self.request, "metrics/_rules_preview_answer.html", context)

    def try_on_row(self) -> HttpResponse:
        preview = rule_preview(self.project, self.before, self.typed, self.last_version)
        tried = try_line(preview, self.form, self.typed.get("try", ""))
        return render(self.request, "metrics/_try_result.html", {"tried": tried})


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step between the first and the last script: a script with its result on the sample row, or the rule program."""

    script: ScriptForm | None = None
    run: ScriptRun | None = None


def shown_steps(form: RuleForm, preview: RulePreview) -> list[ShownStep]:
    """The form's steps in order."""
    scripts = {script.token: script for script in form.scripts}
    return [
        ShownStep(script, preview.runs.get(script["source"].html_name))
        if (script := scripts.get(token))
        else ShownStep()
        for token in form.order
    ]


def new_rule_metric(program: str = "") -> MetricDefinition:
    """A new rule metric with this program, or with a first line to start from."""
    rules = program or BLANK[reader_language()]
    return MetricDefinition(name=_("Fields"), min_score=1.0, max_score=5.0, rules=rules)


def try_line(preview: RulePreview, form: RuleForm, which: str) -> TryView:
    """Call the form's judge model for the sample row's line with this index among the scored lines."""
    about, endpoint = "", None
    try:
        line, question = _question(preview, which)
        about = f"{line.name} · {line.rule.word}"
        judge = _judge(form)
        settings = try_prompt.settings_for(judge)
        *_waited, answered = try_prompt.try_prompt(settings, preview.definition, judge, question.prompt)
        assert isinstance(answered, TryResult)
        result, endpoint = read_as_line(answered), judge.endpoint
    except CannotTry as refusal:
        result = refusal.result
    sentence = reason_sentence(Reason(result.code, {"detail": result.detail})) if result.code else ""
    return TryView(result, preview.sample, sentence, *try_prompt.cost_of(result, endpoint), about)


def read_as_line(result: TryResult) -> TryResult:
    """The result with its reply parsed as for a rule line: an integer from 1 to 5."""
    reply = result.ask_result.reply_to_read if result.ask_result else None
    if reply is None:
        return result
    reading = read_reply(reply.content, reply.finish_reason)
    if isinstance(reading, Scored):
        return replace(result, parsed=Parsed(reading.score), code="", detail="")
    return replace(result, parsed=Parsed(None, reading.code), code=reading.code, detail="")


def _question(preview: RulePreview, which: str) -> tuple[LineResult, LineQuestion]:
    item, program = preview.prepared[0], preview.reading.program
    if item is not None and program is not None:
        evaluation = evaluate(program, item)
        for question in evaluation.questions:
            if question.line == whole(which):
                return evaluation.lines[question.line], question
    raise CannotTry("no_prompt")


def _judge(form: RuleForm) -> JudgeModel:
    """The form's judge model, even if other fields are invalid."""
    form.is_valid()
    if any(name in form.errors for name in ("system_prompt", "params")):
        raise CannotTry("form_errors")
    judge = form.judge_typed()
    if judge is None:
        raise CannotTry("no_endpoint")
    return judge
