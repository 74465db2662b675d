"""A judged line of a rule program tried on the sample row: the judge model is asked for real, nothing is stored."""

from __future__ import annotations

from dataclasses import replace

from judging.core.metric_definition import JudgeModel
from judging.core.replies import Parsed
from judging.core.rules.asking import read_reply
from judging.core.rules.plan import Line, Question
from judging.core.rules.scoring import Reason, Scored
from judging.core.rules.story import evaluate
from judging.metrics import trying
from judging.metrics.editing import Tried, cost_of
from judging.metrics.rules.forms import RuleForm
from judging.metrics.rules.looking import RuleLook
from judging.metrics.trying import Trial
from judging.rule_messages import reason_sentence


def try_line(look: RuleLook, form: RuleForm, which: str) -> Tried:
    """Ask the judge model that is typed about the sample's line with this number among the scored lines."""
    found = _question(look, which)
    if found is None:
        return _told(look, Trial({}, code="no_prompt"))
    line, question = found
    about = f"{line.name} · {line.rule.word}"
    judge, code = _judge(form)
    if judge is None:
        return _told(look, Trial({}, code=code), about)
    settings, code, detail = trying.settings_for(judge)
    if settings is None:
        return _told(look, Trial({}, code=code, detail=detail), about)
    *_waited, trial = trying.try_prompt(settings, look.definition, judge, question.prompt)
    assert isinstance(trial, Trial)
    return _told(look, read_as_line(trial), about, judge.endpoint)


def read_as_line(trial: Trial) -> Trial:
    """The trial with its reply read as that of a rule line: a whole number from 1 to 5."""
    if trial.asked is None or trial.asked.reply is None or trial.asked.error is not None:
        return trial
    found = read_reply(trial.asked.reply.content)
    if isinstance(found, Scored):
        return replace(trial, parsed=Parsed(found.score), code="", detail="")
    return replace(trial, parsed=Parsed(None, found.code), code=found.code, detail="")


def _question(look: RuleLook, which: str) -> tuple[Line, Question] | None:
    item, program = look.prepared[0], look.reading.program
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


def _told(look: RuleLook, trial: Trial, about: str = "", endpoint: int | None = None) -> Tried:
    sentence = reason_sentence(Reason(trial.code, {"detail": trial.detail})) if trial.code else ""
    money, currency = cost_of(trial, endpoint)
    return Tried(trial, look.sample, sentence, money, currency, about)
