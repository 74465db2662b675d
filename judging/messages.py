"""Codes of the core as sentences in the reader's language: what happened, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.templatetags.show import duration
from judging.core.judges.errors import ERROR_CODES, Held
from judging.core.metrics_file import MetricsFileError
from judging.core.rules.program import Place
from judging.core.rules.program import Problem as RuleProblem
from judging.core.yaml_tree import Problem
from judging.sandbox_messages import localized

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

REASONS: dict[str, StrPromise] = {
    "quorum": gettext_lazy(
        "Fewer votes could be read than the metric wants, so there is no score. "
        "Retry what failed, or ask for a smaller quorum and score again."
    ),
    "jury_tied": gettext_lazy(
        "The judges are tied: no value has more votes than every other. "
        "An odd number of votes, the median or the mean decides."
    ),
    "answer_failed": gettext_lazy(
        "The model under test gave no answer, so there was nothing to judge. Retrying asks it again."
    ),
    # no connection came about
    "bad_url": gettext_lazy(
        "The endpoint's address is no http or https address. "
        "Correct it in the endpoint; leave user names and passwords out of it."
    ),
    "bad_header": gettext_lazy(
        "The key or an extra header holds a character that cannot be sent. "
        "Enter it again, without line breaks and non-Latin characters."
    ),
    "bad_ca": gettext_lazy(
        "The endpoint's own certificate authority is no readable PEM text. "
        "Paste the whole certificate, from BEGIN to END."
    ),
    "certificate": gettext_lazy(
        "The server's certificate is not trusted. "
        "Check the address; for a server of your own, add its certificate authority to the endpoint."
    ),
    "connect": gettext_lazy(
        "Nothing answers at the endpoint's address. Check the address and port, and that the model's server is running."
    ),
    "proxy": gettext_lazy("The proxy does not answer or refused. Check the proxy in the endpoint."),
    "timeout_connect": gettext_lazy(
        "The server could not be reached in time. Check the address, the network and whether a proxy is needed."
    ),
    # the reply did not come whole
    "timeout_first_byte": gettext_lazy(
        "The server took the request but did not begin to answer in time. "
        "Try again when it is less busy, or allow more seconds in the endpoint."
    ),
    "timeout_idle": gettext_lazy("The reply stopped in its middle for too long. Try again."),
    "timeout_whole": gettext_lazy(
        "The reply took longer than a whole call may. Allow more seconds in the endpoint, or fewer tokens (max_tokens)."
    ),
    "cut": gettext_lazy("The connection ended before the reply was whole. Try again."),
    # the server will not answer this request, ever
    "bad_key": gettext_lazy("The server does not accept the key. Enter the key again in the endpoint."),
    "forbidden": gettext_lazy(
        "The server refuses this key what was asked. Check what the key is allowed to use."
    ),
    "quota": gettext_lazy("The account's quota or balance is used up. Top it up, then retry."),
    "unknown_model": gettext_lazy(
        "The server does not know this model. Check the model's name in the endpoint."
    ),
    "not_found": gettext_lazy(
        "The server has nothing at this address. Check the path, for example whether /v1 belongs to it."
    ),
    "redirected": gettext_lazy(
        "The server sends on to another address, which is not followed, because the key would go there too. "
        "Enter the final address."
    ),
    "bad_request": gettext_lazy(
        "The server does not accept the request. Its words say why; often it is a generation parameter."
    ),
    "refused_parameter": gettext_lazy(
        "The server refuses a parameter that cannot be left out. Change the generation parameters."
    ),
    "context_too_long": gettext_lazy(
        "The prompt is longer than the model can read. Shorten the template, or use a model with a larger context."
    ),
    "content_filter": gettext_lazy(
        "The server's content filter withheld the reply. The text itself set it off; another judge model may answer."
    ),
    # the server would answer, later
    "rate_limited": gettext_lazy(
        "The server's rate limit was still exceeded after several tries. Lower the endpoint's concurrency, then retry."
    ),
    "overloaded": gettext_lazy(
        "The server was still overloaded after several tries. Lower the endpoint's concurrency, then retry."
    ),
    "server_error": gettext_lazy("The server failed, also after several tries. Retry later."),
    # a reply with nothing to read in it
    "empty_reply": gettext_lazy("The judge model's reply is empty. Retry, or look at the request."),
    "truncated": gettext_lazy(
        "The judge model used up its tokens before it said anything outside its reasoning. Raise max_tokens."
    ),
    "bad_reply": gettext_lazy(
        "What came back is not in the form of the OpenAI interface. "
        "Check that the address is that of an OpenAI-compatible server."
    ),
    "too_long": gettext_lazy("The reply is longer than can be kept. Set max_tokens."),
    # not sent
    "held_slots": gettext_lazy(
        "Runs are using all the calls that this endpoint takes at a time, and none ended while this one waited. "
        "Try again in a moment, or pause a run."
    ),
    "held_pace": gettext_lazy(
        "The endpoint's requests or tokens per minute are used up for now, so this was not sent. Try again later."
    ),
    "held_closed": gettext_lazy(
        "The server asked to be left alone for a while (Retry-After), so this was not sent. Try again later."
    ),
    "held_down": gettext_lazy(
        "The endpoint is down, so this was not sent. Runs try it again by themselves; "
        "“Test connection” on the endpoint's page tries it at once."
    ),
    # a reply without a score
    "empty": gettext_lazy("The judge's reply is empty apart from its reasoning."),
    "nothing_offered": gettext_lazy("No score was found in the judge's reply."),
    "cut_off": gettext_lazy("The judge's reply reached its token limit before it gave a score."),
    "out_of_range": gettext_lazy(
        "The last score in the judge's reply is outside the scale, so it was not used."
    ),
    "none_returned": gettext_lazy("The metric's last script returned None: no score was meant."),
    # people
    "left_empty": gettext_lazy("The rater left this criterion empty; it is not required."),
    "free_text": gettext_lazy("A free text: it is kept, but it is no score."),
    # the prompt
    "prompt_undefined": gettext_lazy(
        "The template uses a name that this row or response does not have. "
        "Correct the name, give it a default, or make the metric lenient."
    ),
    "prompt_syntax": gettext_lazy("The template has a syntax error. Correct it at the line named."),
    "prompt_exception": gettext_lazy("The template failed on this item. Correct it at the line named."),
    "prompt_timeout": gettext_lazy(
        "The template took too long on this item and was ended. Look for a loop in it."
    ),
    "prompt_memory": gettext_lazy("The template needed more memory than an item may use."),
    "prompt_output": gettext_lazy(
        "The rendered prompt is longer than a prompt may be. Shorten what the template puts in."
    ),
    "prompt_killed": gettext_lazy("The template's process was ended while it rendered this item."),
    "prompt_protocol": gettext_lazy(
        "The process that renders the template answered with nonsense, so its result was not taken."
    ),
    "prompt_load": gettext_lazy("The template could not be loaded."),
    "prompt_result": gettext_lazy("The template did not give a text."),
    "prompt_refused": gettext_lazy(
        "Templates cannot be rendered on this server, because their isolation is incomplete or does not start. "
        "Tell an administrator."
    ),
    # a script
    "script_syntax": gettext_lazy("The script has a syntax error. Correct it at the line named."),
    "script_load": gettext_lazy("The script cannot be loaded. Correct it."),
    "script_exception": gettext_lazy("The script failed on this item. Correct it at the line named."),
    "script_timeout": gettext_lazy("The script took too long on this item and was ended."),
    "script_memory": gettext_lazy("The script needed more memory than an item may use."),
    "script_output": gettext_lazy("The script gave back more than an item may hold."),
    "script_result": gettext_lazy(
        "The script returned something that is no result. Return a number, True or False, a text or None."
    ),
    "script_killed": gettext_lazy("The script's process was ended while it worked on this item."),
    "script_protocol": gettext_lazy(
        "The script's process answered with nonsense, so its result was not taken."
    ),
    "script_undefined": gettext_lazy("The script uses a name that is not defined."),
    "script_refused": gettext_lazy(
        "Scripts cannot be run on this server, because their isolation is incomplete or does not start. "
        "Tell an administrator."
    ),
    # the user's regular expression
    "parser_timeout": gettext_lazy(
        "The metric's regular expression took too long on this reply. Simplify it."
    ),
    "parser_memory": gettext_lazy(
        "The metric's regular expression needed too much memory on this reply. Simplify it."
    ),
    "parser_output": gettext_lazy("The metric's regular expression found more text than a score can be."),
    "parser_exception": gettext_lazy("The metric's regular expression failed on this reply. Correct it."),
    "parser_syntax": gettext_lazy("The metric's regular expression could not be used. Correct it."),
    "parser_load": gettext_lazy("The metric's regular expression could not be used. Correct it."),
    "parser_result": gettext_lazy("The metric's regular expression found something that is no text."),
    "parser_killed": gettext_lazy("The process that searched this reply was ended."),
    "parser_protocol": gettext_lazy(
        "The process that searched this reply answered with nonsense, so its result was not taken."
    ),
    "parser_undefined": gettext_lazy("The metric's regular expression could not be used. Correct it."),
    # the run itself
    "budget_calls": gettext_lazy("The run has sent as many requests as its budget allows."),
    "budget_tokens": gettext_lazy("The run has used as many tokens as its budget allows."),
    "budget_money": gettext_lazy("The run has spent the money that its budget allows."),
    "settled": gettext_lazy("Ended early: every mean is known as exactly as was asked for."),
    "waiting": gettext_lazy("Not judged yet."),
    "no_judge": gettext_lazy("The metric has no judge model and no script that gives a result. Add one."),
    "key_missing": gettext_lazy(
        "The environment variable that should hold the key is not set. Set it where the worker is started, then retry."
    ),
    "key_unreadable": gettext_lazy(
        "The endpoint's stored key cannot be decrypted any more, because the site's own key has changed. "
        "Enter the endpoint's key again."
    ),
    "endpoint_moved": gettext_lazy(
        "The endpoint points to another server now than when this run was made, and its key must not go to the "
        "old one. Make a new run, which takes the endpoint as it is."
    ),
    "sandbox_refused": gettext_lazy(
        "This machine cannot isolate templates and scripts as well as SANDBOX_MINIMUM_LEVEL asks for. Let an "
        "administrator run “manage.py check --deploy --tag jail”, which names what is missing; then resume the run."
    ),
    "sandbox_broken": gettext_lazy(
        "The process that isolates templates and scripts does not start. The worker's log says why; mend it, then "
        "resume the run."
    ),
    "no_endpoint": gettext_lazy("No endpoint is chosen for this judge model. Choose one, then try again."),
    "no_prompt": gettext_lazy("There is no prompt to send yet: see what the preview says."),
    "form_errors": gettext_lazy("The judge model's settings have errors. Save to see them marked."),
    "busy_here": gettext_lazy(
        "Other people are asking judge models from these pages right now. Try again in a few seconds."
    ),
    "internal": gettext_lazy(
        "The program itself failed on this item. "
        "The worker's log says where; retry, and report it if it stays."
    ),
    # a rule program; the line's own sentence tells more (judging.rule_messages)
    "rules_invalid": gettext_lazy("The metric's rule program has errors, so nothing can be scored by it."),
    "reference.field_missing": gettext_lazy(
        "The row's reference lacks a field that a rule line compares with. Correct the row, or the line."
    ),
    "reference.format": gettext_lazy(
        "The row's reference does not have the rule program's format. Correct the row."
    ),
    "code.failed": gettext_lazy("A Python block of the rule program failed on this item."),
    "code.result": gettext_lazy("A Python block of the rule program did not return a number from 1 to 5."),
    "not_integer": gettext_lazy(
        "The judge model's score for a rule line is not a whole number from 1 to 5, so it was not used."
    ),
    "judge.missing": gettext_lazy("A rule line needs a judge model, and the metric has none."),
    "not_asked": gettext_lazy("A rule line was not scored, because another one has an error."),
}

# What is to be done where it is a model under test, and not a judge, that a call was about.
OF_CANDIDATES: dict[str, StrPromise] = {
    "context_too_long": gettext_lazy(
        "The row's messages are longer than the model can read. Shorten them, or ask a model with a larger context."
    ),
    "content_filter": gettext_lazy(
        "The server's content filter withheld the answer. The row's text set it off; other rows are not concerned."
    ),
}

ShownIn = Literal["", "prompt", "run", "rules"]
"""Where a reply without a score is shown: beside the prompt being tried, with a run, or as a line of a rule program."""

_OF_A_RUN = gettext_lazy("Ask again, re-parse the stored replies from the run's page, or override the score.")
_OF_A_LINE = gettext_lazy("Ask again, or choose another judge model.")
ADVICE: dict[ShownIn, dict[str, StrPromise]] = {
    "prompt": {
        "empty": gettext_lazy("Try again, or choose another judge model."),
        "nothing_offered": gettext_lazy(
            "Ask for a fixed form in the template, or change how the reply is parsed."
        ),
        "cut_off": gettext_lazy("Raise max_tokens in the generation parameters."),
        "out_of_range": gettext_lazy("State the scale in the template, or change the metric's scale."),
    },
    "run": {
        "empty": gettext_lazy("Ask again, or override the score."),
        "nothing_offered": _OF_A_RUN,
        "cut_off": gettext_lazy("Raise max_tokens in the metric, then judge these again by its new version."),
        "out_of_range": _OF_A_RUN,
    },
    "rules": {
        "empty": _OF_A_LINE,
        "nothing_offered": _OF_A_LINE,
        "cut_off": gettext_lazy("Raise the judge model's max_tokens, then judge again."),
        "out_of_range": _OF_A_LINE,
        "not_integer": _OF_A_LINE,
    },
}

FILE_PROBLEMS: dict[str, StrPromise] = {
    "too_long": gettext_lazy("The file is longer than %(most)s characters."),
    "yaml_syntax": gettext_lazy("This is no YAML: %(problem)s."),
    "too_deep": gettext_lazy("Values are nested deeper than %(most)s levels."),
    "too_many_values": gettext_lazy("There are more than %(most)s values, each use of an alias counted."),
    "unknown_tag": gettext_lazy("The YAML tag %(tag)s is not used here; write plain values."),
    "empty_file": gettext_lazy("The file is empty; a list of {data_name, metrics} is wanted."),
    "no_metrics": gettext_lazy("A list of {data_name, metrics}, or one such mapping, is wanted."),
    "key_is_no_text": gettext_lazy("A key must be a plain text."),
    "duplicate_key": gettext_lazy("“%(key)s” is here for the second time; the first is in line %(first)s."),
    "unknown_key": gettext_lazy("“%(key)s” is not known here. Known are: %(known)s."),
    "missing_key": gettext_lazy("“%(key)s” is missing."),
    "blank": gettext_lazy("“%(key)s” is blank."),
    "not_a_text": gettext_lazy("“%(key)s” must be a text."),
    "text_too_long": gettext_lazy("“%(key)s” is longer than %(most)s characters."),
    "not_a_number": gettext_lazy("“%(key)s” must be a number."),
    "not_a_whole_number": gettext_lazy("“%(key)s” must be a whole number from %(low)s to %(high)s."),
    "not_true_or_false": gettext_lazy("“%(key)s” must be true or false."),
    "not_an_option": gettext_lazy("“%(key)s” is “%(value)s”; it must be one of: %(options)s."),
    "not_a_mapping": gettext_lazy("A mapping (key: value) is wanted at “%(key)s”."),
    "not_a_list": gettext_lazy("A list with at least one entry is wanted at “%(key)s”."),
    "no_json_value": gettext_lazy("%(value)s cannot be sent as JSON."),
    "empty_scale": gettext_lazy("The scale ends at %(high)s, which is not above its beginning, %(low)s."),
    "duplicate_metric": gettext_lazy("There is a metric called “%(name)s” already; names must differ."),
    "duplicate_candidate": gettext_lazy("There is a candidate called “%(name)s” already; names must differ."),
    "quorum_too_high": gettext_lazy(
        "“%(key)s” is %(value)s, but there are only %(votes)s votes: one of each judge model and repeat."
    ),
    "unknown_source": gettext_lazy("The source “%(value)s” is not known; only URL is."),
    "both_orders_without_comparison": gettext_lazy(
        "“both_orders” works with comparisons only: add “parse: comparison”, or leave it out."
    ),
    "no_template": gettext_lazy("The judge model has no template; give one of: %(options)s."),
    "several_templates": gettext_lazy(
        "The judge model has several templates; give only one of: %(options)s."
    ),
    "no_script": gettext_lazy("The step has no script; give “filename” or “file_content”."),
    "several_scripts": gettext_lazy("The step has two scripts; give either “filename” or “file_content”."),
    "key_of_other_step": gettext_lazy("“%(key)s” does not belong to a step of type %(step)s."),
    "step_out_of_order": gettext_lazy("%(step)s comes too late; the order is %(order)s."),
    "step_twice": gettext_lazy("There is a second %(step)s; a pipeline has at most one."),
    "rules_error": gettext_lazy(
        "The rule program has an error in its line %(rule_line)s, column %(rule_column)s: %(sentence)s"
    ),
    "rules_need_judge": gettext_lazy(
        "A line of the rule program needs a judge model; give the step a “judge_model” (without a template)."
    ),
    "rules_beside_judges": gettext_lazy(
        "A metric has either judge models or rules; the judge model of rules stands in their own step."
    ),
    "unknown_parser": gettext_lazy(
        "“parse” must be score, comparison, {regex: …} or {json_path: …}; it is %(detail)s."
    ),
    "bad_regex": gettext_lazy("The regular expression cannot be used: %(detail)s."),
    "bad_json_path": gettext_lazy(
        "The JSON path cannot be used: %(detail)s. Write names with dots between, such as a.b."
    ),
    "bad_url": gettext_lazy("“%(key)s” is no http or https address without a password in it."),
    "no_variable_name": gettext_lazy(
        "“%(key)s” must name an environment variable, such as JUDGE_KEY. Never write the key itself."
    ),
    "file_outside": gettext_lazy("%(path)s lies outside the metrics file's folder; nothing outside is read."),
    "file_missing": gettext_lazy("There is no file %(path)s beside the metrics file."),
    "file_too_long": gettext_lazy("%(path)s is larger than %(most)s bytes."),
    "file_not_utf8": gettext_lazy("%(path)s is not UTF-8 text; save it as UTF-8."),
    "file_unreadable": gettext_lazy("%(path)s cannot be read."),
}


def reason_sentence(code: str, detail: str = "", shown_in: ShownIn = "") -> str:
    """Why a judgement has no score, what to do, and the words of the server or of Python, if there are any.

    `code` is a judgement's reason or a call's error code; an unknown one is shown as it is. What to do about a reply
    without a score depends on where it is `shown_in`.
    """
    sentence = str(REASONS.get(code) or code)
    if advice := ADVICE.get(shown_in, {}).get(code):
        sentence = _("%(sentence)s %(advice)s") % {"sentence": sentence, "advice": advice}
    if not detail:
        return sentence
    if code == "answer_failed":
        return f"{sentence} {why_no_answer(detail)}"
    if code == "held_down":  # its detail is another code with words
        inner, _colon, words_of_it = detail.partition(": ")
        return f"{sentence} {reason_sentence(inner, words_of_it)}"
    if code in Held.codes:  # its detail is seconds
        told = _("%(sentence)s The next turn is in %(time)s.")
        return told % {"sentence": sentence, "time": duration(detail)}
    if code in ERROR_CODES:
        return _("%(sentence)s Details: %(detail)s") % {"sentence": sentence, "detail": detail}
    return _("%(sentence)s (%(detail)s)") % {"sentence": sentence, "detail": localized(detail)}


WHILE_DOWN: dict[str, StrPromise] = {
    "timeout_first_byte": gettext_lazy("It takes requests, but does not begin to answer in time."),
    "cut": gettext_lazy("It ends the connection before a reply is whole."),
    "overloaded": gettext_lazy("It says that it is overloaded."),
    "server_error": gettext_lazy("It answers every request with an error of its own."),
}


def why_down(code: str, detail: str) -> str:
    """What the last requests to an endpoint that is down came to; nobody need retry it by hand."""
    if code not in WHILE_DOWN:
        return reason_sentence(code, detail)
    sentence = str(WHILE_DOWN[code])
    words = {"sentence": sentence, "detail": detail}
    return _("%(sentence)s Details: %(detail)s") % words if detail else sentence


def why_no_answer(detail: str) -> str:
    """Of a judgement with `answer_failed`, whose detail is a code with words: why the model under test gave none."""
    code, _colon, words = detail.partition(": ")
    if code not in OF_CANDIDATES:
        return reason_sentence(code, words)
    sentence = str(OF_CANDIDATES[code])
    return (
        _("%(sentence)s Details: %(detail)s") % {"sentence": sentence, "detail": words} if words else sentence
    )


def metrics_file_sentences(error: MetricsFileError) -> list[str]:
    """One line for each problem: its place, what is wrong, what is wanted."""
    return [
        _("line %(line)s: %(sentence)s") % {"line": problem.line, "sentence": _problem_sentence(problem)}
        for problem in error.problems
    ]


def _problem_sentence(problem: Problem) -> str:
    if problem.code == "rules_error":
        return str(FILE_PROBLEMS[problem.code]) % {**problem.params, "sentence": _in_rules(problem.params)}
    sentence = str(FILE_PROBLEMS[problem.code]) % problem.params
    near = problem.params.get("near")
    return (
        _("%(sentence)s Did you mean “%(near)s”?") % {"sentence": sentence, "near": near}
        if near
        else sentence
    )


def _in_rules(params: dict[str, str]) -> str:
    """What is wrong in a rule program."""
    from judging.rule_messages import problem_sentence  # which needs this module's reasons

    place = Place(int(params["rule_line"]), int(params["rule_column"]))
    return problem_sentence(RuleProblem(params["rule_code"], place, params))
