"""“Try on this row” for one judged line of a rule program: the judge model is asked for real, nothing is stored."""

from __future__ import annotations

from dataclasses import replace

from judging.core.metric_definition import JudgeModel
from judging.core.replies import Parsed
from judging.core.rules.ask import read_reply
from judging.core.rules.evaluate import LineQuestion, LineResult, evaluate
from judging.core.rules.program import Reason, Scored
from judging.metrics.editor import try_prompt
from judging.metrics.editor.try_prompt import TryResult, TryView
from judging.metrics.rule_editor.forms import RuleForm
from judging.metrics.rule_editor.preview import RulePreview
from judging.rule_messages import reason_sentence


def try_line(preview: RulePreview, form: RuleForm, which: str) -> TryView:
    """Ask the judge model that is typed about the sample's line with this number among the scored lines."""
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
    """The result with its reply read as that of a rule line: a whole number from 1 to 5."""
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
    """The judge model as it is typed; or None with a code that says why there is none."""
    form.is_valid()
    if any(name in form.errors for name in ("system_prompt", "params")):
        return None, "form_errors"
    judge = form.judge_typed()
    return judge, "" if judge else "no_endpoint"


def _view(preview: RulePreview, result: TryResult, about: str = "", endpoint: int | None = None) -> TryView:
    sentence = reason_sentence(Reason(result.code, {"detail": result.detail})) if result.code else ""
    money, currency = try_prompt.cost_of(result, endpoint)
    return TryView(result, preview.sample, sentence, money, currency, about)
