"""Why a judgement has no score, a call was not made or a run stopped: the codes, with what users read about them.

The codes of calls to models stand in `judging.core.judges.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from datasets.core.texts import Text, gettext_noop

ShownIn = Literal["", "prompt", "run", "rules"]
"""Where a reply without a score is shown: next to the prompt being tried, in a run, or for a rule program line."""


@dataclass(frozen=True, slots=True)
class ReasonKind:
    """The texts of a code: what happened and what to do.

    `of_candidate`: instead of `sentence`, about a call to a candidate model. `while_down`: instead of it, without
    advice to retry, while an endpoint is down. `short`: in a word or two. `advice`: a second sentence, by where it is
    shown.
    """

    sentence: Text
    of_candidate: Text | None = None
    while_down: Text | None = None
    short: Text | None = None
    advice: Mapping[ShownIn, Text] = field(default_factory=dict)


_OF_A_PROMPT = gettext_noop(
    "Ask for a fixed output format in the template, or change how the reply is parsed."
)
_OF_A_RUN = gettext_noop("Re-judge, re-parse the stored replies on the run page, or override the score.")
_OF_A_LINE = gettext_noop("Re-judge, or choose another judge model.")

_ADVICE: dict[ShownIn, Text] = {"prompt": _OF_A_PROMPT, "run": _OF_A_RUN, "rules": _OF_A_LINE}

REASONS: dict[str, ReasonKind] = {
    "quorum": ReasonKind(
        gettext_noop(
            "Not enough valid votes, so there is no score. Retry the failed calls, or lower the metric's "
            "minimum of valid votes and re-judge."
        )
    ),
    "jury_tied": ReasonKind(
        gettext_noop(
            "The judges are tied: no value has a majority. Use an odd number of votes, the median or the mean."
        )
    ),
    "no_majority": ReasonKind(
        gettext_noop(
            "The judges do not agree: no verdict has more than half of the votes. Use an odd number of votes, or "
            "override the verdict."
        )
    ),
    "orders_disagree": ReasonKind(
        gettext_noop(
            "The judge's two verdicts disagree: with the answers in the other order it did not name the same side."
        )
    ),
    "answer_failed": ReasonKind(
        gettext_noop(
            "The candidate model returned no answer, so there is nothing to judge. Retrying calls it again."
        )
    ),
    # replies without a score
    "empty": ReasonKind(
        gettext_noop("The judge's reply contains only reasoning."),
        advice={
            "prompt": gettext_noop("Try again, or choose another judge model."),
            "run": gettext_noop("Re-judge, or override the score."),
            "rules": _OF_A_LINE,
        },
    ),
    "nothing_offered": ReasonKind(
        gettext_noop("No verdict was found in the judge's reply."),
        advice=_ADVICE,
    ),
    "ambiguous": ReasonKind(
        gettext_noop("The judge's reply states several verdicts that differ, so none was taken."),
        advice=_ADVICE,
    ),
    "other_scale": ReasonKind(
        gettext_noop("The judge's reply gives a score on a scale that ends elsewhere."), advice=_ADVICE
    ),
    "range": ReasonKind(gettext_noop("The judge's reply gives a range instead of a score."), advice=_ADVICE),
    "not_a_number": ReasonKind(
        gettext_noop("Where the judge's reply gives a score, there is more than a number, or less."),
        advice=_ADVICE,
    ),
    "not_whole": ReasonKind(
        gettext_noop("The score in the judge's reply is not a whole number, so it was ignored."),
        advice=_ADVICE,
    ),
    "off_step": ReasonKind(
        gettext_noop(
            "The score in the judge's reply lies between two steps of the scale, so it was ignored."
        ),
        advice=_ADVICE,
    ),
    "unknown_label": ReasonKind(
        gettext_noop("The verdict in the judge's reply is none of those expected."), advice=_ADVICE
    ),
    "refusal": ReasonKind(
        gettext_noop("The server says that the judge's reply was refused or filtered."),
        advice={
            "prompt": gettext_noop("Choose another judge model, or change the template."),
            "run": gettext_noop("Override the score, or re-judge with another judge model."),
            "rules": gettext_noop("Choose another judge model, then re-judge."),
        },
    ),
    "cut_off": ReasonKind(
        gettext_noop("The judge's reply hit the token limit before it gave a score."),
        advice={
            "prompt": gettext_noop("Raise max_tokens in the generation parameters."),
            "run": gettext_noop("Raise max_tokens in the metric, then re-judge with the new version."),
            "rules": gettext_noop("Raise the judge model's max_tokens, then re-judge."),
        },
    ),
    "out_of_range": ReasonKind(
        gettext_noop("The score in the judge's reply is outside the scale, so it was ignored."),
        advice={
            "prompt": gettext_noop("State the scale in the template, or change the metric's scale."),
            "run": _OF_A_RUN,
            "rules": _OF_A_LINE,
        },
    ),
    "none_returned": ReasonKind(
        gettext_noop("The metric's last script returned None, so there is no score.")
    ),
    "other_kind": ReasonKind(
        gettext_noop(
            "The metric's last script returned another type of value than the metric gives. Change the script, or "
            "what the metric gives."
        )
    ),
    # people
    "left_empty": ReasonKind(gettext_noop("The rater skipped this optional criterion.")),
    "free_text": ReasonKind(gettext_noop("Free text is stored but not scored.")),
    # checklists
    "criteria_open": ReasonKind(
        gettext_noop(
            "Not every criterion has a verdict, so there is no value. In brackets: how many are open, and between "
            "which values the share of points lies."
        ),
        short=gettext_noop("criteria open"),
    ),
    "cannot_tell": ReasonKind(gettext_noop("The rater could not tell whether the criterion is met.")),
    "rubric_unreadable": ReasonKind(
        gettext_noop(
            "The row has no rubric that can be read. Repair it in the data set, or leave the row out."
        )
    ),
    # prompts
    "prompt_undefined": ReasonKind(
        gettext_noop(
            "The template uses a name that this row or answer doesn't have. Fix the name, give it a default, "
            "or make the metric lenient."
        )
    ),
    "prompt_syntax": ReasonKind(gettext_noop("The template has a syntax error. Fix the line shown.")),
    "prompt_exception": ReasonKind(gettext_noop("The template failed on this item. Fix the line shown.")),
    "prompt_timeout": ReasonKind(gettext_noop("The template timed out on this item. Check it for loops.")),
    "prompt_memory": ReasonKind(gettext_noop("The template exceeded the memory limit on this item.")),
    "prompt_output": ReasonKind(
        gettext_noop("The rendered prompt is too long. Insert less text in the template.")
    ),
    "prompt_killed": ReasonKind(gettext_noop("The template process stopped while rendering this item.")),
    "prompt_protocol": ReasonKind(
        gettext_noop("The template process returned an invalid result, which was discarded.")
    ),
    "prompt_load": ReasonKind(gettext_noop("The template could not be loaded.")),
    "prompt_result": ReasonKind(gettext_noop("The template did not produce text.")),
    "prompt_refused": ReasonKind(
        gettext_noop(
            "Templates can't be rendered on this server because the sandbox is incomplete or can't start. "
            "Contact an administrator."
        )
    ),
    # scripts
    "script_syntax": ReasonKind(gettext_noop("The script has a syntax error. Fix the line shown.")),
    "script_load": ReasonKind(gettext_noop("The script could not be loaded. Fix the script.")),
    "script_exception": ReasonKind(gettext_noop("The script failed on this item. Fix the line shown.")),
    "script_timeout": ReasonKind(gettext_noop("The script timed out on this item.")),
    "script_memory": ReasonKind(gettext_noop("The script exceeded the memory limit on this item.")),
    "script_output": ReasonKind(gettext_noop("The script's result is too large.")),
    "script_result": ReasonKind(
        gettext_noop("The script returned an invalid result. Return a number, True or False, text or None.")
    ),
    "script_killed": ReasonKind(gettext_noop("The script process stopped while processing this item.")),
    "script_protocol": ReasonKind(
        gettext_noop("The script process returned an invalid result, which was discarded.")
    ),
    "script_undefined": ReasonKind(gettext_noop("The script uses a name that is not defined.")),
    "script_refused": ReasonKind(
        gettext_noop(
            "Scripts can't run on this server because the sandbox is incomplete or can't start. Contact an "
            "administrator."
        )
    ),
    # users' regular expressions
    "parser_timeout": ReasonKind(
        gettext_noop("The metric's regular expression timed out on this reply. Simplify it.")
    ),
    "parser_memory": ReasonKind(
        gettext_noop("The metric's regular expression exceeded the memory limit on this reply. Simplify it.")
    ),
    "parser_output": ReasonKind(
        gettext_noop("The text matched by the metric's regular expression is too long to be a score.")
    ),
    "parser_exception": ReasonKind(
        gettext_noop("The metric's regular expression failed on this reply. Fix it.")
    ),
    "parser_syntax": ReasonKind(gettext_noop("The metric's regular expression is invalid. Fix it.")),
    "parser_load": ReasonKind(gettext_noop("The metric's regular expression is invalid. Fix it.")),
    "parser_result": ReasonKind(gettext_noop("The metric's regular expression did not match text.")),
    "parser_killed": ReasonKind(gettext_noop("The process that parsed this reply stopped.")),
    "parser_protocol": ReasonKind(
        gettext_noop("The process that parsed this reply returned an invalid result, which was discarded.")
    ),
    "parser_undefined": ReasonKind(gettext_noop("The metric's regular expression is invalid. Fix it.")),
    # runs
    "budget_calls": ReasonKind(gettext_noop("The run reached its request budget.")),
    "budget_tokens": ReasonKind(gettext_noop("The run reached its token budget.")),
    "budget_money": ReasonKind(gettext_noop("The run reached its cost budget.")),
    "worker_died": ReasonKind(
        gettext_noop(
            "Worker processes died repeatedly while they worked on this run, for example for lack of memory. See the "
            "worker log, and check the run's endpoints and scripts."
        )
    ),
    "work_failed": ReasonKind(
        gettext_noop("An internal error stopped the work on this run. See the worker log.")
    ),
    "settled": ReasonKind(gettext_noop("Stopped early: every mean reached the requested precision.")),
    "waiting": ReasonKind(gettext_noop("Not judged yet.")),
    "no_judge": ReasonKind(
        gettext_noop("The metric has no judge model and no script that returns a result. Add one.")
    ),
    "key_missing": ReasonKind(
        gettext_noop(
            "The environment variable for the API key is not set. Set it where the worker starts, then retry."
        )
    ),
    "key_unreadable": ReasonKind(
        gettext_noop(
            "The stored API key can't be decrypted because the site's secret key changed. Enter the API key "
            "again in the endpoint."
        )
    ),
    "endpoint_moved": ReasonKind(
        gettext_noop(
            "The endpoint now points to a different server than when this run was created, so its key is not "
            "sent to the old one. Start a new run to use the current endpoint."
        )
    ),
    "sandbox_refused": ReasonKind(
        gettext_noop(
            "This machine's sandbox does not meet SANDBOX_MINIMUM_LEVEL. Ask an administrator to run "
            "“manage.py check --deploy --tag sandbox”, which lists what is missing, then resume the run."
        )
    ),
    "sandbox_broken": ReasonKind(
        gettext_noop(
            "The sandbox process can't start. Check the worker log, fix the cause, then resume the run."
        )
    ),
    "no_endpoint": ReasonKind(gettext_noop("This judge model has no endpoint. Select one, then try again.")),
    "no_prompt": ReasonKind(gettext_noop("There is no prompt to send yet. Check the preview.")),
    "form_errors": ReasonKind(gettext_noop("The judge model settings have errors. Save to highlight them.")),
    "busy_here": ReasonKind(
        gettext_noop("Too many judge calls from other users right now. Try again in a few seconds.")
    ),
    "internal": ReasonKind(
        gettext_noop(
            "Internal error on this item. See the worker log; retry, and report it if it happens again."
        )
    ),
    # lint
    "unexpected": ReasonKind(
        gettext_noop("An unexpected error occurred. Administrators can find it in the server log.")
    ),
    # rule programs; judging.rule_messages has more specific messages for lines
    "rules_invalid": ReasonKind(
        gettext_noop("The metric's rule program has errors, so it can't score anything.")
    ),
    "reference.field_missing": ReasonKind(
        gettext_noop("The row's reference is missing a field that a rule compares. Fix the row or the rule.")
    ),
    "reference.format": ReasonKind(
        gettext_noop("The row's reference does not match the rule program's format. Fix the row.")
    ),
    "code.failed": ReasonKind(gettext_noop("A Python block in the rule program failed on this item.")),
    "code.result": ReasonKind(
        gettext_noop("A Python block in the rule program did not return a number from 1 to 5.")
    ),
    "not_integer": ReasonKind(
        gettext_noop("The judge model's score for a rule is not an integer from 1 to 5, so it was ignored."),
        advice={"rules": _OF_A_LINE},
    ),
    "judge.missing": ReasonKind(gettext_noop("A rule needs a judge model, but the metric has none.")),
    "not_asked": ReasonKind(gettext_noop("A rule was not scored because another rule has an error.")),
}
