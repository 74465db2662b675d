"""Localized messages for the core's codes: what happened and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsite.templatetags.show import duration
from judging.core.judges.errors import ERROR_CODES, Held
from judging.sandbox_messages import localized

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

REASONS: dict[str, StrPromise] = {
    "quorum": gettext_lazy(
        "Not enough valid votes, so there is no score. Retry the failed calls, or lower the metric's "
        "minimum of valid votes and re-judge."
    ),
    "jury_tied": gettext_lazy(
        "The judges are tied: no value has a majority. Use an odd number of votes, the median or the mean."
    ),
    "answer_failed": gettext_lazy(
        "The candidate model returned no answer, so there is nothing to judge. Retrying calls it again."
    ),
    # connection failed
    "bad_url": gettext_lazy(
        "The endpoint address is not a valid http or https URL. Edit the endpoint; don't include a "
        "username or password."
    ),
    "bad_header": gettext_lazy(
        "The API key or an extra header contains an invalid character. Enter it again without line breaks "
        "or non-Latin characters."
    ),
    "bad_ca": gettext_lazy(
        "The custom CA certificate is not valid PEM. Paste the whole certificate, from BEGIN to END."
    ),
    "certificate": gettext_lazy(
        "The server certificate is not trusted. Check the address. For a self-hosted server, add its CA "
        "certificate to the endpoint."
    ),
    "connect": gettext_lazy(
        "Can't connect to the endpoint. Check the address and port, and that the model server is running."
    ),
    "proxy": gettext_lazy(
        "The proxy is not responding or refused the request. Check the proxy in the endpoint settings."
    ),
    "timeout_connect": gettext_lazy(
        "Connection timed out. Check the address, the network and whether you need a proxy."
    ),
    # incomplete reply
    "timeout_first_byte": gettext_lazy(
        "The server accepted the request but did not start replying in time. Try again later, or raise "
        "“Time to first byte” in the endpoint."
    ),
    "timeout_idle": gettext_lazy("The reply stalled for too long. Try again."),
    "timeout_whole": gettext_lazy(
        "The reply took too long. Raise “Total timeout” in the endpoint, or lower max_tokens."
    ),
    "cut": gettext_lazy("The connection closed before the reply was complete. Try again."),
    # permanent errors
    "bad_key": gettext_lazy("Invalid API key. Enter the key again in the endpoint."),
    "forbidden": gettext_lazy(
        "The API key lacks permission for this request. Check what the key can access."
    ),
    "quota": gettext_lazy("Quota or balance exhausted. Top up the account, then retry."),
    "unknown_model": gettext_lazy("Unknown model. Check the model ID in the endpoint."),
    "not_found": gettext_lazy(
        "The server returned 404 for this address. Check the path, for example whether it needs /v1."
    ),
    "redirected": gettext_lazy(
        "The server redirects to another address. Redirects are not followed, to protect the API key. "
        "Enter the final address."
    ),
    "bad_request": gettext_lazy(
        "The server rejected the request, often because of a generation parameter. See its message for "
        "details."
    ),
    "refused_parameter": gettext_lazy(
        "The server rejected a required parameter. Change the generation parameters."
    ),
    "context_too_long": gettext_lazy(
        "The prompt exceeds the model's context window. Shorten the template, or use a model with a larger "
        "context."
    ),
    "content_filter": gettext_lazy(
        "The provider's content filter blocked the reply because of the prompt. Try another judge model."
    ),
    # temporary errors
    "rate_limited": gettext_lazy(
        "Rate limit still exceeded after several retries. Lower the endpoint's concurrency, then retry."
    ),
    "overloaded": gettext_lazy(
        "The server is still overloaded after several retries. Lower the endpoint's concurrency, then retry."
    ),
    "server_error": gettext_lazy("The server returned an error, even after several retries. Retry later."),
    # empty or unusable replies
    "empty_reply": gettext_lazy("The judge model returned an empty reply. Retry, or check the request."),
    "truncated": gettext_lazy("The judge model used all its tokens on reasoning. Raise max_tokens."),
    "bad_reply": gettext_lazy(
        "The response is not in the OpenAI format. Check that the address belongs to an OpenAI-compatible "
        "API."
    ),
    "too_long": gettext_lazy("The reply is too long to store. Set max_tokens."),
    # not sent
    "held_slots": gettext_lazy(
        "Runs are using all of this endpoint's concurrent calls. Try again in a moment, or pause a run."
    ),
    "held_pace": gettext_lazy(
        "The endpoint's requests or tokens per minute are used up, so the request was not sent. Try again "
        "later."
    ),
    "held_closed": gettext_lazy(
        "The server asked clients to wait (Retry-After), so the request was not sent. Try again later."
    ),
    "held_down": gettext_lazy(
        "The endpoint is down, so the request was not sent. Runs retry automatically; use “Test "
        "connection” on the endpoint page to try now."
    ),
    # replies without a score
    "empty": gettext_lazy("The judge's reply contains only reasoning."),
    "nothing_offered": gettext_lazy("No score was found in the judge's reply."),
    "cut_off": gettext_lazy("The judge's reply hit the token limit before it gave a score."),
    "out_of_range": gettext_lazy(
        "The last score in the judge's reply is outside the scale, so it was ignored."
    ),
    "none_returned": gettext_lazy("The metric's last script returned None, so there is no score."),
    # people
    "left_empty": gettext_lazy("The rater skipped this optional criterion."),
    "free_text": gettext_lazy("Free text is stored but not scored."),
    # prompts
    "prompt_undefined": gettext_lazy(
        "The template uses a name that this row or answer doesn't have. Fix the name, give it a default, "
        "or make the metric lenient."
    ),
    "prompt_syntax": gettext_lazy("The template has a syntax error. Fix the line shown."),
    "prompt_exception": gettext_lazy("The template failed on this item. Fix the line shown."),
    "prompt_timeout": gettext_lazy("The template timed out on this item. Check it for loops."),
    "prompt_memory": gettext_lazy("The template exceeded the memory limit on this item."),
    "prompt_output": gettext_lazy("The rendered prompt is too long. Insert less text in the template."),
    "prompt_killed": gettext_lazy("The template process stopped while rendering this item."),
    "prompt_protocol": gettext_lazy("The template process returned an invalid result, which was discarded."),
    "prompt_load": gettext_lazy("The template could not be loaded."),
    "prompt_result": gettext_lazy("The template did not produce text."),
    "prompt_refused": gettext_lazy(
        "Templates can't be rendered on this server because the sandbox is incomplete or can't start. "
        "Contact an administrator."
    ),
    # scripts
    "script_syntax": gettext_lazy("The script has a syntax error. Fix the line shown."),
    "script_load": gettext_lazy("The script could not be loaded. Fix the script."),
    "script_exception": gettext_lazy("The script failed on this item. Fix the line shown."),
    "script_timeout": gettext_lazy("The script timed out on this item."),
    "script_memory": gettext_lazy("The script exceeded the memory limit on this item."),
    "script_output": gettext_lazy("The script's result is too large."),
    "script_result": gettext_lazy(
        "The script returned an invalid result. Return a number, True or False, text or None."
    ),
    "script_killed": gettext_lazy("The script process stopped while processing this item."),
    "script_protocol": gettext_lazy("The script process returned an invalid result, which was discarded."),
    "script_undefined": gettext_lazy("The script uses a name that is not defined."),
    "script_refused": gettext_lazy(
        "Scripts can't run on this server because the sandbox is incomplete or can't start. Contact an "
        "administrator."
    ),
    # users' regular expressions
    "parser_timeout": gettext_lazy("The metric's regular expression timed out on this reply. Simplify it."),
    "parser_memory": gettext_lazy(
        "The metric's regular expression exceeded the memory limit on this reply. Simplify it."
    ),
    "parser_output": gettext_lazy(
        "The text matched by the metric's regular expression is too long to be a score."
    ),
    "parser_exception": gettext_lazy("The metric's regular expression failed on this reply. Fix it."),
    "parser_syntax": gettext_lazy("The metric's regular expression is invalid. Fix it."),
    "parser_load": gettext_lazy("The metric's regular expression is invalid. Fix it."),
    "parser_result": gettext_lazy("The metric's regular expression did not match text."),
    "parser_killed": gettext_lazy("The process that parsed this reply stopped."),
    "parser_protocol": gettext_lazy(
        "The process that parsed this reply returned an invalid result, which was discarded."
    ),
    "parser_undefined": gettext_lazy("The metric's regular expression is invalid. Fix it."),
    # runs
    "budget_calls": gettext_lazy("The run reached its request budget."),
    "budget_tokens": gettext_lazy("The run reached its token budget."),
    "budget_money": gettext_lazy("The run reached its cost budget."),
    "settled": gettext_lazy("Stopped early: every mean reached the requested precision."),
    "waiting": gettext_lazy("Not judged yet."),
    "no_judge": gettext_lazy("The metric has no judge model and no script that returns a result. Add one."),
    "key_missing": gettext_lazy(
        "The environment variable for the API key is not set. Set it where the worker starts, then retry."
    ),
    "key_unreadable": gettext_lazy(
        "The stored API key can't be decrypted because the site's secret key changed. Enter the API key "
        "again in the endpoint."
    ),
    "endpoint_moved": gettext_lazy(
        "The endpoint now points to a different server than when this run was created, so its key is not "
        "sent to the old one. Start a new run to use the current endpoint."
    ),
    "sandbox_refused": gettext_lazy(
        "This machine's sandbox does not meet SANDBOX_MINIMUM_LEVEL. Ask an administrator to run "
        "“manage.py check --deploy --tag sandbox”, which lists what is missing, then resume the run."
    ),
    "sandbox_broken": gettext_lazy(
        "The sandbox process can't start. Check the worker log, fix the cause, then resume the run."
    ),
    "no_endpoint": gettext_lazy("This judge model has no endpoint. Select one, then try again."),
    "no_prompt": gettext_lazy("There is no prompt to send yet. Check the preview."),
    "form_errors": gettext_lazy("The judge model settings have errors. Save to highlight them."),
    "busy_here": gettext_lazy("Too many judge calls from other users right now. Try again in a few seconds."),
    "internal": gettext_lazy(
        "Internal error on this item. See the worker log; retry, and report it if it happens again."
    ),
    # lint
    "unexpected": gettext_lazy("An unexpected error occurred. Administrators can find it in the server log."),
    # rule programs; judging.rule_messages has more specific messages for lines
    "rules_invalid": gettext_lazy("The metric's rule program has errors, so it can't score anything."),
    "reference.field_missing": gettext_lazy(
        "The row's reference is missing a field that a rule compares. Fix the row or the rule."
    ),
    "reference.format": gettext_lazy(
        "The row's reference does not match the rule program's format. Fix the row."
    ),
    "code.failed": gettext_lazy("A Python block in the rule program failed on this item."),
    "code.result": gettext_lazy("A Python block in the rule program did not return a number from 1 to 5."),
    "not_integer": gettext_lazy(
        "The judge model's score for a rule is not an integer from 1 to 5, so it was ignored."
    ),
    "judge.missing": gettext_lazy("A rule needs a judge model, but the metric has none."),
    "not_asked": gettext_lazy("A rule was not scored because another rule has an error."),
}

# Messages for calls to candidate models, where they differ from those for judges.
OF_CANDIDATES: dict[str, StrPromise] = {
    "context_too_long": gettext_lazy(
        "The row's messages exceed the model's context window. Shorten them, or use a model with a larger "
        "context."
    ),
    "content_filter": gettext_lazy(
        "The provider's content filter blocked the answer because of this row's text. Other rows are not "
        "affected."
    ),
}

ShownIn = Literal["", "prompt", "run", "rules"]
"""Where a reply without a score is shown: next to the prompt being tried, in a run, or for a rule program line."""

_OF_A_RUN = gettext_lazy("Re-judge, re-parse the stored replies on the run page, or override the score.")
_OF_A_LINE = gettext_lazy("Re-judge, or choose another judge model.")
ADVICE: dict[ShownIn, dict[str, StrPromise]] = {
    "prompt": {
        "empty": gettext_lazy("Try again, or choose another judge model."),
        "nothing_offered": gettext_lazy(
            "Ask for a fixed output format in the template, or change how the reply is parsed."
        ),
        "cut_off": gettext_lazy("Raise max_tokens in the generation parameters."),
        "out_of_range": gettext_lazy("State the scale in the template, or change the metric's scale."),
    },
    "run": {
        "empty": gettext_lazy("Re-judge, or override the score."),
        "nothing_offered": _OF_A_RUN,
        "cut_off": gettext_lazy("Raise max_tokens in the metric, then re-judge with the new version."),
        "out_of_range": _OF_A_RUN,
    },
    "rules": {
        "empty": _OF_A_LINE,
        "nothing_offered": _OF_A_LINE,
        "cut_off": gettext_lazy("Raise the judge model's max_tokens, then re-judge."),
        "out_of_range": _OF_A_LINE,
        "not_integer": _OF_A_LINE,
    },
}

FILE_PROBLEMS: dict[str, StrPromise] = {
    "too_long": gettext_lazy("The file is longer than %(most)s characters."),
    "yaml_syntax": gettext_lazy("Invalid YAML: %(problem)s."),
    "too_deep": gettext_lazy("Values are nested deeper than %(most)s levels."),
    "too_many_values": gettext_lazy("There are more than %(most)s values (every use of an alias counts)."),
    "unknown_tag": gettext_lazy("The YAML tag %(tag)s is not supported. Use plain values."),
    "empty_file": gettext_lazy("The file is empty. Expected a list of {data_name, metrics}."),
    "no_metrics": gettext_lazy("Expected a list of {data_name, metrics}, or a single mapping."),
    "key_is_no_text": gettext_lazy("Keys must be plain text."),
    "duplicate_key": gettext_lazy("Duplicate key “%(key)s”; first used in line %(first)s."),
    "unknown_key": gettext_lazy("Unknown key “%(key)s”. Supported keys: %(known)s."),
    "missing_key": gettext_lazy("“%(key)s” is missing."),
    "blank": gettext_lazy("“%(key)s” is empty."),
    "not_a_text": gettext_lazy("“%(key)s” must be text."),
    "text_too_long": gettext_lazy("“%(key)s” is longer than %(most)s characters."),
    "not_a_number": gettext_lazy("“%(key)s” must be a number."),
    "not_a_whole_number": gettext_lazy("“%(key)s” must be an integer from %(low)s to %(high)s."),
    "not_true_or_false": gettext_lazy("“%(key)s” must be true or false."),
    "not_an_option": gettext_lazy("“%(key)s” is “%(value)s”, but must be one of: %(options)s."),
    "not_a_mapping": gettext_lazy("“%(key)s” must be a mapping (key: value)."),
    "not_a_list": gettext_lazy("“%(key)s” must be a list with at least one entry."),
    "no_json_value": gettext_lazy("%(value)s can't be encoded as JSON."),
    "empty_scale": gettext_lazy("The maximum score, %(high)s, must be greater than the minimum, %(low)s."),
    "duplicate_metric": gettext_lazy("A metric named “%(name)s” already exists. Names must be unique."),
    "duplicate_candidate": gettext_lazy("A candidate named “%(name)s” already exists. Names must be unique."),
    "quorum_too_high": gettext_lazy(
        "“%(key)s” is %(value)s, but there are only %(votes)s votes (judge models × repeats)."
    ),
    "unknown_source": gettext_lazy("Unknown source “%(value)s”. Only URL is supported."),
    "both_orders_without_comparison": gettext_lazy(
        "“both_orders” only works with comparisons. Add “parse: comparison”, or remove it."
    ),
    "no_template": gettext_lazy("The judge model has no template. Set one of: %(options)s."),
    "several_templates": gettext_lazy("The judge model has several templates. Set only one of: %(options)s."),
    "no_script": gettext_lazy("The step has no script. Set “filename” or “file_content”."),
    "several_scripts": gettext_lazy("The step has two scripts. Set either “filename” or “file_content”."),
    "key_of_other_step": gettext_lazy("“%(key)s” is not valid in a step of type %(step)s."),
    "step_out_of_order": gettext_lazy("%(step)s is out of order. The order is %(order)s."),
    "step_twice": gettext_lazy("Duplicate %(step)s. A pipeline can have only one."),
    "rules_error": gettext_lazy(
        "Error in the rule program, line %(rule_line)s, column %(rule_column)s: %(sentence)s"
    ),
    "rules_need_judge": gettext_lazy(
        "The rule program needs a judge model. Add “judge_model” (without a template) to the step."
    ),
    "rules_beside_judges": gettext_lazy(
        "A metric uses either judge models or rules. Put the judge model for rules in the rules step."
    ),
    "unknown_parser": gettext_lazy(
        "“parse” must be score, comparison, {regex: …} or {json_path: …}, not %(detail)s."
    ),
    "bad_regex": gettext_lazy("Invalid regular expression: %(detail)s."),
    "bad_json_path": gettext_lazy(
        "Invalid JSON path: %(detail)s. Separate names with dots, for example a.b."
    ),
    "bad_url": gettext_lazy("“%(key)s” must be an http or https URL without a password."),
    "no_variable_name": gettext_lazy(
        "“%(key)s” must be the name of an environment variable, for example JUDGE_KEY. Never put the key "
        "itself in the file."
    ),
    "file_outside": gettext_lazy("%(path)s is outside the metrics file's folder and can't be read."),
    "file_missing": gettext_lazy("File %(path)s not found next to the metrics file."),
    "file_too_long": gettext_lazy("%(path)s is larger than %(most)s bytes."),
    "file_not_utf8": gettext_lazy("%(path)s is not UTF-8. Save it as UTF-8."),
    "file_unreadable": gettext_lazy("Can't read %(path)s."),
}


def reason_sentence(code: str, detail: str = "", shown_in: ShownIn = "") -> str:
    """Why a judgement has no score and what to do, with the server's or Python's message, if any.

    `code`: a judgement's reason or a call's error code; unknown codes are returned unchanged. The advice for a reply
    without a score depends on where it is `shown_in`.
    """
    sentence = str(REASONS.get(code) or code)
    if advice := ADVICE.get(shown_in, {}).get(code):
        sentence = _("%(sentence)s %(advice)s") % {"sentence": sentence, "advice": advice}
    if not detail:
        return sentence
    if code == "answer_failed":
        return f"{sentence} {why_no_answer(detail)}"
    if code == "held_down":  # the detail is another code with its detail
        inner, _colon, words_of_it = detail.partition(": ")
        return f"{sentence} {reason_sentence(inner, words_of_it)}"
    if code in Held.codes:  # the detail is a number of seconds
        pattern = _("%(sentence)s Next attempt in %(time)s.")
        return pattern % {"sentence": sentence, "time": duration(detail)}
    if code in ERROR_CODES:
        return _with_details(sentence, detail)
    return _("%(sentence)s (%(detail)s)") % {"sentence": sentence, "detail": localized(detail)}


WHILE_DOWN: dict[str, StrPromise] = {
    "timeout_first_byte": gettext_lazy("The server accepts requests but does not start replying in time."),
    "cut": gettext_lazy("The server closes the connection before replies are complete."),
    "overloaded": gettext_lazy("The server reports that it is overloaded."),
    "server_error": gettext_lazy("The server answers every request with an error."),
}


def why_down(code: str, detail: str) -> str:
    """How the last requests to a failed endpoint ended. Gives no advice to retry, since that happens automatically."""
    if code not in WHILE_DOWN:
        return reason_sentence(code, detail)
    return _with_details(str(WHILE_DOWN[code]), detail)


def why_no_answer(detail: str) -> str:
    """Why a candidate model gave no answer, from the detail of an `answer_failed` judgement ("code: message")."""
    code, _colon, words = detail.partition(": ")
    if code not in OF_CANDIDATES:
        return reason_sentence(code, words)
    return _with_details(str(OF_CANDIDATES[code]), words)


def _with_details(sentence: str, detail: str) -> str:
    if not detail:
        return sentence
    return _("%(sentence)s Details: %(detail)s") % {"sentence": sentence, "detail": detail}
