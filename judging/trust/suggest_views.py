"""A better prompt suggested by a model: its price before, its difference and its dev figures after."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evalsite.access import signed_in
from evalsite.names import join_sentences
from evalsite.web.numbers import whole
from judging.core.metric_definition import MetricDefinition
from judging.endpoints.selectors import endpoints_of
from judging.messages import reason_sentence
from judging.metrics.model_drafts import CannotDraft, spent_on
from judging.metrics.models import DraftState
from judging.metrics.version_diff import parts_of_definitions
from judging.records.models import RunMetric
from judging.trust import suggestions
from judging.trust.access import ACT, get_judged, is_program, rated_by
from judging.trust.dev import DevAgreement, dev_agreements
from judging.trust.models import PromptSuggestion, SealedTest


@login_required
def suggest(request: HttpRequest, slug: str, split: int, run_metric: int) -> HttpResponse:
    """What asking a model for a better prompt would cost, and the suggestions so far; a POST asks."""
    test, chosen = get_judged(request, slug, split, run_metric, ACT)
    if run := rated_by(request, test):
        return render(request, "reports/hidden.html", {"run": run})
    if is_program(test):
        raise Http404
    wanted = _request(request, test, chosen)
    if request.method == "POST":
        return _ask(request, test, chosen, wanted)
    cost, estimate = wanted.judging()
    listed = suggestions.suggestions_of(test.split)
    open_drafts = [each for each in listed if each.state == DraftState.DRAFT]
    versions = dev_agreements(test.split) if open_drafts else []
    context = {
        "metric": test.split.metric,
        "test": test,
        "run_metric": chosen,
        "judge": wanted.judge,
        "judges": [judge.name for judge in wanted.definition.judges],
        "sent": len(wanted.sent),
        "prices": wanted.prices() if wanted.sent else [],
        "cost": cost,
        "estimate": estimate,
        "suggestions": listed,
        "drafts": [_shown(test, each, versions) for each in open_drafts],
        "spent": spent_on(listed),
        "most": suggestions.MOST_SUGGESTIONS,
    }
    return render(request, "trust/suggest.html", context)


def _request(request: HttpRequest, test: SealedTest, chosen: RunMetric) -> suggestions.SuggestionRequest:
    """About the judge that the address names, by its place from 1. Raises Http404 if there is none."""
    wanted = suggestions.SuggestionRequest(
        test.split, chosen, (whole(request.GET.get("judge", "1")) or 0) - 1
    )
    if not 0 <= wanted.judge < len(wanted.definition.judges):
        raise Http404
    return wanted


def _shown(
    test: SealedTest, suggestion: PromptSuggestion, versions: Sequence[DevAgreement]
) -> dict[str, object]:
    """A draft with its difference to the version that it changes, and its dev figures."""
    version = suggestion.metric_version
    definition = MetricDefinition.from_json(version.definition)
    after = suggestions.with_template(definition, suggestion.template, suggestion.judge)
    before = next((each for each in versions if each.version == version.number), None)
    return {
        "suggestion": suggestion,
        "judge": definition.judges[suggestion.judge].name if len(definition.judges) > 1 else "",
        "parts": parts_of_definitions(test.split.metric.project_id, definition, after),
        "figures": suggestions.figures_of(suggestion, before),
    }


def _ask(
    request: HttpRequest, test: SealedTest, chosen: RunMetric, wanted: suggestions.SuggestionRequest
) -> HttpResponse:
    project, user = test.split.metric.project, signed_in(request)
    endpoint = get_object_or_404(endpoints_of(project), pk=whole(request.POST.get("endpoint", "")) or 0)
    try:
        suggestion = suggestions.prompt_suggest(wanted=wanted, endpoint=endpoint, user=user)
    except CannotDraft as refusal:
        messages.error(request, _suggestion_sentence(refusal.code, refusal.detail))
        return redirect(request.get_full_path())
    if suggestion.state == DraftState.FAILED:
        messages.error(request, _suggestion_sentence(suggestion.problem, suggestion.problem_detail))
    else:
        _judge(request, suggestion, wanted)
    return redirect(request.get_full_path())


def _judge(request: HttpRequest, suggestion: PromptSuggestion, wanted: suggestions.SuggestionRequest) -> None:
    try:
        suggestions.suggestion_judge(suggestion=suggestion, wanted=wanted, user=signed_in(request))
    except ValidationError as error:
        messages.error(request, join_sentences(error.messages))


def _suggestion_sentence(code: str, detail: str) -> str:
    """Why a model suggested no prompt that can be used, and what to do."""
    own = {
        "no_disagreements": _("Judge and people do not differ on any dev or train row, so nothing was sent."),
        "too_many": _("20 suggestions were made for this test. Write the rest by hand."),
        "no_prompt": _("The model's reply holds no prompt. Try another model."),
        "same_prompt": _("The model returned the prompt unchanged. Try another model."),
        "lost_variable": _("The suggested prompt lost %(mark)s, so it was not kept. Try again.")
        % {"mark": detail[:100]},
        "broken_prompt": _("The suggested prompt is no valid template. Try again."),
        "quotes_dev": _(
            "The suggested prompt quotes a dev row, so its dev figures would mean nothing. Try again."
        ),
        "test_text": detail,
    }
    return own.get(code) or reason_sentence(code, detail, "prompt")


@login_required
@require_POST
def decide(request: HttpRequest, slug: str, split: int, run_metric: int, suggestion: int) -> HttpResponse:
    """Take a suggested prompt into the user's draft of the editor, judge the dev rows with it, or close it."""
    test, chosen = get_judged(request, slug, split, run_metric, ACT)
    draft = get_object_or_404(test.split.suggestions, pk=suggestion, state=DraftState.DRAFT)
    draft.split = test.split
    act = request.POST.get("act")
    if act == "take":
        suggestions.suggestion_take(suggestion=draft, user=signed_in(request))
        messages.success(request, _("Taken into your draft of the prompt. Edit and save it there."))
        return redirect("metrics:edit", slug, test.split.metric_id)
    if act == "judge" and draft.run is None:
        _judge(request, draft, suggestions.SuggestionRequest(test.split, chosen))
    elif act == "close":
        suggestions.suggestion_close(suggestion=draft)
    address = reverse("trust:suggest", args=[slug, split, run_metric])
    return redirect(f"{address}?{urlencode({'judge': draft.judge + 1})}")
